// SPDX-License-Identifier: Apache-2.0
// tigon check: every implementation against the oracle.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

#include "harness/cli/commands.h"
#include "harness/cli/commands/check_gtest.h"
#include "harness/cli/commands/check_requests.h"
#include "harness/cli/stages.h"
#include "kernels/device/device_limits.h"

namespace tigon::cli {
namespace {

// Throws RecordError when no case can be saved in the folder.
void require_writable(const std::filesystem::path& folder) {
  constexpr size_t kProbe = size_t{1} << 16;  // bytes; a disk that is nearly full takes a few
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const std::filesystem::path file = folder / ".probe";
  std::ofstream probe(file, std::ios::binary);
  probe << std::string(kProbe, '\0');
  probe.close();
  const bool written = static_cast<bool>(probe);
  std::filesystem::remove(file, error);
  if (!written)
    throw RecordError(
        fmt::format("--save: cannot write into {}; name another folder", folder.string()));
}

constexpr const char* kExamples =
    "Examples:\n"
    "  ./tigon check                                  all ops\n"
    "  ./tigon check rms_norm --dtype bf16 --impl fused\n"
    "  ./tigon check --op cross_entropy -a V=[1000,32k] -a T[pow2]=[0:4]\n"
    "  ./tigon check --case 'rope/forward/fused/f32/T=3,Q=2,K=1,D=16,inputs=normal,seed=42'\n"
    "  ./tigon check --filter 'backward.*w=absent' --exclude naive --shard 0/4\n"
    "  ./tigon check --model llama3-8b --budget 60s   a model's sizes, pairwise, for a minute\n"
    "  ./tigon check --impl-from ./libmine.so         ops of a plug-in (harness/plugin)\n"
    "  ./tigon check --prop row_independence,offsets  exact properties, without the oracle\n"
    "  ./tigon check --trace rms_norm                 memory traffic beside the least bytes\n"
    "  ./tigon check --op rope --save /tmp/cases      tensors of every case as .npy files\n"
    "  ./tigon check --resume RUN                     goes on with an interrupted run\n"
    "On the host the tiny cases also run in the executor that checks every access of a kernel,\n"
    "and their long rows in one that gives kernels the limits of a GPU before sm_90.\n"
    "GoogleTest's --gtest_filter and --gtest_list_tests choose among the cases of one executor\n"
    "(--executor, else the fast one); --gtest_output, --gtest_shuffle and --gtest_fail_fast are\n"
    "about that executor's cases, and those of the other run as well.";

void add_options(const Command& command, CheckOptions* options) {
  add_selection(command, &options->select);
  command.list("--prop", &options->properties,
               "only the cases of these properties, e.g. row_independence (./tigon describe OP "
               "lists them)");
  command.option("--executor", &options->executor, "fast, checked or sm_80 (host), or cuda (GPU)");
  command.option("--jobs", &options->jobs, "child processes at a time (default: one per core)")
      .not_negative();
  command.option("--save", &options->save,
                 "folder for every case's inputs, options, oracle's and implementation's "
                 "outputs as .npy");
  command
      .option("--shrink", &options->shrink_s,
              "seconds to look again at the first failing case of an op, pass and "
              "implementation, and for the smallest that fails like it (default 5, 0: not)")
      .not_negative();
  command.flag("--trace", &options->trace, "count memory traffic instead (host)");
  Option quick = command.flag("--quick", &options->quick,
                              "the tiny cases only, wide rows in one element type each");
  command
      .option("--tier", &options->tier,
              "tiny, check (the default), sweep (measured sizes) or huge (offsets beyond 2^31)")
      .excludes(quick);
  command.option("--as", &options->as, "take the launch paths of a GPU before sm_90 on any device")
      .one_of({kAsSm80});
  command.flag("--headroom", &options->headroom,
               "also print how near passed cases come to their budget");
  command.flag(
      "--coverage", &options->coverage,
      "also say which kernels no case launched, and which options, input sets, layouts and "
      "properties met on each (host)");
  command.flag("--lines", &options->lines,
               "also count the lines and branches of the kernels' sources that the cases take, in "
               "a slow second run (host)");
  add_plugin(command, &options->plugin);
  command.flag("-v,--verbose", &options->verbose, "a line for every case");
}

void run_check(CheckOptions* options, const Command& command, const Output& output,
               Program* program) {
  options->gtest_flags = program->gtest_flags;
  init_googletest(options->gtest_flags);
  if (!options->as.empty()) setenv(kAsVariable, options->as.c_str(), 1);  // of the children, too
  if (options->trace && default_executor() == "cuda")
    throw UsageError("--trace counts in the host executor: ./tigon --device host check --trace");
  if (options->lines && default_executor() == "cuda")
    throw UsageError("--lines counts in the host executor: ./tigon --device host check --lines");
  if (options->coverage && default_executor() == "cuda")
    throw UsageError("--coverage asks the host executor: ./tigon --device host check --coverage");
  SessionOptions session = session_options(*program, output, options->select.seed);
  use_plugin(command, &options->plugin, &options->select);
  const auto requests = requests_of(*options);  // a wrong command line makes no results folder
  if (!options->save.empty()) require_writable(options->save);
  if (testing::GTEST_FLAG(list_tests) && !requests.empty())
    return run_through_googletest(requests.back(), [](const CheckResult&) {});
  say_what_gtest_leaves_out(*options, requests.size());
  session.shard = shard_of(options->select.shard);
  program->exit_code = run_session(session, [&](Session& s) {
    return options->trace ? trace_stage(s, *options) : check_stage(s, *options);
  });
}

}  // namespace

void add_check(Command command, Program* program) {
  command.footer(kExamples);
  const auto options = std::make_shared<CheckOptions>();
  const auto output = std::make_shared<Output>();
  const auto positional = std::make_shared<std::vector<std::string>>();
  command.option("ops", positional.get(), "ops, as --op");
  add_options(command, options.get());
  add_output(command, output.get());
  add_resume(command);
  command.run([=] {
    auto& ops = options->select.ops;
    ops.insert(ops.end(), positional->begin(), positional->end());
    run_check(options.get(), command, *output, program);
  });
}

}  // namespace tigon::cli
