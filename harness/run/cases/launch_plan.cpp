// SPDX-License-Identifier: Apache-2.0
// Which shapes take which launch path, and what each path meets.
#include "harness/run/cases/launch_plan.h"

#include <algorithm>
#include <map>

#include "harness/run/cases/launch_shapes.h"
#include "harness/run/cases/pass_sets.h"
#include "harness/run/executor.h"
#include "harness/run/judging/properties.h"
#include "harness/run/memory/arena.h"

namespace tigon {
namespace {

// Bytes of rows that are cheap enough for every set, elements of a tensor, how far short of the
// longest row a row has a tail, how far a row lies beyond the last border between shapes, and
// elements that are whole vectors in every type.
constexpr int64_t kShortRow = 1 << 16, kRowElements = 1 << 14, kTail = 5, kBeyond = 4096,
                  kVectors = 16;
// Elements of tensors that are cheap enough for every set with all that may take another path, and
// of tensors with many rows.
constexpr int64_t kShortElements = 1 << 17, kManyElements = 1 << 21;
// Rows that lie far apart, and the most of them: each takes pages of memory of its own.
constexpr int64_t kFarRows = 3, kMostFarRows = 1 << 14;

// Shapes that only a launch table chooses, by the options of a launch.
using Tuned = std::map<OptionSet, std::vector<LaunchShape>>;

// Option sets of the pass.
std::vector<OptionSet> sets_of(const Pass& pass, const std::vector<OptionSet>& all) {
  std::vector<OptionSet> sets;
  for (const OptionSet& set : all)
    if (auto options = options_for(pass, set);
        options && std::find(sets.begin(), sets.end(), *options) == sets.end())
      sets.push_back(std::move(*options));
  return sets;
}

// Whether sets and properties of all kinds are cheap.
bool is_small(const Shape& shape, const OpSpec& op) {
  return shape.at(op.axes.front().axis.symbol) * shape.at(row_axis(op).symbol) <= kShortElements;
}

std::optional<LaunchTable::Question> launch_of(Case c, const Shape& shape) {
  c.axes = shape;
  return launch_question(c);
}

// What one path meets, each in one element type: the same in every dtype's list.
class Path {
 public:
  // `is_alone`: no other element type has the shape, so nothing is left to them.
  Path(const Shape& shape, bool keeps, size_t number, CaseList* list, bool is_alone = false)
      : shape_(shape), keeps_(keeps), is_alone_(is_alone), number_(number), list_(*list) {}

  void add_options() {
    for (const OptionSet& set : sets_of(list_.pass, list_.op.option_sets))
      add_in_turn(set, list_.base.inputs);
  }

  void add_shifted(const OptionSet& form) { add(form, list_.base.inputs, 1, 0); }
  void add_apart(const OptionSet& form) { add(form, list_.base.inputs, 0, 3); }

  // `forms`: options with which the kernel is another one.
  void add_sets(const std::vector<OptionSet>& forms) {
    const OpSpec& op = list_.op;
    add_options();
    for (const OptionSet& form : forms) {
      for (const InputSet& set : op.inputs)
        if (input_set_applies(list_.pass, set, op.inputs.front()) &&
            is_judged_on(list_.implementation, set))
          add_in_turn(form, set.name);
      add_shifted(form);
      add_apart(form);
    }
  }

  // `in_turn`: else in the first element type, in which a path's rows are shortest.
  void add_properties(bool in_turn = true) {
    for (const Property& property : properties_of(list_.pass)) {
      if (property.of_launcher) continue;
      const auto& policies = property.policies.empty() ? list_.op.policies : property.policies;
      const size_t type = in_turn ? number_++ % policies.size() : 0;
      if (policies[type] == list_.base.dtype) list_.push(property, {shape_});
    }
  }

 private:
  // One layout after the other.
  void add_in_turn(const OptionSet& options, const std::string& inputs) {
    const size_t layout = is_alone_ ? number_ % 4 : number_ / list_.op.policies.size() % 4;
    add(options, inputs, layout == 1 ? 1 : 0, layout == 2 ? 3 : layout == 3 ? kVectors : 0);
  }

  // A path that is left off its alignment keeps it with rows that lie whole vectors apart.
  void add(const OptionSet& options, const std::string& inputs, int shift, int64_t gap) {
    const DType type = list_.op.policies[number_++ % list_.op.policies.size()];
    if (type != list_.base.dtype && !is_alone_) return;
    const OtherBase restored(&list_);
    if (!keeps_) gap = gap > 0 ? kVectors : 0;
    list_.base.shift = keeps_ ? shift : 0;
    list_.base.gap = has_strided(list_.pass) ? static_cast<int>(gap) : 0;
    list_.push(shape_, options, inputs);
  }

  const Shape shape_;
  const bool keeps_, is_alone_;
  size_t number_;
  CaseList& list_;
};

class LaunchPaths {
 public:
  explicit LaunchPaths(CaseList* list) : list_(*list) {}

  // What is in one element type where tensors are aligned is in the next where they are not.
  void add(bool aligned, const Shape& middle) {
    const OtherBase restored(&list_);
    list_.base.skew = aligned ? 0 : 1;
    const PassShapes shapes = launch_shapes(list_.op, list_.pass, list_.base.dtype, aligned);
    if (shapes.ranges.size() < 2) add_all(middle, aligned ? 0 : 1);
    for (const ShapeRange& range : shapes.ranges) {
      if (!shapes.others.empty()) add_tuned(shorter_of(range));
      if (!shapes.others.empty()) add_first_other(last_of(range));
      if (shapes.ranges.size() > 1) add(range);  // else whatever the length
    }
  }

  // Each shape once, in one element type: at a short row where it takes any, else one row that is
  // as long as it takes, of one block and of a cluster.
  void add_once(bool aligned) {
    const OtherBase restored(&list_);
    list_.base.skew = aligned ? 0 : 1;
    const std::vector<DType>& types = list_.op.policies;
    size_t number = 0;
    for (const ShapeRange& range :
         launch_shapes(list_.op, list_.pass, list_.base.dtype, aligned).ranges) {
      const bool is_long = !is_short(range.first);
      if ((is_long && range.is_longest) || !is_new({}, range.table, range.shape, is_long)) continue;
      if (types[number++ % types.size()] != list_.base.dtype) continue;
      Shape shape = row_of(is_long || is_short(last_of(range)) ? last_of(range) : first_of(range));
      if (is_long) shape[list_.op.axes.front().axis.symbol] = 1;
      list_.push(shape);
    }
  }

  // A few rows that each begin more than 2^31 elements behind the one before.
  void add_far_rows(Shape shape) {
    shape[list_.op.axes.front().axis.symbol] = kFarRows;
    add_apart(shape, kFarGap);
  }

  // Whether tensors off their alignment, all by as much, take the same launch shape.
  bool keeps(const Shape& shape) const {
    Case c = list_.base;
    c.axes = shape;
    const auto usual = launch_question(c);
    c.shift = 1;
    return same_answer(usual, launch_question(c));
  }

 private:
  static int64_t first_of(const ShapeRange& range) {
    return (range.first + kVectors - 1) / kVectors * kVectors;
  }
  static int64_t last_of(const ShapeRange& range) {
    return range.is_longest ? first_of(range) + kBeyond : range.last;
  }
  static int64_t shorter_of(const ShapeRange& range) {
    return std::max(first_of(range), last_of(range) - kVectors);
  }

  bool is_short(int64_t length) const {
    return static_cast<int64_t>(size_of(list_.base.dtype)) * length <= kShortRow;
  }

  void add(const ShapeRange& range) {
    const int64_t first = first_of(range), last = last_of(range);
    list_.push(row_of(first));
    list_.push(row_of(last));
    add_many_rows(range);
    if (!is_new({}, range.table, range.shape) && !is_short(range.first)) return;
    add_far_rows(row_of(last));
    const auto number = static_cast<size_t>(range.shape.lanes + range.shape.vectors);
    if (!is_short(range.first)) return path_of(row_of(first), number).add_properties(false);
    const Shape longest = row_of(last), shorter = row_of(shorter_of(range));
    const Shape& of_sets = list_.base.skew == 0 ? longest : shorter;
    const std::vector<OptionSet> forms = new_forms(of_sets);
    path_of(of_sets, number).add_sets(forms);
    path_of(shorter, number).add_properties();
    if (const Shape tail = row_of(last - kTail); takes(range, tail))
      path_of(tail, number + 1).add_sets(forms);
  }

  Path path_of(const Shape& shape, size_t number) const {
    return {shape, keeps(shape), number, &list_};
  }

  void add_all(const Shape& shape, size_t number) {
    Path path = path_of(shape, number);
    path.add_sets(new_forms(shape));
    path.add_properties();
  }

  // The default options, and those of which no shorter row took the kernel.
  std::vector<OptionSet> new_forms(const Shape& shape) {
    std::vector<OptionSet> forms = {{}};
    for (const OptionSet& form : sets_of(list_.pass, list_.op.further_options)) {
      Case c = list_.base;
      c.axes = shape;
      c.options = form;
      const auto asked = launch_question(c);
      if (!asked || is_new(form, asked->key.first, asked->usual)) forms.push_back(form);
    }
    return forms;
  }

  // More rows than a grid that stays resident has slots for: every slot of a queue is reused, and
  // partial sums are those of many blocks.
  void add_many_rows(const ShapeRange& range) {
    const int64_t lanes = range.shape.lanes, groups = std::max<int64_t>(lanes, 128) / lanes;
    const int64_t resident =
        int64_t{executor_multiprocessors()} * range.shape.blocks_per_sm * groups;
    const int64_t rows = resident * (range.shape.stages + 1) + 1;
    if (rows * first_of(range) > kManyElements) return;
    Shape shape = row_of(first_of(range));
    shape[list_.op.axes.front().axis.symbol] = rows;
    list_.push(shape);
    if (list_.op.policies[number_++ % list_.op.policies.size()] == list_.base.dtype)
      add_far_steps(shape, resident);
  }

  // Rows so far apart that from one of a block's rows to its next are more than 2^31 elements.
  void add_far_steps(const Shape& shape, int64_t rows_of_grid) {
    if (shape.at(list_.op.axes.front().axis.symbol) > kMostFarRows) return;
    const int64_t gap = std::max<int64_t>(INT32_MAX / rows_of_grid, kSparseGap);
    add_apart(shape, (gap / kVectors + 1) * kVectors);
  }

  // Rows so far apart where what lies between them costs nothing. What pitch a matrix product takes
  // is a library's.
  void add_apart(const Shape& shape, int64_t gap) {
    if (!list_.gaps_are_free() || !has_strided(list_.pass) || !list_.pass.products.empty()) return;
    const OtherBase restored(&list_);
    list_.base.gap = static_cast<int>(gap);
    list_.push(shape);
  }

  // Whether no shorter row took the kernel, which is the same for any number of blocks per row;
  // `clusters`: a cluster does not count as a block.
  bool is_new(const OptionSet& form, const std::string& table, LaunchShape shape,
              bool clusters = false) {
    shape.cluster = clusters ? std::min(shape.cluster, 2) : 1;
    std::vector<LaunchShape>& known = known_[{form, table}];
    if (std::find(known.begin(), known.end(), shape) != known.end()) return false;
    known.push_back(shape);
    return true;
  }

  bool takes(const ShapeRange& range, const Shape& shape) const {
    const auto asked = launch_of(list_.base, shape);
    return asked && asked->key.first == range.table && asked->usual == range.shape;
  }

  // The shapes that a launch of this length may take beside its own; those in `tuned_` were met.
  // With options that choose another kernel in every element type, with the other sets in one.
  void add_tuned(int64_t length) {
    if (!add_new(length, {})) return;  // there is nothing new with others, too
    for (const OptionSet& form : sets_of(list_.pass, list_.op.further_options))
      add_new(length, form);
    size_t number = 0;
    for (const OptionSet& set : sets_of(list_.pass, list_.op.option_sets))
      if (list_.op.policies[number++ % list_.op.policies.size()] == list_.base.dtype)
        add_new(length, set);
  }

  // The first other shape that takes the longest row: one too many would be before it, too small.
  void add_first_other(int64_t length) {
    const OtherBase restored(&list_);
    Case asking = list_.base;
    asking.axes = row_of(length);
    const auto asked = launch_question(asking);
    if (!asked || asked->others.empty()) return;
    list_.base.launch = 1;
    list_.push(asking.axes);
  }

  bool add_new(int64_t length, const OptionSet& options) {
    const OtherBase restored(&list_);
    Case asking = list_.base;
    asking.axes = row_of(length);
    asking.options = options;
    const auto asked = launch_question(asking);
    std::vector<LaunchShape>& met = tuned_[options];
    bool is_new = false;
    for (size_t i = 0; asked && i < asked->others.size(); ++i) {
      if (std::find(met.begin(), met.end(), asked->others[i]) != met.end()) continue;
      is_new = true;
      met.push_back(asked->others[i]);
      list_.base.launch = static_cast<int>(i) + 1;
      list_.push(asking.axes, options, list_.base.inputs);
    }
    return is_new;
  }

  // Rows of a length, as many as are fast; the other sizes as in the first of the further shapes.
  Shape row_of(int64_t length) const {
    const OpSpec& op = list_.op;
    const auto further = further_shapes(op, op.policies.front());
    Shape shape = further.empty() ? Shape{} : further.front();
    for (const AxisPlan& a : op.axes)
      if (shape.count(a.axis.symbol) == 0) shape[a.axis.symbol] = a.tiny.back();
    shape[op.axes.front().axis.symbol] = std::clamp<int64_t>(kRowElements / length, 3, 67);
    shape[row_axis(op).symbol] = length;
    return shape;
  }

  CaseList& list_;
  size_t number_ = 0;
  Tuned tuned_;
  std::map<std::pair<OptionSet, std::string>, std::vector<LaunchShape>> known_;
};

// Whether another launch than those in `met` takes the shape; it is then one of them. Where no
// table is asked, one is as good as another.
bool is_new_launch(const Shape& shape, const CaseList& list,
                   std::vector<LaunchTable::Question>* met) {
  const auto asked = launch_of(list.base, shape);
  const auto is_same = [&](const auto& other) { return same_answer(asked, other); };
  if (std::any_of(met->begin(), met->end(), is_same)) return false;
  if (asked) met->push_back(*asked);
  return true;
}

void add_further_path(const Shape& shape, bool asks, CaseList* list) {
  const OpSpec& op = list->op;
  LaunchPaths paths(list);
  if (asks) paths.add_far_rows(shape);
  Path path(shape, !asks || paths.keeps(shape), 0, list);
  std::vector<OptionSet> forms = {{}};
  if (is_small(shape, op))
    forms.insert(forms.end(), op.further_options.begin(), op.further_options.end());
  path.add_sets(sets_of(list->pass, forms));
  if (is_small(shape, op)) path.add_properties();
}

bool is_of_one_type(const Shape& shape, const OpSpec& op) {
  const std::vector<Shape>& shapes = op.further_shapes_of_one_type;
  return std::find(shapes.begin(), shapes.end(), shape) != shapes.end();
}

Path path_of_one_type(const Shape& shape, bool asks, CaseList* list) {
  return {shape, !asks || LaunchPaths(list).keeps(shape), 0, list, true};
}

}  // namespace

void add_further_paths(const std::vector<Shape>& shapes, bool asks, CaseList* list) {
  std::vector<LaunchTable::Question> met;
  for (const Shape& shape : shapes)
    if (is_of_one_type(shape, list->op))
      path_of_one_type(shape, asks, list).add_options();
    else if (!asks || is_new_launch(shape, *list, &met))
      add_further_path(shape, asks, list);
}

void add_forms_of_one_type(const std::vector<Shape>& shapes, bool asks, bool in_turn,
                           CaseList* list) {
  const std::vector<OptionSet> forms = sets_of(list->pass, list->op.further_options);
  for (size_t s = 0; s < shapes.size(); ++s) {
    if (!is_of_one_type(shapes[s], list->op)) continue;
    Path path = path_of_one_type(shapes[s], asks, list);
    for (size_t f = 0; f < forms.size(); ++f) {
      path.add_apart(forms[f]);
      if (!in_turn || (s + f) % 2 == 0) path.add_shifted(forms[f]);
    }
  }
}

void add_launch_paths(const Shape& middle, CaseList* list) {
  LaunchPaths paths(list);
  for (const bool aligned : {true, false}) paths.add(aligned, middle);
}

void add_launch_shapes(CaseList* list) {
  LaunchPaths paths(list);
  for (const bool aligned : {true, false}) paths.add_once(aligned);
}

}  // namespace tigon
