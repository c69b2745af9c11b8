// SPDX-License-Identifier: Apache-2.0
// The cases of one implementation and dtype: shapes x default options, option sets and input sets x
// small shapes and the shapes of further launch paths, layouts, launch shapes, properties.
#include "harness/run/cases/plan.h"

#include <algorithm>
#include <map>
#include <set>

#include "harness/run/cases/launch_shapes.h"
#include "harness/run/cases/pass_sets.h"
#include "harness/run/judging/huge.h"
#include "harness/run/judging/properties.h"

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

// Of launch shapes: rows that are cheap enough for every set, elements of a tensor, how far short
// of the longest row a row has a tail, how far a row lies beyond the last border between shapes,
// and elements that are whole vectors in every type.
constexpr int64_t kShortRow = 16384, kRowElements = 1 << 14, kTail = 5, kBeyond = 4096,
                  kVectors = 16;
// Elements between rows; the third row starts beyond 2^31.
constexpr int kFarGap = 1 << 30;

class Plan {
 public:
  // `launches`: with the launch shapes, which the device is asked for.
  Plan(const ChosenPass& chosen, const CheckRequest& request, bool launches)
      : chosen_(chosen), op_(*chosen.op), request_(request), launches_(launches) {}

  // The cases of one implementation and dtype.
  void add(const Implementation& impl, DType dtype, std::vector<Case>* cases) {
    const Pass& pass = *chosen_.pass;
    impl_ = &impl;
    base_ = plain_case(chosen_, impl.name, dtype, request_);
    seen_.clear();
    if (request_.tier == Tier::kSweep || request_.tier == Tier::kHuge)
      return add_large(pass, impl, cases);
    const std::vector<Shape> tiny = shapes_of(op_, request_, true);
    for (const Shape& shape : tiny) push(shape, {}, base_.inputs, cases);
    if (request_.axes.empty())
      for (const Shape& shape : op_.further_shapes) push(shape, {}, base_.inputs, cases);
    if (request_.tier == Tier::kCheck)
      for (const Shape& shape : shapes_of(op_, request_, false))
        push(shape, {}, base_.inputs, cases);

    std::vector<Shape> small = small_shapes(tiny);
    // A baseline has no launch paths of ours: each set once.
    if (is_library(impl)) small = {small.back()};
    for (const OptionSet& set : op_.option_sets)
      if (const auto options = options_for(pass, set))
        for (const Shape& shape : small) push(shape, *options, base_.inputs, cases);
    for (const InputSet& set : op_.inputs)
      if (input_set_applies(pass, set, op_.inputs.front()) && is_judged_on(impl, set))
        for (const Shape& shape : small) push(shape, {}, set.name, cases);
    add_layouts(pass, small.back(), cases);
    add_layouts(pass, in_vectors(small.back()), cases);
    // On a GPU the memory between the rows is memory, so there they belong to the huge tier.
    if (executor() == "fast") add_far_rows(pass, impl, tiny.back(), cases);
    if (request_.tier == Tier::kCheck && request_.axes.empty() && !is_library(impl))
      for (const Shape& shape : op_.further_shapes) add_path(pass, dtype, shape, cases);
    if (!is_library(impl)) add_skewed(pass, in_vectors(small.back()), cases);
    if (launches_ && impl.name == "fused") add_launches(pass, dtype, cases);
    for (const Property& property : properties_of(pass))
      if (!is_library(impl) || property.naive) add_property(property, small, cases);
  }

 private:
  // Shapes that only a launch table chooses, by the options of a launch.
  using Tuned = std::map<OptionSet, std::vector<LaunchShape>>;

  // Of the tiny shapes, the largest, and in the full tier two of the checked ones as well.
  std::vector<Shape> small_shapes(const std::vector<Shape>& tiny) const {
    std::vector<Shape> small = {tiny.back()};
    if (request_.tier == Tier::kCheck && request_.axes.empty()) {
      Shape middle;
      for (const AxisPlan& a : op_.axes) middle[a.axis.symbol] = a.check[a.check.size() / 2];
      small.push_back(middle);
    }
    return small;
  }

  std::string executor() const {
    return request_.executor.empty() ? default_executor() : request_.executor;
  }

  // The sizes of the sweep, or the huge ones: tensors are tiled, and on a GPU only rows of them
  // meet the oracle.
  void add_large(const Pass& pass, const Implementation& impl, std::vector<Case>* cases) {
    if (is_library(impl)) return;
    const bool huge = request_.tier == Tier::kHuge, gpu = executor() == "cuda";
    AxisValues planned;
    for (const AxisPlan& a : op_.axes)
      planned.emplace_back(a.axis.symbol, sizes_of(a, request_,
                                                   huge  ? a.huge
                                                   : gpu ? a.sweep
                                                         : a.host_sweep));
    const OptionSet options = options_for(pass, op_.huge_options).value_or(OptionSet{});
    for (const Shape& shape : huge ? product(planned) : each_value(planned))
      push(shape, huge || gpu ? options : OptionSet{}, huge || gpu ? kTiledInputs : base_.inputs,
           cases);
    if (huge) add_far_rows(pass, impl, shapes_of(op_, request_, true).back(), cases);
  }

  // Rows so far apart that the last ones' offsets are beyond 2^31 elements.
  void add_far_rows(const Pass& pass, const Implementation& impl, const Shape& shape,
                    std::vector<Case>* cases) {
    // Many rows of somebody's choice would need more addresses than there are. What pitch a matrix
    // product takes is a library's.
    if (!has_strided(pass) || !pass.products.empty() || is_library(impl) || !request_.axes.empty())
      return;
    const Case plain = base_;
    base_.gap = kFarGap;
    push(shape, {}, plain.inputs, cases);
    base_ = plain;
  }

  // Addresses that are not aligned and rows that lie apart.
  void add_layouts(const Pass& pass, const Shape& shape, std::vector<Case>* cases) {
    const Case plain = base_;
    base_.shift = 1;
    push(shape, {}, plain.inputs, cases);
    base_ = plain;
    base_.skew = 1;
    push(shape, {}, plain.inputs, cases);
    base_ = plain;
    if (!has_strided(pass)) return;
    base_.gap = 3;
    push(shape, {}, plain.inputs, cases);
    base_ = plain;
  }

  // On a launch path beside those of short rows: every option set and every input set, in one
  // element type and one layout after the other.
  void add_path(const Pass& pass, DType dtype, const Shape& shape, std::vector<Case>* cases) {
    const Case plain = base_;
    size_t turn = 0;
    const auto in_turn = [&](const OptionSet& options, const std::string& inputs) {
      const size_t types = op_.policies.size(), layout = turn / types;
      if (op_.policies[turn++ % types] != dtype) return;
      base_.shift = layout % 4 == 1 ? 1 : 0;
      base_.gap = layout % 4 == 2 && has_strided(pass) ? 3 : 0;
      base_.skew = layout % 4 == 3 ? 1 : 0;
      push(shape, options, inputs, cases);
      base_ = plain;
    };
    for (const OptionSet& set : op_.option_sets)
      if (const auto options = options_for(pass, set)) in_turn(*options, plain.inputs);
    for (const InputSet& set : op_.inputs)
      if (input_set_applies(pass, set, op_.inputs.front()) && is_judged_on(*impl_, set))
        in_turn({}, set.name);
  }

  // Every launch shape of the pass at its shortest and its longest row, the tensors aligned and
  // each off by another number of elements; on short rows all sets and properties as well. Those
  // that only a launch table chooses once.
  void add_launches(const Pass& pass, DType dtype, std::vector<Case>* cases) {
    size_t turn = 0;
    Tuned tuned;
    for (const bool aligned : {true, false}) {
      const PassShapes shapes = launch_shapes(op_, pass, dtype, aligned);
      for (const ShapeRange& range : shapes.ranges) {
        const int64_t first = (range.first + kVectors - 1) / kVectors * kVectors;
        const int64_t last = range.is_longest ? first + kBeyond : range.last;
        if (!shapes.others.empty()) add_tuned(pass, last, aligned, &tuned, cases);
        if (shapes.ranges.size() == 1) continue;  // whatever the length
        base_.skew = aligned ? 0 : 1;
        push(row_of(first), {}, base_.inputs, cases);
        push(row_of(last), {}, base_.inputs, cases);
        base_.skew = 0;
        if (!aligned || range.first > kShortRow) continue;
        add_path(pass, dtype, row_of(last - kTail), cases);
        for (const Property& property : properties_of(pass))
          if (op_.policies[turn++ % op_.policies.size()] == dtype)
            add_property(property, {row_of(last)}, cases);
      }
    }
  }

  // Every option set where no two tensors are aligned alike.
  void add_skewed(const Pass& pass, const Shape& shape, std::vector<Case>* cases) {
    base_.skew = 1;
    for (const OptionSet& set : op_.option_sets)
      if (const auto options = options_for(pass, set)) push(shape, *options, base_.inputs, cases);
    base_.skew = 0;
  }

  // The shapes that a launch of this length may take beside its own, with every option set; those
  // in `known` were met.
  void add_tuned(const Pass& pass, int64_t length, bool aligned, Tuned* known,
                 std::vector<Case>* cases) {
    const Case plain = base_;
    base_.skew = aligned ? 0 : 1;
    Case asking = base_;
    asking.axes = row_of(length);
    const auto add_new = [&](const OptionSet& options) {
      asking.options = options;
      const auto asked = launch_question(asking);
      std::vector<LaunchShape>& met = (*known)[options];
      bool is_new = false;
      for (size_t i = 0; asked && i < asked->others.size(); ++i) {
        if (std::find(met.begin(), met.end(), asked->others[i]) != met.end()) continue;
        is_new = true;
        met.push_back(asked->others[i]);
        base_.launch = static_cast<int>(i) + 1;
        push(asking.axes, options, base_.inputs, cases);
      }
      return is_new;
    };
    if (add_new({}))  // else there is nothing new with others, too
      for (const OptionSet& set : op_.option_sets)
        if (const auto options = options_for(pass, set)) add_new(*options);
    base_ = plain;
  }

  // Rows of a length, as many as are fast; the other sizes as in the first of the further shapes.
  Shape row_of(int64_t length) const {
    Shape shape = op_.further_shapes.empty() ? Shape{} : op_.further_shapes.front();
    for (const AxisPlan& a : op_.axes)
      if (shape.count(a.axis.symbol) == 0) shape[a.axis.symbol] = a.tiny.back();
    shape[op_.axes.front().axis.symbol] = std::clamp<int64_t>(kRowElements / length, 3, 67);
    shape[row_axis(op_).symbol] = length;
    return shape;
  }

  void add_property(const Property& property, const std::vector<Shape>& small,
                    std::vector<Case>* cases) {
    const auto& policies = property.policies;
    if (!policies.empty() &&
        std::find(policies.begin(), policies.end(), base_.dtype) == policies.end())
      return;
    const Case plain = base_;
    base_.property = property.name;
    const std::string& inputs = property.inputs.empty() ? plain.inputs : property.inputs;
    std::vector<Shape> shapes = small;
    if (small.size() > 1) shapes.push_back(in_vectors(small.back()));
    if (property.one_shape) shapes = {shapes.back()};
    for (const Shape& shape : shapes)
      for (const OptionSet& options : property.options) push(shape, options, inputs, cases);
    base_ = plain;
  }

  // Every axis but the first rounded up to a multiple of 16: rows that can be read in vectors. A
  // size that the request gives stays.
  Shape in_vectors(Shape shape) const {
    for (size_t a = 1; a < op_.axes.size(); ++a) {
      const std::string axis = op_.axes[a].axis.symbol;
      if (request_.axes.count(axis)) continue;
      int64_t& size = shape.at(axis);
      size = (size + 15) / 16 * 16;
    }
    return shape;
  }

  void push(const Shape& shape, const OptionSet& options, const std::string& inputs,
            std::vector<Case>* cases) {
    Case c = base_;
    c.axes = shape;
    c.options = options;
    c.inputs = inputs;
    const bool fits = options_fit(op_, *chosen_.pass, c);
    if (fits && seen_.insert(case_id(c)).second) cases->push_back(std::move(c));
  }

  const ChosenPass chosen_;
  const OpSpec& op_;
  const CheckRequest& request_;
  const bool launches_;
  const Implementation* impl_ = nullptr;  // whose cases are added
  Case base_;
  std::set<std::string> seen_;
};

}  // namespace

std::vector<Case> planned_cases(const ChosenPass& chosen, const CheckRequest& request,
                                const Implementation& impl, DType dtype, bool launches) {
  std::vector<Case> cases;
  Plan(chosen, request, launches).add(impl, dtype, &cases);
  return cases;
}

}  // namespace tigon
