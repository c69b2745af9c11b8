// Planted faults of accesses and synchronisation. On the host the checking executor must name them;
// some change no number at all.
#include "harness/mutants/mutant.h"

namespace tigon {

namespace {

constexpr const char* kRace =
    "a race: on a GPU it is lost now and then, not in every run; compute-sanitizer covers it there";
constexpr const char* kUndefined = "undefined on a GPU: it may hang and takes the device with it";

const std::vector<std::string> kBothExecutors = {"fast", "checked"};

// A fault of this group that the checking executor must catch.
Mutant memory(Mutant m) {
  m.group = MutantGroup::kMemorySync;
  if (m.executors == std::vector<std::string>{"fast"}) m.executors = {"checked"};
  return m;
}

constexpr const char* kOneTensor =
    "it adds one tensor of column sums, so that nobody has read the shared array before";

std::vector<Mutant> row_access() {
  const std::vector<MutantTarget> forward = {{"rms_norm", {"forward"}},
                                             {"add_rms_norm", {"forward"}}};
  const std::vector<MutantTarget> backward = {{"rms_norm", {"backward"}},
                                              {"add_rms_norm", {"backward"}}};
  const std::vector<MutantTarget> sums = {
      {"rms_norm", {"backward"}}, {"add_rms_norm", {"backward"}}, {"layer_norm", {"backward"}}};
  std::vector<MutantTarget> sums_in_turn = sums;
  sums_in_turn.push_back({"softmax", {"backward"}});
  return {
      {.name = "rms_norm.tail_unmasked",
       .catalogue = 1,
       .what = "the row is taken to end at a multiple of a vector",
       .targets = forward,
       .hint = "T=3,H=33,inputs=normal",
       .executors = kBothExecutors},
      {.name = "rms_norm.row_overrun",
       .catalogue = 42,
       .what = "writes one piece past the row",
       .targets = forward,
       .hint = "inputs=normal",
       .executors = kBothExecutors},
      {.name = "rms_norm.read_past_row",
       .catalogue = 42,
       .what = "reads one piece past the row",
       .targets = forward,
       .hint = "inputs=normal",
       .host_only = "what is read is not used: only an executor that watches loads can tell"},
      {.name = "rms_norm.alignment_unchecked",
       .catalogue = 46,
       .what = "16-byte accesses of rows that are not aligned",
       .targets = {{"rms_norm", {"forward", "backward"}},
                   {"add_rms_norm", {"forward", "backward"}}},
       .hint = "shift=",
       .executors = kBothExecutors},
      {.name = "rms_norm.idle_rows_return",
       .catalogue = 40,
       .what = "threads without a row return before their warp adds",
       .targets = forward,
       .hint = "T=3,H=8,inputs=normal",
       .host_only = kUndefined,
       .equivalents = {{.proof = "a collective waits only for threads of its mask that have not "
                                 "ended, each row adds within its own lanes, and a block that owns "
                                 "a row alone has no idle threads"}}},
      {.name = "rms_norm.partial_not_set",
       .catalogue = 41,
       .what = "the first row of a block adds to what the workspace held",
       .targets = backward,
       .hint = "H=(4099|16385),inputs=normal",
       .executors = kBothExecutors},
      {.name = "add_rms_norm.dh_read_past_row",
       .catalogue = 42,
       .what = "reads one piece past the row of dh",
       .targets = {{"add_rms_norm", {"backward"}}},
       .hint = "inputs=normal",
       .host_only = "what is read is not used: only an executor that watches loads can tell"},
      {.name = "layer_norm.row_overrun",
       .catalogue = 42,
       .what = "writes one piece past the row",
       .targets = {{"layer_norm", {"forward"}}},
       .hint = "inputs=normal",
       .executors = kBothExecutors},
      {.name = "layer_norm.parts_not_awaited",
       .catalogue = 40,
       .what = "parts of other warps are read before they are written",
       .targets = {{"layer_norm", {"forward"}}},
       .hint = "H=4099,inputs=normal",
       .host_only = kRace},
      {.name = "layer_norm.alignment_unchecked",
       .catalogue = 46,
       .what = "16-byte accesses of rows that are not aligned",
       .targets = {{"layer_norm", {"forward", "backward"}}},
       .hint = "shift=",
       .executors = kBothExecutors},
      {.name = "layer_norm.partial_not_set",
       .catalogue = 41,
       .what = "the first row of a block adds to what the workspace held",
       .targets = {{"layer_norm", {"backward"}}},
       .hint = "H=(4099|16385),inputs=normal",
       .executors = kBothExecutors},
      {.name = "column_sums.no_barrier_before",
       .catalogue = 40,
       .what = "sums of the previous call are overwritten while they are read",
       .targets = sums,
       .host_only = kRace,
       .equivalents = {{.op = "rms_norm", .proof = kOneTensor},
                       {.op = "add_rms_norm", .proof = kOneTensor}}},
      {.name = "column_sums.no_barrier_after",
       .catalogue = 40,
       .what = "sums of other groups are read before they are written",
       .targets = sums,
       .hint = "inputs=normal",
       .host_only = kRace},
      {.name = "column_sums.no_barrier_in_sum",
       .catalogue = 40,
       .what = "sums of other warps are read before they are written",
       .targets = sums,
       .hint = "inputs=normal",
       .host_only = kRace},
      {.name = "row_queue.not_awaited",
       .catalogue = 40,
       .what = "a piece is read before its copy has landed",
       .targets = sums,
       .hint = "H=\\d*[02468],inputs=normal",
       .host_only = kRace},
      {.name = "reduce.one_turn",
       .catalogue = 40,
       .what = "the next row's sum overwrites what this row's still reads",
       .targets = sums_in_turn,
       .hint = "(H=4099|V=28609),inputs=normal",
       .host_only = kRace},
  };
}

std::vector<Mutant> stream_access() {
  return {
      {.name = "rope.head_overrun",
       .catalogue = 42,
       .what = "turns one head more than there are",
       .targets = {{"rope", {"forward", "backward"}}},
       .hint = "T=3",
       .executors = kBothExecutors},
      {.name = "rope.alignment_unchecked",
       .catalogue = 46,
       .what = "16-byte accesses of heads that are not aligned",
       .targets = {{"rope", {"forward", "backward"}}},
       .hint = "shift=",
       .executors = kBothExecutors},
      {.name = "stream_rows.tail_unmasked",
       .catalogue = 42,
       .what = "the last vector of a row is written whole",
       .targets = {{"swiglu", {"forward", "backward"}}, {"geglu", {"forward", "backward"}}},
       .hint = "inputs=normal",
       .executors = kBothExecutors},
      {.name = "stream_rows.alignment_unchecked",
       .catalogue = 46,
       .what = "16-byte accesses of rows that are not aligned",
       .targets = {{"swiglu", {"forward", "backward"}}, {"geglu", {"forward", "backward"}}},
       .hint = "shift=",
       .executors = kBothExecutors},
  };
}

std::vector<Mutant> softmax_access() {
  const std::vector<MutantTarget> both = {{"softmax", {"forward", "backward"}}};
  return {
      {.name = "softmax.row_overrun",
       .catalogue = 42,
       .what = "writes one piece past the row",
       .targets = both,
       .hint = "inputs=normal",
       .executors = kBothExecutors},
      {.name = "softmax.alignment_unchecked",
       .catalogue = 46,
       .what = "16-byte accesses of rows that are not aligned alike",
       .targets = both,
       .hint = "(shift|gap)=",
       .executors = kBothExecutors},
      {.name = "softmax.copy_not_awaited",
       .catalogue = 40,
       .what = "a piece is read before its copy has landed",
       .targets = both,
       .hint = "inputs=normal",
       .host_only = kRace},
      {.name = "softmax.shared_too_small",
       .catalogue = 42,
       .what = "shared memory has room for half of the pieces",
       .targets = both,
       .hint = "V=(4099|32001|40001)",
       .host_only = kUndefined},
      {.name = "cluster_reduce.no_barrier",
       .catalogue = 40,
       .what = "parts of other warps are read before they are written",
       .targets = both,
       .hint = "V=\\d{4,}",
       .host_only = kRace},
      {.name = "cluster_reduce.one_turn",
       .catalogue = 40,
       .what = "the next row's parts are written while this row's are read",
       .targets = both,
       .hint = "T=33,V=\\d{4,}",
       .host_only = kRace},
  };
}

std::vector<Mutant> wide_access() {
  const std::vector<MutantTarget> ring = {{"softmax", {"backward"}}},
                                  held = {{"softmax", {"forward"}},
                                          {"cross_entropy", {"forward_backward"}}};
  return {
      {.name = "row_ring.not_awaited",
       .catalogue = 40,
       .what = "a chunk of a wide row is read before its copy has landed",
       .targets = ring,
       .hint = "V=28609",
       .host_only = kRace},
      {.name = "row_ring.requested_early",
       .catalogue = 40,
       .what = "the next chunk is requested over one that has not been read for the last time",
       .targets = ring,
       .hint = "V=28609",
       .host_only = kRace},
      {.name = "cluster_exchange.not_awaited",
       .catalogue = 40,
       .what = "values of other blocks are read before they have landed",
       .targets = held,
       .hint = "V=200003",
       .host_only = kRace},
      {.name = "cluster_exchange.not_begun",
       .catalogue = 40,
       .what = "values are sent to blocks that may not have set up what counts them",
       .targets = held,
       .hint = "V=200003",
       .host_only = kRace},
      {.name = "held_row.every_block_holds",
       .catalogue = 40,
       .what = "every block of a cluster writes the target's gradient, and not by who holds it",
       .targets = {{"cross_entropy", {"forward_backward"}}},
       .hint = "V=200003",
       .host_only = kRace},
      {.name = "held_row.not_awaited",
       .catalogue = 40,
       .what = "what shared memory holds of a row is read before its copy has landed",
       .targets = held,
       .hint = "V=(40001|70001|100003)",
       .host_only = kRace},
      {.name = "block_join.no_barrier",
       .catalogue = 40,
       .what = "a block's values are joined before every warp has written its own",
       .targets = held,
       .hint = "V=(32001|40001)",
       .host_only = kRace},
  };
}

std::vector<Mutant> loss_access() {
  const std::vector<MutantTarget> losses = {
      {"cross_entropy", {"forward", "forward_backward"}},
      {"linear_cross_entropy", {"forward", "forward_backward"}},
  };
  const std::vector<MutantTarget> in_place = {{"cross_entropy", {"forward_backward"}},
                                              {"linear_cross_entropy", {"forward_backward"}}};
  return {
      {.name = "reduce.no_barrier_before",
       .catalogue = 40,
       .what = "a block's sum overwrites what the previous one still reads",
       .targets = {{"cross_entropy", {"forward", "forward_backward"}}},
       .hint = "inputs=normal",
       .host_only = kRace},
      {.name = "reduce.no_barrier_after",
       .catalogue = 40,
       .what = "a block's sum is read before every warp has written its part",
       .targets = losses,
       .hint = "inputs=normal",
       .host_only = kRace},
      {.name = "reduce.half_mask",
       .catalogue = 40,
       .what = "a shuffle of all lanes names the lower half",
       .targets = losses,
       .hint = "inputs=normal",
       .host_only = kUndefined},
      {.name = "loss.target_read_late",
       .catalogue = 27,
       .what = "the target's logit is read when its gradient may have replaced it",
       .targets = in_place,
       .hint = "V=33,inputs=normal",
       .host_only = kRace},
      {.name = "loss.row_overrun",
       .catalogue = 42,
       .what = "writes one element past the row",
       .targets = {{"cross_entropy", {"backward", "forward_backward"}}},
       .hint = "inputs=normal",
       .executors = kBothExecutors},
      {.name = "loss.count_skipped",
       .catalogue = 41,
       .what = "the number of rows is never written to the workspace",
       .targets = {{"cross_entropy", {"forward", "backward", "forward_backward"}},
                   {"linear_cross_entropy", {"forward", "forward_backward"}}},
       .hint = "inputs=normal",
       .executors = kBothExecutors},
      {.name = "loss.shared_too_small",
       .catalogue = 42,
       .what = "shared memory lacks room for the last vector of the row",
       .targets = in_place,
       .hint = "V=33,inputs=normal",
       .host_only = "shared memory is given in larger steps than the vector that is missing"},
      {.name = "loss.no_cluster_sync_before",
       .catalogue = 40,
       .what = "statistics of other blocks are read before they are written",
       .targets = {{"cross_entropy", {"forward_backward"}}},
       .hint = "V=800003",
       .host_only = kRace},
      {.name = "loss.cluster_leaves_early",
       .catalogue = 40,
       .what = "a block ends while others read its shared memory",
       .targets = {{"cross_entropy", {"forward_backward"}}},
       .hint = "V=800003",
       .host_only = kUndefined},
  };
}

}  // namespace

std::vector<Mutant> memory_mutants() {
  std::vector<Mutant> mutants;
  for (const auto& part :
       {row_access(), stream_access(), softmax_access(), wide_access(), loss_access()})
    for (const Mutant& m : part) mutants.push_back(memory(m));
  return mutants;
}

}  // namespace tigon
