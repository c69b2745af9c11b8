// SPDX-License-Identifier: Apache-2.0
// Properties of launchers: what they refuse, and the values of options that they compare.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "harness/spec/experiment.h"
#include "harness/spec/properties.h"

namespace tigon {

namespace {

// More than any workspace: what else is wrong with a call must be the reason.
constexpr size_t kAnyWorkspace = size_t{1} << 62;

std::string text_of(const std::string& name, const TensorRef& tensor) {
  return fmt::format("{} is [{}]", name, fmt::join(tensor.shape, ", "));
}

std::string text_of(const OptionSet& options) {
  std::string text;
  for (const auto& [name, value] : options)
    text += fmt::format("{}{}={}", text.empty() ? "with " : ",", name, value);
  return text.empty() ? "with the default options" : text;
}

void pack(TensorRef* tensor) {
  for (size_t d = tensor->shape.size(); d-- > 0;)
    tensor->stride[d] =
        d + 1 == tensor->shape.size() ? 1 : tensor->stride[d + 1] * tensor->shape[d + 1];
}

bool has_elements(const TensorRef& t) {
  return std::all_of(t.shape.begin(), t.shape.end(), [](int64_t size) { return size > 0; });
}

// Calls with one mistake each.
class Refusals {
 public:
  explicit Refusals(Experiment& e) : e_(e) {}

  void operator()() {
    for (const OptionSet& options : e_.option_sets()) {
      call_ = e_.base();
      call_.options = options;
      const Bound right = e_.placed(call_);
      if (!e_.has_streams()) expect_taken(right, text_of(options));
      for (const TensorInfo& info : e_.pass().tensors)
        if (const auto found = right.tensors.find(info.name);
            found != right.tensors.end() && has_elements(found->second))
          try_tensor(right, info);
      try_workspace(right);
    }
    call_ = e_.base();
    for (const AxisPlan& axis : e_.op().axes) try_axis(axis);
    for (const OptionSet& options : e_.pass().refused) {
      call_.options = options;
      expect_refused(e_.placed(call_), text_of(options));
      expect_refused(in_possible_tensors(), text_of(options) + ", with tensors that can be");
      expect_refused(of_size(e_.op().axes.front().axis.symbol, 1), text_of(options) + ", one row");
    }
  }

 private:
  void try_tensor(const Bound& right, const TensorInfo& info) {
    for (size_t d = 0; d < info.shape.size(); ++d)
      for (const int more : {1, -1}) {
        Bound wrong = right;
        TensorRef& tensor = wrong.tensors.at(info.name);
        tensor.shape[d] += more;
        pack(&tensor);
        if (!fits_some_sizes(wrong)) expect_refused(wrong, text_of(info.name, tensor));
      }
    if (right.tensors.at(info.name).shape.back() > 1) {
      Bound wrong = right;
      wrong.tensors.at(info.name).stride.back() = 2;
      expect_refused(wrong, fmt::format("every other element of {} is given", info.name));
    }
    const auto& apart = e_.pass().rows_apart;
    if (std::find(apart.begin(), apart.end(), info.name) != apart.end()) {
      Bound wrong = right;
      --wrong.tensors.at(info.name).stride.front();
      expect_refused(wrong, fmt::format("rows of {} overlap", info.name));
    }
    if (info.is_optional) return;
    Bound wrong = right;
    wrong.tensors.at(info.name).data = nullptr;
    expect_refused(wrong, info.name + " has no memory");
  }

  // A contract says that options are wrong by a size that cannot be, which any launcher refuses.
  // Here those tensors are as the default options have them.
  Bound in_possible_tensors() const {
    Bound bound = e_.placed(call_);
    const Bound usual = e_.placed(e_.base());
    for (auto& [name, tensor] : bound.tensors)
      if (const auto found = usual.tensors.find(name);
          found != usual.tensors.end() && std::ranges::min(tensor.shape) < 0)
        tensor = found->second;
    return bound;
  }

  void try_workspace(const Bound& right) {
    if (right.scratch.bytes == 0) return;
    Bound wrong = right;
    --wrong.scratch.bytes;
    expect_refused(wrong, "the workspace is a byte short");
    wrong = right;
    wrong.scratch.data = nullptr;
    expect_refused(wrong, "the workspace has no memory");
  }

  void try_axis(const AxisPlan& axis) {
    const std::string name = axis.axis.symbol;
    const auto text = [&](int64_t size) { return fmt::format("{} is {}", name, size); };
    for (const int64_t size : axis.refused) expect_refused(of_size(name, size), text(size));
    if (axis.most == 0) return;
    if (axis.most < kAnySize) expect_refused(of_size(name, axis.most + 1), text(axis.most + 1));
    if (e_.has_streams()) return;
    const Bound largest = of_size(name, axis.most);
    expect_taken(largest, text(axis.most));
    expect_taken(apart(largest), text(axis.most) + " and rows lie apart");
  }

  // With a gap between the rows of the tensors that may have one.
  Bound apart(Bound bound) const {
    for (const TensorInfo& info : e_.pass().tensors)
      if (const auto found = bound.tensors.find(info.name);
          found != bound.tensors.end() && info.is_strided && info.shape.size() > 1)
        for (size_t d = 0; d + 1 < info.shape.size(); ++d) ++found->second.stride[d];
    return bound;
  }

  // The call with another size of an axis in every tensor.
  Bound of_size(const std::string& axis, int64_t size) const {
    Bound bound = e_.placed(call_);
    bound.scratch.bytes = kAnyWorkspace;
    bound.values[axis] = static_cast<double>(size);
    for (const TensorInfo& info : e_.pass().tensors)
      if (const auto found = bound.tensors.find(info.name); found != bound.tensors.end()) {
        for (size_t d = 0; d < info.shape.size(); ++d)
          found->second.shape[d] = info.shape[d].integer(bound.values);
        pack(&found->second);
      }
    return bound;
  }

  // Whether there are sizes of axes, each as in the call or one off, that all tensors fit.
  bool fits_some_sizes(const Bound& bound) const {
    const auto& axes = e_.op().axes;
    size_t ways = 1;
    for (size_t a = 0; a < axes.size(); ++a) ways *= 3;
    for (size_t way = 0; way < ways; ++way) {
      Binding values = bound.values;
      size_t rest = way;
      for (const AxisPlan& a : axes) {
        values[a.axis.symbol] += static_cast<double>(rest % 3) - 1;
        rest /= 3;
      }
      if (fits(bound, values)) return true;
    }
    return false;
  }

  bool fits(const Bound& bound, const Binding& values) const {
    return std::all_of(e_.pass().tensors.begin(), e_.pass().tensors.end(),
                       [&](const TensorInfo& info) {
                         const auto found = bound.tensors.find(info.name);
                         if (found == bound.tensors.end()) return true;
                         for (size_t d = 0; d < info.shape.size(); ++d)
                           if (info.shape[d].integer(values) != found->second.shape[d])
                             return false;
                         return true;
                       });
  }

  void expect_refused(const Bound& bound, const std::string& mistake) const {
    const Status status = e_.ask(call_, bound);
    if (status.code == Status::kInvalidArgument || status.code == Status::kUnsupported) return;
    throw Violation(fmt::format("{}, {}: {}", mistake, text_of(call_.options),
                                status.ok() ? "not refused" : status.reason));
  }
  void expect_taken(const Bound& bound, const std::string& what) const {
    const Status status = e_.ask(call_, bound);
    if (!status.ok()) throw Violation(fmt::format("{}: refused: {}", what, status.reason));
  }

  Experiment& e_;
  Call call_;
};

// Next to the default, and 0: what a kernel compares an option with to choose a path.
std::vector<double> values_near_default(const OptionInfo& option) {
  const double usual = option.default_value;
  if (!option.choices.empty() || option.is_whole || !std::isfinite(usual)) return {};
  if (usual == 0) return {0.01};
  return {usual * 1.01, 0};
}

// The sizes of cases that may show a loop that begins or ends one too late, and strides that
// nothing depends on: no rows, one row, one column.
std::vector<int64_t> least_sizes(const AxisPlan& axis) {
  std::vector<int64_t> sizes;
  std::ranges::copy_if(axis.check, std::back_inserter(sizes),
                       [](int64_t size) { return size <= 1; });
  return sizes;
}

void try_option_values(Experiment& e) {
  const auto judge = [&](const OptionSet& options) {
    Call call = e.base();
    for (const auto& [name, value] : options) call.options[name] = value;
    call = e.generated(call, 0);
    e.judge(call, e.run(call));
  };
  const auto is_refused = [&](const OptionSet& options) {
    const auto& refused = e.pass().refused;
    return std::find(refused.begin(), refused.end(), options) != refused.end();
  };
  for (const OptionInfo& option : e.pass().options)
    for (const double value : values_near_default(option)) {
      const OptionSet options = {{option.name, fmt::format("{:g}", value)}};
      if (!is_refused(options)) judge(options);
    }
  for (const OptionSet& options : e.pass().edges) judge(options);
  for (const OptionSet& options : e.option_sets()) {
    Call call = e.base();
    call.options = options;
    for (const AxisPlan& axis : e.op().axes)
      for (const int64_t least : least_sizes(axis)) {
        Call smallest = call;
        smallest.axes[axis.axis.symbol] = least;
        smallest = e.generated(smallest, 0);
        e.judge(smallest, e.run(smallest));
      }
  }
}

void try_far_rows(Experiment& e) {
  constexpr int kFar = INT32_MAX - 15;
  if (!e.has_far_memory()) throw NotApplicable("what lies between rows is memory here");
  const auto judge = [&](Call call, const std::string& tensor) {
    call.gap[tensor] = kFar;
    try {
      e.judge(call, e.run(call));
    } catch (const Refusal&) {
    }
  };
  for (const OptionSet& options : e.option_sets()) {
    Call call = e.base();
    call.options = options;
    call = e.generated(call, 0);
    for (const TensorInfo& info : e.pass().tensors)
      if (is_of_far_rows(e.pass(), info) && !is_left_out(info, options)) judge(call, info.name);
  }
}

}  // namespace

bool is_of_far_rows(const Pass& pass, const TensorInfo& info) {
  return info.shape.size() > 1 && (!info.is_strided || !pass.products.empty());
}

std::vector<Property> launcher_properties() {
  std::vector<Property> all = {
      {"refusals", "a call with one mistake is refused: a size, a stride, no memory, an option",
       [](Experiment& e) { Refusals{e}(); }},
      {"option_values",
       "right next to defaults, at 0, at the last allowed, without rows, with one row and with one "
       "column",
       try_option_values},
      {"far_rows", "right where rows of any tensor are 2^31 elements apart, or refused",
       try_far_rows}};
  for (Property& p : all) {
    p.one_shape = p.of_launcher = true;
    p.policies = {DType::kF32};  // one source serves all, and here budgets are the tightest
  }
  all.back().needs_far_memory = true;
  all.back().policies.push_back(DType::kBF16);  // whose sums are rounded in a step of its own
  return all;
}

}  // namespace tigon
