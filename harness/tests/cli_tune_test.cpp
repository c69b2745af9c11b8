// SPDX-License-Identifier: Apache-2.0
// tune: writes a table as data, and a table is used on its own machine only.
#include <gtest/gtest.h>

#include "harness/run/check.h"
#include "harness/tests/run_program.h"
#include "kernels/device/launch_file.h"
#include "kernels/device/runtime.h"

namespace tigon {
namespace {

TEST(TigonProgram, tune_writes_a_table_that_other_machines_refuse) {
  if (default_executor() == "cuda") GTEST_SKIP() << "its figures are those of the host executor";
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "table.tsv").string();
  const ProgramRun run = run_tigon({"tune", "rms_norm", "--pass", "forward", "--dtype", "bf16",
                                    "-a", "T=4", "-a", "H=512", "--out", path});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_NE(run.out.find("host executor, no kernel speed"), std::string::npos) << run.out;
  EXPECT_EQ(run.last_line(), "1 passed, 0 failed, 0 skipped");
  EXPECT_LE(read_launch_file(path).size(), 1u);  // none where the usual shape is the fastest

  const LaunchEntry elsewhere = {"NVIDIA Elsewhere", "2026-11-22", "cuda", "", {"t", 1},
                                 {256, 2, 1},        "",           0,      0};
  write_launch_file(path, {elsewhere});
  const ProgramRun refused = run_tigon({"trace", "rms_norm/forward/fused/bf16/T=4,H=512"},
                                       {std::string(kLaunchTableVariable) + "=" + path});
  EXPECT_EQ(refused.exit_code, kExitUsage);
  EXPECT_NE(refused.err.find("was made on NVIDIA Elsewhere"), std::string::npos) << refused.err;
}

TEST(TigonProgram, tune_says_before_it_measures_where_it_cannot_write) {
  const ProgramRun run =
      run_tigon({"tune", "rms_norm", "--pass", "forward", "--dtype", "bf16", "-a", "T=4", "-a",
                 "H=512", "--out", "/no/such/folder/table.tsv"});
  EXPECT_EQ(run.exit_code, kExitInfrastructure);
  EXPECT_NE(run.err.find("cannot write /no/such/folder/table.tsv"), std::string::npos) << run.err;
  EXPECT_EQ(run.out.find("rms_norm/forward"), std::string::npos) << run.out;
}

// An entry of a table, and what the trace of a case shows of its launch before and after.
struct Chosen {
  const char* id;
  LaunchTable::Key key;
  LaunchShape shape;
  const char *before, *after;
};
const Chosen kChosen[] = {
    {"rms_norm/forward/fused/bf16/T=4,H=512",
     {"rms_norm.forward.vectors", 64},
     {256, 4, 4},
     "8, 32, 4, 8, false>",
     "8, 256, 4, 4, false>"},
    {"rms_norm/backward/fused/bf16/T=4,H=512",
     {"rms_norm.backward.vectors", 64},
     {224, 3, 2, 2},
     "8, 32, 2, 4, 2, false>",
     "8, 224, 3, 2, 2, false>"},
    {"softmax/forward/fused/bf16/T=4,V=4096",
     {"softmax.forward.vectors", 512},
     {512, 8, 1, 1, 8},
     "8, 128, 8, 6, false>",
     "8, 512, 8, 1, true>"},
    {"cross_entropy/forward_backward/fused/bf16/T=4,V=4096",
     {"loss_rows.forward_backward", 512},
     {512, 0, 3, 1, 4},
     "128, 1, ",
     "512, 3, "},
    {"swiglu/forward/fused/bf16/T=4,F=4096",
     {"swiglu.forward", 512},
     {512, 1, 4},
     "8, 256, 8>",
     "8, 512, 4>"},
    {"rope/backward/fused/bf16/T=4,Q=32,K=8,D=64", {"rope", 80}, {64, 4, 16}, "256, 4>", "64, 16>"},
};

TEST(TigonProgram, takes_the_shapes_of_a_table) {
  if (default_executor() == "cuda") GTEST_SKIP() << "traces are of the host executor";
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "table.tsv").string();
  std::vector<LaunchEntry> entries;
  for (const Chosen& c : kChosen)
    entries.push_back(
        {current_device_name(), "2026-11-22", "host", "", c.key, c.shape, c.id, 0, 0});
  write_launch_file(path, entries);
  const std::vector<std::string> used = {std::string(kLaunchTableVariable) + "=" + path};
  for (const Chosen& c : kChosen) {
    const ProgramRun plain = run_tigon({"trace", c.id}), tuned = run_tigon({"trace", c.id}, used);
    EXPECT_NE(plain.out.find(c.before), std::string::npos) << plain.out << plain.err;
    EXPECT_EQ(plain.out.find(c.after), std::string::npos) << plain.out;
    EXPECT_NE(tuned.out.find(c.after), std::string::npos) << tuned.out << tuned.err;
    EXPECT_NE(tuned.err.find("launch table"), std::string::npos) << tuned.err;
  }
}

TEST(TigonProgram, tune_says_when_there_is_nothing_to_choose) {
  if (default_executor() == "cuda") GTEST_SKIP() << "takes a GPU's time";
  const TemporaryFolder folder;
  const ProgramRun run =
      run_tigon({"tune", "swiglu", "--impl", "naive", "--dtype", "bf16", "-a", "T=4", "-a", "F=64",
                 "--out", (folder.path() / "t.tsv").string()});
  EXPECT_EQ(run.exit_code, kExitNothing) << run.out << run.err;
}

}  // namespace
}  // namespace tigon
