// tune: writes a table as data, and a table is used on its own machine only.
#include <gtest/gtest.h>

#include "harness/run/check.h"
#include "harness/run/launch_choices.h"
#include "harness/tests/run_program.h"

namespace tigon {
namespace {

TEST(TigonProgram, tune_writes_a_table_that_other_machines_refuse) {
  if (default_executor() == "cuda") GTEST_SKIP() << "its figures are those of the host executor";
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "table.json").string();
  const ProgramRun run = run_tigon({"tune", "rms_norm", "--pass", "forward", "--dtype", "bf16",
                                    "-a", "T=4", "-a", "H=512", "--out", path});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_NE(run.out.find("host executor, no kernel speed"), std::string::npos) << run.out;
  EXPECT_EQ(run.last_line(), "1 passed, 0 failed, 0 skipped");
  LaunchFile file = read_launch_file(path);
  EXPECT_EQ(file.machine.rfind("host executor on ", 0), 0u);

  const std::vector<std::string> trace = {"trace", "rms_norm/forward/fused/bf16/T=4,H=512"};
  const std::vector<std::string> used = {std::string(kLaunchTableVariable) + "=" + path};
  file.entries = {{{"rms_norm.forward.vectors", 64}, 6, "", 0, 0}};
  write_launch_file(path, file);
  const ProgramRun plain = run_tigon(trace), tuned = run_tigon(trace, used);
  EXPECT_NE(plain.out.find("8, 32, 4, 8"), std::string::npos) << plain.out;
  EXPECT_NE(tuned.out.find("8, 256, 4, 4"), std::string::npos) << tuned.out << tuned.err;
  EXPECT_NE(tuned.err.find("launch table"), std::string::npos) << tuned.err;

  file.machine = "NVIDIA Elsewhere";
  write_launch_file(path, file);
  const ProgramRun refused = run_tigon(trace, used);
  EXPECT_EQ(refused.exit_code, kExitUsage);
  EXPECT_NE(refused.err.find("was made on NVIDIA Elsewhere"), std::string::npos) << refused.err;
}

TEST(TigonProgram, tune_says_when_there_is_nothing_to_choose) {
  if (default_executor() == "cuda") GTEST_SKIP() << "takes a GPU's time";
  const TemporaryFolder folder;
  const ProgramRun run = run_tigon({"tune", "swiglu", "--dtype", "bf16", "-a", "T=4", "-a", "F=64",
                                    "--out", (folder.path() / "t.json").string()});
  EXPECT_EQ(run.exit_code, kExitNothing) << run.out << run.err;
}

}  // namespace
}  // namespace tigon
