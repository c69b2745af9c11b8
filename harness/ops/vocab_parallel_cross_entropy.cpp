// SPDX-License-Identifier: Apache-2.0
// Contract of vocab_parallel_cross_entropy: that of cross_entropy. A call cuts all classes into the
// shards of `ranks` ranks, runs the passes of each and puts the statistics where an all-gather
// would.
#include "reference/vocab_parallel_cross_entropy.h"

#include "harness/ops/implementations.h"
#include "harness/ops/loss_plan.h"
#include "harness/spec/properties.h"

namespace tigon::cross_entropy {
OpSpec contract();
}

namespace tigon::vocab_parallel_cross_entropy {

namespace {

constexpr double kRanks = 3;

// An option that the call names, or its default.
double value(const Bound& all, const char* option, double otherwise) {
  const auto found = all.values.find(option);
  return found != all.values.end() ? found->second : otherwise;
}
bool is_given(const Bound& all, const char* tensor) {
  const auto found = all.tensors.find(tensor);
  return found != all.tensors.end() && found->second.data != nullptr;
}

// The bound call of all classes, and how it is cut.
class Cut {
 public:
  explicit Cut(const Bound& all)
      : all_(all), ranks_(static_cast<int64_t>(value(all, kRanksOption, kRanks))) {}

  int64_t ranks() const { return ranks_; }
  int64_t rows() const { return logits().shape[0]; }
  int64_t classes() const { return logits().shape[1]; }

  // The first class of a rank: each has more than the one before, some have none of a few.
  int64_t first(int64_t rank) const {
    return classes() * (rank * (rank + 1)) / (ranks_ * (ranks_ + 1));
  }

  // All that the call has, for the classes of a rank.
  Bound of_rank(int64_t rank) const {
    Bound b = of_all();
    TensorRef& logits = b.tensors.at("logits");
    logits.data =
        static_cast<char*>(logits.data) + first(rank) * static_cast<int64_t>(size_of(logits.dtype));
    logits.shape[1] = first(rank + 1) - first(rank);
    b.values["first_class"] = static_cast<double>(first(rank));
    return b;
  }
  Bound of_all() const {
    Bound b = all_;
    b.values["classes"] = static_cast<double>(classes());
    return b;
  }

 private:
  const TensorRef& logits() const { return all_.tensors.at("logits"); }

  const Bound& all_;
  const int64_t ranks_;
};

// Whether the ranks need more of each other in this call than for the loss alone.
bool needs_further(const Bound& all) {
  bool needs = value(all, "label_smoothing", 0) != 0;
  for (const char* more : {"class_weight", "z_part", "accuracy", "entropy"})
    needs = needs || is_given(all, more);
  return needs;
}

// Memory of a call: gathered statistics, further ones where they are needed, and join's scratch.
class Memory {
 public:
  Memory(const Cut& cut, bool further, void* data) : cut_(cut), data_(static_cast<char*>(data)) {
    statistics_ = take(kStatistics);
    further_ = further ? take(kFurtherStatistics) : 0;
    has_further_ = further;
  }

  size_t bytes() const { return bytes_; }
  void* scratch() const { return at(bytes_); }

  // Adds the statistics of a rank, or of all, to a call.
  void add_of_rank(int64_t rank, Bound* b) const {
    b->tensors["statistics"] = of_rank(statistics_, rank, kStatistics);
    if (has_further_) b->tensors["further"] = of_rank(further_, rank, kFurtherStatistics);
  }
  void add_gathered(Bound* b) const {
    b->tensors["statistics"] = packed(at(statistics_), {cut_.ranks(), cut_.rows(), kStatistics});
    if (has_further_)
      b->tensors["further"] = packed(at(further_), {cut_.ranks(), cut_.rows(), kFurtherStatistics});
  }

 private:
  size_t take(int64_t statistics) {
    constexpr size_t kAlignment = 256;
    const size_t first = bytes_;
    bytes_ += static_cast<size_t>(cut_.ranks() * cut_.rows() * statistics) * sizeof(float);
    bytes_ = (bytes_ + kAlignment - 1) / kAlignment * kAlignment;
    return first;
  }
  void* at(size_t offset) const { return data_ != nullptr ? data_ + offset : nullptr; }
  TensorRef of_rank(size_t offset, int64_t rank, int64_t statistics) const {
    const int64_t before = rank * cut_.rows() * statistics * static_cast<int64_t>(sizeof(float));
    return packed(at(offset + static_cast<size_t>(before)), {cut_.rows(), statistics});
  }
  static TensorRef packed(void* data, std::vector<int64_t> shape) {
    TensorRef t{data, DType::kF32, std::move(shape), {}};
    t.stride.assign(t.shape.size(), 1);
    for (size_t i = t.shape.size() - 1; i > 0; --i) t.stride[i - 1] = t.stride[i] * t.shape[i];
    return t;
  }

  const Cut& cut_;
  char* const data_;
  size_t bytes_ = 0, statistics_ = 0, further_ = 0;
  bool has_further_ = false;
};

bool has_sizes(const Cut& cut) { return cut.ranks() >= 1 && cut.rows() >= 0 && cut.classes() >= 1; }

Implementation forward_of_ranks() {
  const Implementation statistics = fused<Statistics>(), join = fused<Join>();
  Implementation r = join;
  const auto workspace = [join](DType dtype, const Bound& all) {
    const Cut cut(all);
    if (!has_sizes(cut)) return size_t{0};
    const Memory memory(cut, needs_further(all), nullptr);
    Bound b = cut.of_all();
    memory.add_gathered(&b);
    return memory.bytes() + join.workspace(dtype, b);
  };
  r.workspace = workspace;
  r.run = [statistics, join, workspace](DType dtype, const Bound& all, Stream stream) {
    if (all.scratch.bytes < workspace(dtype, all))
      return invalid("scratch is smaller than workspace()");
    const Cut cut(all);
    const Memory memory(cut, needs_further(all), all.scratch.data);
    for (int64_t rank = 0; rank < cut.ranks(); ++rank) {
      Bound b = cut.of_rank(rank);
      memory.add_of_rank(rank, &b);
      if (const Status s = statistics.run(dtype, b, stream); !s.ok()) return s;
    }
    Bound b = cut.of_all();
    memory.add_gathered(&b);
    const bool has_room = all.scratch.bytes > memory.bytes();
    b.scratch = {memory.scratch(), has_room ? all.scratch.bytes - memory.bytes() : 0};
    return join.run(dtype, b, stream);
  };
  r.prepare = {};
  return r;
}

Implementation backward_of_ranks() {
  const Implementation backward = fused<Backward>();
  Implementation r = backward;
  r.workspace = [backward](DType dtype, const Bound& all) {
    const Cut cut(all);
    return has_sizes(cut) ? backward.workspace(dtype, cut.of_rank(0)) : size_t{0};
  };
  r.run = [backward](DType dtype, const Bound& all, Stream stream) {
    const Cut cut(all);
    for (int64_t rank = 0; rank < cut.ranks(); ++rank)
      if (const Status s = backward.run(dtype, cut.of_rank(rank), stream); !s.ok()) return s;
    return Status{};
  };
  r.prepare = {};
  return r;
}

// A pass of cross_entropy over ranks, beside the chain that has all classes. That rows overlap
// shows in no shard of it.
Pass over_ranks(Pass pass, Implementation implementation) {
  implementation.in_steps = true;
  pass.implementations.front() = std::move(implementation);
  pass.options.push_back({kRanksOption, {}, kRanks, true});
  pass.invisible[kRanksOption] = "any sharding gives the loss of all classes: the oracle says so";
  pass.rows_apart.clear();
  return pass;
}

std::vector<OptionSet> rank_sets() {
  return {{{kRanksOption, "1"}},
          {{kRanksOption, "8"}},
          with_results({{kRanksOption, "8"}, {"reduction", "none"}})};
}

}  // namespace

OpSpec contract() {
  OpSpec op = cross_entropy::contract();
  op.name = "vocab_parallel_cross_entropy";
  op.summary = kFormula;
  op.model_part = {};  // one device has all ranks here, and no model is trained so
  op.axes.back().check = {8193, 7, 2, 9, 4099, 1, 8};
  // More than a batch of loads for each thread of a rank.
  op.further_shapes = {{{"T", 2}, {"V", 70001}}};
  op.further_shapes_of_one_type.clear();
  op.further_inputs.clear();
  op.option_sets = joined({op.option_sets, rank_sets()});
  op.passes = {over_ranks(op.passes[0], forward_of_ranks()),
               over_ranks(op.passes[1], backward_of_ranks())};
  return op;
}

}  // namespace tigon::vocab_parallel_cross_entropy
