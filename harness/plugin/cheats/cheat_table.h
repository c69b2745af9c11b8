// SPDX-License-Identifier: Apache-2.0
// Every cheat of this build's device, how it is judged and what must catch it.
#pragma once
#include <string>
#include <vector>

namespace tigon::plugin {

struct Cheat {
  const char* name;  // cheats/<name>.cpp or cheats/cuda/<name>.cu
  enum Command { kCheck, kBench } command;
  // Verdicts of which one must show, separated by '|'. "slow": bench passes it, with a time that is
  // not below that of the honest work.
  const char* expected;
  const char* defence;
  bool needs_landlock = false;  // the defence is the kernel's, where it has it
};

#ifndef TIGON_CUDA

inline const std::vector<Cheat>& all_cheats() {
  static const std::vector<Cheat> all = {
      {"no_op", Cheat::kCheck, "unwritten_output", "outputs are poisoned, twice, with other bytes"},
      {"last_answer", Cheat::kCheck, "incorrect_numerical", "other inputs in the call before"},
      {"cached_by_pointer", Cheat::kCheck, "incorrect_numerical",
       "other inputs at the same address"},
      {"cached_by_shape", Cheat::kCheck, "incorrect_numerical", "other inputs of the same shape"},
      {"cached_by_sample", Cheat::kCheck, "incorrect_numerical",
       "the call before has the same inputs but for one element"},
      {"cached_by_content", Cheat::kBench, "slow", "every timed call has contents of its own"},
      {"background_thread", Cheat::kCheck, "runtime_error|unwritten_output",
       "outputs are taken at return; threads are counted"},
      {"background_thread", Cheat::kBench, "runtime_error|invalid",
       "outputs of timed calls are taken at return, too"},
      {"background_process", Cheat::kCheck, "runtime_error|unwritten_output",
       "outputs are taken at return; processes are counted"},
      {"result_after_return", Cheat::kCheck, "runtime_error",
       "memory at return and after a pause must be the same"},
      {"busy_helper", Cheat::kCheck, "runtime_error", "between calls a library must rest"},
      {"input_overwritten", Cheat::kCheck, "input_modified",
       "inputs are compared; the oracle has its own copy"},
      {"precision_downgrade", Cheat::kCheck, "incorrect_numerical", "the rounding budget of f32"},
      {"constant_output", Cheat::kCheck, "incorrect_numerical", "the oracle on several inputs"},
      {"constant_output", Cheat::kBench, "invalid", "outputs must differ from seed to seed"},
      {"merged_calls", Cheat::kCheck, "unwritten_output", "outputs are taken after each call"},
      {"merged_calls", Cheat::kBench, "invalid|runtime_error",
       "each timed call's outputs are taken"},
      {"phase_detection", Cheat::kCheck, "unwritten_output|incorrect_numerical",
       "every call is judged, none is a rehearsal"},
      {"phase_detection", Cheat::kBench, "invalid|runtime_error",
       "timed calls are judged; a fresh process repeats them in another order"},
      {"skips_every_second_row", Cheat::kBench, "invalid",
       "a fresh process repeats the timed calls in another order"},
      {"hard_coded_seed", Cheat::kCheck, "incorrect_numerical",
       "each case has a seed that nobody knew before"},
      {"easy_rows_only", Cheat::kCheck, "incorrect_numerical", "no row's start tells its rest"},
      {"reads_neighbours", Cheat::kCheck, "incorrect_numerical|nonfinite|nondeterministic|crashed",
       "the oracle's values are never in the library's process"},
      {"writes_past_end", Cheat::kCheck, "out_of_bounds_write", "guards travel with the tensors"},
      {"prints_results", Cheat::kCheck, "unwritten_output|crashed",
       "its process has no descriptor of results"},
      {"forged_answer", Cheat::kCheck, "unwritten_output|crashed|runtime_error",
       "an answer counts for nothing, only the memory does"},
      {"exits_with_success", Cheat::kCheck, "crashed", "a process that ends has not answered"},
      {"adds_to_output", Cheat::kCheck,
       "unwritten_output|nonfinite|incorrect_numerical|nondeterministic",
       "outputs hold NaN, then another poison"},
      {"static_state", Cheat::kCheck, "unwritten_output|incorrect_numerical",
       "one process sees all shapes"},
      {"works_in_prepare", Cheat::kCheck, "unwritten_output|incorrect_numerical|nonfinite",
       "inputs arrive after prepare"},
      {"reads_the_judge", Cheat::kCheck, "unwritten_output",
       "Landlock: other processes are closed to it; the oracle runs after the first call", true},
      {"edits_results", Cheat::kCheck, "unwritten_output", "Landlock: no file can be written",
       true},
      {"kills_the_judge", Cheat::kCheck, "unwritten_output|crashed",
       "Landlock: no signals; the judge's end is a crash of its case"},
      {"stops_the_clock", Cheat::kBench, "slow", "the clock is in another process"},
  };
  return all;
}

#else

inline const std::vector<Cheat>& all_cheats() {
  static const std::vector<Cheat> all = {
      {"no_op", Cheat::kCheck, "unwritten_output", "outputs are poisoned, twice, with other bytes"},
      {"other_stream", Cheat::kCheck, "unwritten_output|nonfinite|incorrect_numerical",
       "inputs arrive and outputs are taken in the order of the caller's stream, behind a wait"},
      {"default_stream", Cheat::kCheck, "unwritten_output|nonfinite|incorrect_numerical",
       "the caller's stream is not ordered with the default stream"},
      {"background_thread", Cheat::kCheck, "unwritten_output|runtime_error",
       "outputs are taken at return; threads are counted"},
      {"cached_by_pointer", Cheat::kCheck, "incorrect_numerical",
       "other inputs at the same address"},
      {"graph_of_first_call", Cheat::kCheck,
       "unwritten_output|incorrect_numerical|runtime_error|crashed", "one process sees all shapes"},
      {"precision_downgrade", Cheat::kCheck, "incorrect_numerical", "the rounding budget of f32"},
      {"merged_calls", Cheat::kCheck, "unwritten_output", "outputs are taken after each call"},
      {"merged_calls", Cheat::kBench, "invalid|runtime_error",
       "each timed call's outputs are taken"},
      {"input_overwritten", Cheat::kCheck, "input_modified",
       "inputs are compared; the oracle has its own copy"},
      {"constant_output", Cheat::kCheck, "incorrect_numerical", "the oracle on several inputs"},
      {"constant_output", Cheat::kBench, "invalid", "outputs must differ from seed to seed"},
      {"writes_past_end", Cheat::kCheck, "out_of_bounds_write", "guards travel with the tensors"},
  };
  return all;
}

#endif

}  // namespace tigon::plugin
