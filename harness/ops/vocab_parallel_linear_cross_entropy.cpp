// SPDX-License-Identifier: Apache-2.0
// Contract of vocab_parallel_linear_cross_entropy: that of linear_cross_entropy without a bound on
// valid rows. The gradient of x is summed over the ranks of a call.
#include "reference/vocab_parallel_linear_cross_entropy.h"

#include <algorithm>

#include "harness/ops/implementations.h"
#include "harness/ops/loss_plan.h"
#include "harness/ops/over_ranks.h"
#include "harness/ops/sum_of_ranks.h"
#include "harness/spec/bind.h"

namespace tigon::linear_cross_entropy {
OpSpec contract();
}

namespace tigon::vocab_parallel_linear_cross_entropy {

namespace {

namespace reference = reference::linear_cross_entropy;
using linear_cross_entropy::ForwardBackward;
using vocab_parallel_cross_entropy::Join;

const Sharding kSharding = {
    {{"w", 0}, {"bias", 0}, {"dw", 0}, {"dw_fp32", 0}, {"dw_accum", 0}, {"dbias", 0}}, 1};

// A call of backward over ranks: each rank's part of dx lies first in the scratch.
class BackwardCall {
 public:
  BackwardCall(const Bound& all, void* memory) : cut_(all, kSharding), scratch_(memory), all_(all) {
    if (dx() != nullptr && cut_.has_sizes())
      parts_ = scratch_.take<float>(cut_.ranks() * rows() * hidden());
  }

  const Cut& cut() const { return cut_; }
  const ScratchParts& scratch() const { return scratch_; }

  Bound of_rank(int64_t rank) const {
    Bound b = cut_.of_rank(rank);
    b.scratch = rest_of(all_.scratch, scratch_);
    if (dx() == nullptr) return b;
    if (!is_given(all_, "dx_fp32")) b.tensors.erase("dx");  // both are refused
    float* const part = parts_ != nullptr ? parts_ + rank * rows() * hidden() : nullptr;
    b.tensors["dx_fp32"] = packed_floats(part, {rows(), hidden()});
    return b;
  }

  Status check_dx() const {
    const TensorRef* t = dx();
    if (t == nullptr) return {};
    if (t->shape != std::vector<int64_t>{rows(), hidden()} || t->stride[1] != 1 ||
        (rows() > 1 && t->stride[0] < hidden()))
      return invalid("dx must be [T, H], columns side by side, rows apart");
    return {};
  }
  Status sum_dx(Stream stream) const {
    const TensorRef* t = dx();
    if (t == nullptr) return {};
    return sum_of_ranks(parts_, cut_.ranks(), rows(), hidden(), t->data, t->dtype, t->stride[0],
                        stream);
  }

 private:
  const TensorRef* dx() const {
    for (const char* name : {"dx", "dx_fp32"})
      if (is_given(all_, name)) return &all_.tensors.at(name);
    return nullptr;
  }
  int64_t rows() const { return all_.tensors.at("x").shape[0]; }
  int64_t hidden() const { return all_.tensors.at("x").shape[1]; }

  Cut cut_;
  ScratchParts scratch_;
  float* parts_ = nullptr;
  const Bound& all_;
};

Implementation forward_of_shards() {
  return forward_of_ranks(fused<Statistics>(), fused<Join>(), kSharding, told_for_loss());
}

Implementation forward_backward_of_shards() {
  const Implementation forward = forward_of_shards(), backward = fused<Backward>();
  Implementation r = forward;
  r.workspace = [=](DType dtype, const Bound& all) {
    const BackwardCall call(all, nullptr);
    if (!call.cut().has_sizes()) return size_t{0};
    size_t most = 0;
    for (int64_t rank = 0; rank < call.cut().ranks(); ++rank)
      most = std::max(most, backward.workspace(dtype, call.of_rank(rank)));
    // What forward has there has served when backward begins.
    return std::max(bytes_with(call.scratch(), most), forward.workspace(dtype, all));
  };
  r.run = [=, workspace = r.workspace](DType dtype, const Bound& all, Stream stream) {
    if (all.scratch.bytes < workspace(dtype, all))
      return invalid("scratch is smaller than workspace()");
    const BackwardCall call(all, all.scratch.data);
    if (const Status s = call.check_dx(); !s.ok()) return s;
    if (const Status s = forward.run(dtype, all, stream); !s.ok()) return s;
    for (int64_t rank = 0; rank < call.cut().ranks(); ++rank)
      if (const Status s = backward.run(dtype, call.of_rank(rank), stream); !s.ok()) return s;
    return call.sum_dx(stream);
  };
  return r;
}

constexpr char kValidRows[] = "max_valid_rows";

Pass of_shards(Pass pass, Implementation implementation) {
  std::erase_if(pass.options, [](const auto& o) { return o.name == kValidRows; });
  std::erase_if(pass.properties, [](const auto& p) {
    return p.name == "ignored_rows_left_out" || p.name == "no_valid_row";
  });
  return over_ranks(std::move(pass), std::move(implementation));
}

}  // namespace

OpSpec contract() {
  OpSpec op = linear_cross_entropy::contract();
  op.name = "vocab_parallel_linear_cross_entropy";
  op.summary = kFormula;
  op.model_part = {};
  op.axes.front().most = INT32_MAX;  // join has all rows
  std::erase_if(op.option_sets, [](const OptionSet& o) { return o.contains(kValidRows); });
  for (OptionSet& form : op.further_options) form.erase(kValidRows);
  op.option_sets.push_back({{kRanksOption, "1"}});
  op.option_sets.push_back(with_results({{kRanksOption, "8"}, {"reduction", "none"}}));
  op.passes = {of_shards(op.passes[0], forward_of_shards()),
               of_shards(op.passes[1], forward_backward_of_shards())};
  op.passes[1].scale = oracle<ForwardBackward>(
      [](auto& a) { reference::forward_backward_scale(a, reference::Logits::kTwice); });
  op.passes[1].intermediate = oracle<ForwardBackward>(
      [](auto& a) { reference::forward_backward_intermediate(a, reference::Logits::kTwice); });
  return op;
}

}  // namespace tigon::vocab_parallel_linear_cross_entropy
