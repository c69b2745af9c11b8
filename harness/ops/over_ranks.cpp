// SPDX-License-Identifier: Apache-2.0
// Calls of all classes as calls of ranks.
#include "harness/ops/over_ranks.h"

#include <algorithm>
#include <numeric>

#include "reference/vocab_parallel_cross_entropy.h"

namespace tigon {

namespace {

constexpr double kRanks = 3;

// Where the narrowest shard has many classes, all begin as trainers cut them, at multiples of
// kPadding: products of other widths are slow.
constexpr int64_t kManyClasses = 2048, kPadding = 64;

using vocab_parallel_cross_entropy::kFurtherStatistics;
using vocab_parallel_cross_entropy::kStatistics;

// An option that the call names, or its default.
double value(const Bound& call, const char* option, double otherwise) {
  const auto found = call.values.find(option);
  return found != call.values.end() ? found->second : otherwise;
}

// Whether the ranks need more of each other in this call than for the loss alone.
bool needs_further(const Bound& call) {
  bool needs = value(call, "label_smoothing", 0) != 0;
  for (const char* more : {"class_weight", "z_part", "accuracy", "entropy"})
    needs = needs || is_given(call, more);
  return needs;
}

// Floats of a token.
int64_t floats_of(const Told& told) {
  return std::accumulate(told.of_token.begin(), told.of_token.end(), int64_t{1},
                         std::multiplies<>());
}

std::vector<int64_t> behind(std::vector<int64_t> shape, const std::vector<int64_t>& more) {
  shape.insert(shape.end(), more.begin(), more.end());
  return shape;
}

// A call of forward over ranks: its statistics lie first in the scratch, which may be missing.
struct ForwardCall {
  ForwardCall(const Bound& all, const Sharding& sharding, const std::vector<Told>& told,
              void* memory)
      : cut(all, sharding), scratch(memory), gathered(cut, all, told, &scratch) {}

  Cut cut;
  ScratchParts scratch;
  Gathered gathered;

  Bound of_rank(int64_t rank) const {
    Bound b = cut.of_rank(rank);
    gathered.add_of_rank(rank, &b);
    b.scratch = rest_of(b.scratch, scratch);
    return b;
  }
  Bound of_join() const {
    Bound b = cut.of_all();
    gathered.add_all(&b);
    b.scratch = rest_of(b.scratch, scratch);
    return b;
  }
};

}  // namespace

bool is_given(const Bound& call, const char* tensor) {
  const auto found = call.tensors.find(tensor);
  return found != call.tensors.end() && found->second.data != nullptr;
}

TensorRef packed_floats(float* data, std::vector<int64_t> shape) {
  TensorRef t{data, DType::kF32, std::move(shape), {}};
  t.stride.assign(t.shape.size(), 1);
  for (size_t i = t.shape.size() - 1; i > 0; --i) t.stride[i - 1] = t.stride[i] * t.shape[i];
  return t;
}

size_t bytes_with(ScratchParts used, size_t rest) {
  used.take<char>(static_cast<int64_t>(rest));
  return used.bytes();
}

Scratch rest_of(const Scratch& all, ScratchParts used) {
  used.take<char>(0);
  if (all.bytes <= used.bytes()) return {};
  return {static_cast<char*>(all.data) + used.bytes(), all.bytes - used.bytes()};
}

Cut::Cut(const Bound& all, const Sharding& sharding) : all_(all), sharding_(sharding) {
  const auto& [first, axis] = sharding.tensors.front();
  rows_ = all.tensors.at("target").shape[0];
  classes_ = all.tensors.at(first).shape[axis];
  ranks_ = static_cast<int64_t>(value(all, kRanksOption, kRanks));
  if (sharding.least > 0) ranks_ = std::min(ranks_, classes_ / sharding.least);
}

int64_t Cut::first(int64_t rank) const {
  if (rank == ranks_) return classes_;
  const int64_t more = classes_ - ranks_ * sharding_.least;
  const auto place = [&](int64_t r) {
    return r * sharding_.least + more * (r * (r + 1)) / (ranks_ * (ranks_ + 1));
  };
  return place(1) >= kManyClasses ? place(rank) / kPadding * kPadding : place(rank);
}

Bound Cut::of_rank(int64_t rank) const {
  Bound b = of_all();
  for (const auto& [name, axis] : sharding_.tensors) {
    const auto found = b.tensors.find(name);
    if (found == b.tensors.end() || found->second.data == nullptr) continue;
    TensorRef& t = found->second;
    const int64_t before = first(rank) * t.stride[axis];
    t.data = static_cast<char*>(t.data) + before * static_cast<int64_t>(size_of(t.dtype));
    t.shape[axis] -= classes_ - (first(rank + 1) - first(rank));  // a wrong size stays wrong
  }
  b.values["first_class"] = static_cast<double>(first(rank));
  return b;
}

Bound Cut::of_all() const {
  Bound b = all_;
  b.values["classes"] = static_cast<double>(classes_);
  return b;
}

Gathered::Gathered(const Cut& cut, const Bound& all, const std::vector<Told>& told,
                   ScratchParts* memory)
    : ranks_(cut.ranks()), rows_(cut.rows()) {
  const int64_t tokens = cut.has_sizes() ? ranks_ * rows_ : 0;
  for (const Told& t : told)
    if (!t.is_needed || t.is_needed(all))
      places_.push_back({&t, memory->take<float>(tokens * floats_of(t))});
}

void Gathered::add_of_rank(int64_t rank, Bound* b) const {
  for (const auto& [told, data] : places_) {
    float* const own = data != nullptr ? data + rank * rows_ * floats_of(*told) : nullptr;
    b->tensors[told->tensor] = packed_floats(own, behind({rows_}, told->of_token));
  }
}

void Gathered::add_all(Bound* b) const {
  for (const auto& [told, data] : places_)
    b->tensors[told->tensor] = packed_floats(data, behind({ranks_, rows_}, told->of_token));
}

std::vector<Told> told_for_loss() {
  return {{"statistics", {kStatistics}}, {"further", {kFurtherStatistics}, needs_further}};
}

Implementation forward_of_ranks(Implementation statistics, Implementation join, Sharding sharding,
                                std::vector<Told> told) {
  Implementation r = join;
  const auto workspace = [=](DType dtype, const Bound& all) {
    const ForwardCall call(all, sharding, told, nullptr);
    if (!call.cut.has_sizes()) return size_t{0};
    size_t most = join.workspace(dtype, call.of_join());
    for (int64_t rank = 0; rank < call.cut.ranks(); ++rank)
      most = std::max(most, statistics.workspace(dtype, call.of_rank(rank)));
    return bytes_with(call.scratch, most);
  };
  r.workspace = workspace;
  r.run = [=](DType dtype, const Bound& all, Stream stream) {
    if (all.scratch.bytes < workspace(dtype, all))
      return invalid("scratch is smaller than workspace()");
    const ForwardCall call(all, sharding, told, all.scratch.data);
    for (int64_t rank = 0; rank < call.cut.ranks(); ++rank)
      if (const Status s = statistics.run(dtype, call.of_rank(rank), stream); !s.ok()) return s;
    return join.run(dtype, call.of_join(), stream);
  };
  r.prepare = {};
  return r;
}

Implementation each_rank(Implementation of_shard, Sharding sharding) {
  Implementation r = of_shard;
  r.workspace = [=](DType dtype, const Bound& all) {
    const Cut cut(all, sharding);
    return cut.has_sizes() ? of_shard.workspace(dtype, cut.of_rank(0)) : size_t{0};
  };
  r.run = [=](DType dtype, const Bound& all, Stream stream) {
    const Cut cut(all, sharding);
    for (int64_t rank = 0; rank < cut.ranks(); ++rank)
      if (const Status s = of_shard.run(dtype, cut.of_rank(rank), stream); !s.ok()) return s;
    return Status{};
  };
  r.prepare = {};
  return r;
}

Pass over_ranks(Pass pass, Implementation implementation) {
  implementation.in_steps = true;
  pass.implementations.front() = std::move(implementation);
  pass.options.push_back({kRanksOption, {}, kRanks, true});
  pass.invisible[kRanksOption] =
      "any sharding gives the results of all classes: the oracle says so";
  return pass;
}

Pass over_shards(Pass pass, Implementation implementation) {
  pass.rows_apart.clear();
  return over_ranks(std::move(pass), std::move(implementation));
}

}  // namespace tigon
