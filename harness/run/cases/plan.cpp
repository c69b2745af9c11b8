// SPDX-License-Identifier: Apache-2.0
// The cases of one implementation and dtype: shapes x default options, option sets and input sets x
// small shapes, layouts, properties; and on every launch path all of these at a short row. In the
// tiny tier the launch path of a short row is met once.
#include "harness/run/cases/plan.h"

#include <algorithm>

#include "harness/run/cases/case_list.h"
#include "harness/run/cases/chosen.h"
#include "harness/run/cases/launch_plan.h"
#include "harness/run/cases/pass_sets.h"
#include "harness/run/judging/huge.h"
#include "harness/run/judging/properties.h"
#include "harness/run/memory/arena.h"

namespace tigon {

namespace {

// Every value of every axis at least once, with values of the other axes one after another: as many
// shapes as there are values, not their product.
std::vector<Shape> each_value(const AxisValues& lists) {
  if (lists.empty()) return {{}};
  std::vector<Shape> shapes;
  for (size_t a = 0; a < lists.size(); ++a)
    for (size_t i = 0; i < lists[a].second.size(); ++i) {
      Shape shape;
      for (size_t b = 0; b < lists.size(); ++b) {
        const auto& values = lists[b].second;
        shape[lists[b].first] = values[(b == a ? i : i + a + 1) % values.size()];
      }
      if (std::find(shapes.begin(), shapes.end(), shape) == shapes.end()) shapes.push_back(shape);
    }
  return shapes;
}

// The contract's shapes, with every combination of the values that the request gives for an axis.
std::vector<Shape> shapes_of(const OpSpec& op, const CheckRequest& request, bool tiny) {
  AxisValues planned, given;
  for (const AxisPlan& a : op.axes) {
    AxisValues& list = request.axes.count(a.axis.symbol) > 0 ? given : planned;
    list.emplace_back(a.axis.symbol, sizes_of(a, request, tiny ? a.tiny : a.check));
  }
  std::vector<Shape> shapes;
  for (const Shape& shape : tiny ? product(planned) : each_value(planned))
    for (const Shape& chosen : product(given)) {
      shapes.push_back(shape);
      shapes.back().insert(chosen.begin(), chosen.end());
    }
  return shapes;
}

// Elements between rows on a GPU, where what lies between them is memory: the third row starts
// beyond 2^31.
constexpr int kFarGapOnGpu = 1 << 30;
// Elements of which a row's start is a multiple, whole vectors in every type.
constexpr int64_t kPitch = 16;

class Plan {
 public:
  // `launches`: with the launch shapes, which the device is asked for.
  Plan(const ChosenPass& chosen, const CheckRequest& request, const Implementation& impl,
       DType dtype, bool launches)
      : list_(chosen, request, impl, dtype),
        op_(list_.op),
        pass_(list_.pass),
        request_(request),
        impl_(impl),
        launches_(launches) {}

  std::vector<Case> cases() {
    if (request_.tier == Tier::kSweep || request_.tier == Tier::kHuge)
      add_large();
    else
      add_checks();
    return list_.take();
  }

 private:
  void add_checks() {
    const std::vector<Shape> tiny = shapes_of(op_, request_, true);
    for (const Shape& shape : tiny) list_.push(shape);
    if (request_.axes.empty()) add_further();
    if (request_.tier == Tier::kCheck)
      for (const Shape& shape : shapes_of(op_, request_, false)) list_.push(shape);

    std::vector<Shape> small = small_shapes(tiny);
    // A baseline has no launch paths of ours: each set once.
    if (is_library(impl_)) small = {small.back()};
    add_sets(small);
    const Shape middle = list_.in_vectors(small.back());
    add_layouts(small.back());
    if (!is_library(impl_)) add_layouts(middle);
    // On a GPU the memory between the rows is memory, so there they belong to the huge tier.
    if (list_.gaps_are_free()) add_far_rows(tiny.back());
    if (request_.tier == Tier::kCheck && op_.policies.front() == dtype())
      add_long_axes(tiny.front(), tiny.back());
    if (!is_library(impl_)) add_padded(tiny.back());
    const bool asks_all = launches_ && impl_.name == "fused",
               asks = asks_all && request_.tier == Tier::kCheck;
    if (request_.axes.empty() && !is_library(impl_)) {
      const std::vector<Shape> further = further_shapes(op_, dtype());
      if (request_.tier == Tier::kCheck) add_further_paths(further, asks, &list_);
      if (!request_.quick)
        add_forms_of_one_type(further, asks, request_.tier != Tier::kCheck, &list_);
    }
    if (!is_library(impl_)) add_skewed(middle, asks);
    if (asks)
      add_launch_paths(middle, &list_);
    else if (asks_all)
      add_launch_shapes(&list_);
    for (const Property& property : properties_of(pass_))
      if ((!is_library(impl_) || property.naive) && has_memory_for(property))
        list_.push(property, small);
  }

  void add_further() {
    // What only one type meets comes last.
    const std::vector<Shape> shapes = further_shapes(op_, dtype());
    for (size_t i = 0; i < shapes.size(); ++i)
      if (i >= op_.further_shapes.size() || is_met_by_type(i)) list_.push(shapes[i]);
    if (is_library(impl_)) return;
    size_t number = 0;
    for (const auto& [shape, inputs] : op_.further_inputs)
      if (is_met_by_type(number++)) list_.push(shape, {}, inputs);
  }

  // Whether this element type meets a wide row: in a quick check the chosen types take turns.
  bool is_met_by_type(size_t number) const {
    const std::vector<DType> types = chosen_dtypes(impl_.policies, request_);
    return !request_.quick || types[number % types.size()] == dtype();
  }

  // Of the tiny shapes, the largest, and in the full tier two of the checked ones as well.
  std::vector<Shape> small_shapes(const std::vector<Shape>& tiny) const {
    std::vector<Shape> small = {tiny.back()};
    if (request_.tier == Tier::kCheck && request_.axes.empty()) {
      Shape middle;
      for (const AxisPlan& a : op_.axes) middle[a.axis.symbol] = a.middle_size();
      small.push_back(middle);
    }
    return small;
  }

  std::string executor() const {
    return request_.executor.empty() ? default_executor() : request_.executor;
  }

  // Input sets beside the first small shape are in one element type each, and so are all sets of a
  // baseline.
  void add_sets(const std::vector<Shape>& small) {
    const bool library = is_library(impl_);
    size_t number = 0;
    for (const OptionSet& set : op_.option_sets)
      if (const bool in_turn = is_of_type(number++); in_turn || !library)
        for (const Shape& shape : small) add_options(shape, set);
    for (const InputSet& set : op_.inputs) {
      if (!input_set_applies(pass_, set, op_.inputs.front()) || !is_judged_on(impl_, set)) continue;
      const bool in_turn = is_of_type(number++);
      for (const Shape& shape : small)
        if (in_turn || (!library && &shape == &small.front())) list_.push(shape, {}, set.name);
    }
  }

  DType dtype() const { return list_.base.dtype; }

  // What is met in one element type alone is numbered: number i is met in type i modulo the types.
  bool is_of_type(size_t number) const {
    return op_.policies[number % op_.policies.size()] == dtype();
  }

  // The sizes of the sweep, or the huge ones: tensors are tiled, and on a GPU only rows of them
  // meet the oracle.
  void add_large() {
    if (is_library(impl_)) return;
    const bool huge = request_.tier == Tier::kHuge, gpu = executor() == "cuda";
    AxisValues planned;
    for (const AxisPlan& a : op_.axes)
      planned.emplace_back(a.axis.symbol, sizes_of(a, request_,
                                                   huge  ? a.huge
                                                   : gpu ? a.sweep
                                                         : a.host_sweep));
    const OptionSet options = options_for(pass_, op_.huge_options).value_or(OptionSet{});
    for (const Shape& shape : huge ? product(planned) : each_value(planned))
      list_.push(shape, huge || gpu ? options : OptionSet{},
                 huge || gpu ? kTiledInputs : list_.base.inputs);
    if (huge) add_far_rows(shapes_of(op_, request_, true).back());
  }

  // Rows so far apart that the last ones' offsets are beyond 2^31 elements; with every option set
  // where what lies between them costs nothing.
  void add_far_rows(const Shape& shape) {
    // Many rows of somebody's choice would need more addresses than there are. What pitch a matrix
    // product takes is a library's.
    if (!has_strided(pass_) || !pass_.products.empty() || is_library(impl_) ||
        !request_.axes.empty())
      return;
    const OtherBase restored(&list_);
    list_.base.gap = executor() == "cuda" ? kFarGapOnGpu : kFarGap;
    list_.push(shape);
    size_t number = 0;
    if (list_.gaps_are_free())
      for (const OptionSet& set : op_.option_sets)
        if (is_of_type(number++)) add_options(shape, set);
  }

  bool has_memory_for(const Property& property) const {
    return !property.needs_far_memory || list_.gaps_are_free();
  }

  // One axis after the other beyond 16 bits, beside the smallest others but a few rows; long rows
  // with the options that the contract names.
  void add_long_axes(Shape smallest, const Shape& few_rows) {
    if (is_library(impl_) || !request_.axes.empty()) return;
    const OtherBase restored(&list_);
    const std::string rows = op_.axes.front().axis.symbol;
    smallest[rows] = few_rows.at(rows);
    list_.base.gap = has_strided(pass_) ? 3 : 0;
    for (const AxisPlan& a : op_.axes) {
      Shape shape = smallest;
      shape[a.axis.symbol] = kLongAxis;
      list_.push(shape);
      if (a.axis.symbol == rows) continue;
      for (const OptionSet& set : op_.long_options) add_options(shape, set);
    }
  }

  // Rows of no whole number of vectors, padded so that each is aligned, with every option set where
  // the kernels are ours and no matrix product's.
  void add_padded(Shape shape) {
    if (!has_strided(pass_) || !request_.axes.empty()) return;
    const OtherBase restored(&list_);
    int64_t& columns = shape.at(op_.axes.back().axis.symbol);
    if (columns % kPitch == 0) columns += 2;
    list_.base.gap = static_cast<int>(kPitch - columns % kPitch);
    size_t number = 0;
    for (const OptionSet& set : op_.option_sets)
      if (is_of_type(number++) && pass_.products.empty()) add_options(shape, set);
    list_.push(shape);
    shape[op_.axes.front().axis.symbol] = 1;  // the start of a second row cannot be off
    list_.push(shape);
  }

  // Addresses that are not aligned and rows that lie apart.
  void add_layouts(const Shape& shape) {
    const Case plain = list_.base;
    std::vector<Case> layouts(3, plain);
    layouts[0].shift = 1;
    layouts[1].skew = 1;
    layouts[2].gap = 3;
    if (!has_strided(pass_)) layouts.pop_back();
    const OtherBase restored(&list_);
    for (const Case& layout : layouts) {
      list_.base = layout;
      list_.push(shape);
    }
  }

  // Options where no two tensors are aligned alike: those that choose another kernel in every
  // element type, and where no launch is asked for, all sets.
  void add_skewed(const Shape& shape, bool asks) {
    const OtherBase restored(&list_);
    list_.base.skew = 1;
    add_options(shape, {});
    for (const OptionSet& set : asks ? op_.further_options : op_.option_sets)
      add_options(shape, set);
  }

  void add_options(const Shape& shape, const OptionSet& set) {
    if (const auto options = options_for(pass_, set))
      list_.push(shape, *options, list_.base.inputs);
  }

  CaseList list_;
  const OpSpec& op_;
  const Pass& pass_;
  const CheckRequest& request_;
  const Implementation& impl_;
  const bool launches_;
};

}  // namespace

std::vector<Case> planned_cases(const ChosenPass& chosen, const CheckRequest& request,
                                const Implementation& impl, DType dtype, bool launches) {
  return Plan(chosen, request, impl, dtype, launches).cases();
}

}  // namespace tigon
