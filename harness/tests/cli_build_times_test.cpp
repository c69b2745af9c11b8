// SPDX-License-Identifier: Apache-2.0
// The slowest translation unit of a ninja log.
#include "harness/cli/text/build_times.h"

#include <gtest/gtest.h>

#include <fstream>

#include "harness/tests/run_program.h"

namespace tigon::cli {
namespace {

TEST(BuildTimes, the_last_time_of_each_object_counts_and_the_slowest_is_first) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "build.ninja")
      << "build harness/CMakeFiles/tigon_cli.dir/cli/commands/list.cpp.o: CXX_COMPILER "
         "list.cpp\n"
         "build kernels/CMakeFiles/tigon_rope_fast.dir/__/host_sources/kernels/rope/rope.cu.cpp.o: "
         "CXX_COMPILER rope.cu.cpp\n"
         "build bin/tigon: CXX_EXECUTABLE_LINKER\n";
  std::ofstream(folder.path() / ".ninja_log")
      << "# ninja log v5\n"
         "0\t90000\t1\tharness/CMakeFiles/tigon_cli.dir/cli/commands/list.cpp.o\ta\n"
         "0\t2500\t1\tharness/CMakeFiles/tigon_cli.dir/cli/commands/list.cpp.o\ta\n"
         "10\t8010\t1\tkernels/CMakeFiles/tigon_rope_fast.dir/__/host_sources/"
         "kernels/rope/rope.cu.cpp.o\tb\n"
         "0\t70000\t1\tharness/CMakeFiles/tigon_contracts.dir/ops/removed.cpp.o\td\n"
         "0\t99000\t1\tbin/tigon\tc\n";
  const std::vector<BuildTime> times = build_times(folder.path());
  ASSERT_EQ(times.size(), 2u);
  EXPECT_EQ(times[0].source, "kernels/rope/rope.cu (tigon_rope_fast)");
  EXPECT_EQ(times[0].seconds, 8);
  EXPECT_EQ(times[1].source, "harness/cli/commands/list.cpp (tigon_cli)");
  EXPECT_EQ(times[1].seconds, 2.5);
  EXPECT_THROW(build_times(folder.path() / "none"), std::runtime_error);
}

TEST(TigonProgram, doctor_names_the_slowest_translation_unit_of_its_build) {
  const ProgramRun run = run_tigon({"doctor", "--build"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out.rfind("slowest translation unit: ", 0), 0u) << run.out;
}

}  // namespace
}  // namespace tigon::cli
