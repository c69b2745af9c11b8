// SPDX-License-Identifier: Apache-2.0
// What the contracts of ops over ranks share. Their calls are those of the op that has all classes:
// a call cuts them into the shards of `ranks` ranks, runs the passes of each and puts the
// statistics where an all-gather would.
#pragma once
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "harness/spec/op_spec.h"
#include "kernels/device/scratch_parts.h"

namespace tigon {

// Whether a call has this tensor.
bool is_given(const Bound& call, const char* tensor);

// How the classes of a call are cut.
struct Sharding {
  // Tensors of a rank's classes, and the axis that they lie in. The first is always given.
  std::vector<std::pair<const char*, size_t>> tensors;
  int64_t least;  // classes of each rank; with fewer in all there are fewer ranks
};

// A tensor of float that ranks tell each other.
struct Told {
  const char* tensor;
  std::vector<int64_t> of_token;                         // its shape behind the tokens
  std::function<bool(const Bound& all)> is_needed = {};  // in a call; absent: always
};

// The bound call of all classes, and its shards. Refers to the call and the sharding.
class Cut {
 public:
  Cut(const Bound& all, const Sharding& sharding);

  bool has_sizes() const { return ranks_ >= 1 && rows_ >= 0 && classes_ >= 1; }
  int64_t ranks() const { return ranks_; }
  int64_t rows() const { return rows_; }
  int64_t classes() const { return classes_; }

  // The first class of a rank: each has at least as many as the one before.
  int64_t first(int64_t rank) const;
  // All that the call has, for the classes of a rank, and for all.
  Bound of_rank(int64_t rank) const;
  Bound of_all() const;

 private:
  const Bound& all_;
  const Sharding& sharding_;
  int64_t rows_, classes_, ranks_;
};

// What all ranks tell, in the memory of a call that needs some of it.
class Gathered {
 public:
  Gathered(const Cut& cut, const Bound& all, const std::vector<Told>& told, ScratchParts* memory);

  // Adds what a rank tells, or what all do, to a call.
  void add_of_rank(int64_t rank, Bound* b) const;
  void add_all(Bound* b) const;

 private:
  struct Place {
    const Told* told;
    float* data;
  };
  int64_t ranks_, rows_;
  std::vector<Place> places_;
};

// What ranks tell each other for a cross entropy.
std::vector<Told> told_for_loss();

// The statistics of each rank, and join over them.
Implementation forward_of_ranks(Implementation statistics, Implementation join, Sharding sharding,
                                std::vector<Told> told);

// A pass that each rank makes alone of its shard.
Implementation each_rank(Implementation of_shard, Sharding sharding);

// A pass of an op with all classes, over ranks and beside the chain that has all classes.
Pass over_ranks(Pass pass, Implementation implementation);
// The same of logits in shards: that rows overlap shows in none of them.
Pass over_shards(Pass pass, Implementation implementation);

// A contiguous tensor of floats.
TensorRef packed_floats(float* data, std::vector<int64_t> shape);

// A part of a call has the scratch behind what the call itself has there: how much there is in all,
// and the part's.
size_t bytes_with(ScratchParts used, size_t rest);
Scratch rest_of(const Scratch& all, ScratchParts used);

}  // namespace tigon
