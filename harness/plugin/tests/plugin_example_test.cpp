// SPDX-License-Identifier: Apache-2.0
// The worked examples, built as a user would: outside of the tree, with tigon.h and the
// header that tigon writes.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "harness/json/json.h"
#include "harness/tests/run_program.h"

namespace tigon {
namespace {

namespace fs = std::filesystem;

// The example in a folder of its own with the headers that it needs.
class Example : public testing::Test {
 protected:
  void take(const std::string& source) {
    const fs::path tree = TIGON_SOURCES;
    fs::copy(tree / "kernels/call/tigon.h", folder_.path());
    fs::copy(tree / "harness/plugin/examples" / source, folder_.path());
    write_header("rms_norm");
  }
  void write_header(const std::string& op) {
    const ProgramRun run = run_tigon({"describe", op, "--call"});
    EXPECT_EQ(run.exit_code, 0) << run.err;
    std::ofstream(folder_.path() / (op + "_call.h")) << run.out;
  }
  // The exit code of a shell command in that folder.
  int command(const std::string& line) const {
    return std::system(("cd '" + folder_.path().string() + "' && " + line).c_str());
  }
  std::vector<Json> records(const std::string& kind) const {
    std::vector<Json> found;
    std::ifstream file(folder_.path() / "records.jsonl");
    for (std::string line; std::getline(file, line);) {
      auto record = Json::parse(line);
      if (record["record"] == kind) found.push_back(std::move(record));
    }
    return found;
  }
  std::string records_option() const {
    return "--json=" + (folder_.path() / "records.jsonl").string();
  }
  TemporaryFolder folder_;
};

#ifdef TIGON_CUDA

TEST_F(Example, InCudaIsCheckedAndMeasured) {
  take("rms_norm_cuda.cu");
  ASSERT_EQ(command("PATH=$PATH:/usr/local/cuda/bin nvcc -std=c++17 -O3 -arch=native -shared "
                    "-Xcompiler -fPIC rms_norm_cuda.cu -o librms_norm_cuda.so"),
            0);
  const std::string library = (folder_.path() / "librms_norm_cuda.so").string();
  const ProgramRun check =
      run_tigon({"check", "--impl-from", library, "--quick", records_option()});
  EXPECT_EQ(check.exit_code, 0) << check.out << check.err;
  EXPECT_GT(records("check").size(), 20u);
  std::filesystem::remove(folder_.path() / "records.jsonl");
  const ProgramRun bench =
      run_tigon({"bench", "--impl-from", library, "--pass=forward", "--dtype=bf16", "-a", "T=4096",
                 "-a", "H=4096", records_option()});
  EXPECT_EQ(bench.exit_code, 0) << bench.out << bench.err;
  const auto benches = records("bench");
  ASSERT_EQ(benches.size(), 1u);
  EXPECT_EQ(benches[0]["verdict"], "passed") << benches[0];
}

#else

constexpr const char* kBuild =
    "g++ -std=c++17 -O2 -Wall -Wextra -Werror -shared -fPIC rms_norm_cpu.cpp -o librms_norm_cpu.so";

TEST_F(Example, InCppIsChecked) {
  take("rms_norm_cpu.cpp");
  ASSERT_EQ(command(kBuild), 0);
  const ProgramRun run =
      run_tigon({"check", "--impl-from", (folder_.path() / "librms_norm_cpu.so").string(),
                 "--quick", records_option()});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  const auto checks = records("check");
  EXPECT_GT(checks.size(), 40u);
  std::set<uint64_t> seeds;
  bool unlisted = false;
  for (const auto& r : checks) {
    EXPECT_EQ(r["impl"], "plugin:example");
    seeds.insert(r["seed"].get<uint64_t>());
    unlisted = unlisted || r["axes"]["H"].get<int64_t>() > 33;  // the largest of the tiny shapes
    EXPECT_NE(r["repro"].get<std::string>().find("--impl-from"), std::string::npos);
  }
  EXPECT_EQ(seeds.size(), checks.size()) << "every case has a seed of its own";
  EXPECT_TRUE(unlisted) << "a shape that no contract lists";
}

TEST_F(Example, InCppIsMeasured) {
  take("rms_norm_cpu.cpp");
  ASSERT_EQ(command(kBuild), 0);
  const ProgramRun run =
      run_tigon({"bench", "--impl-from", (folder_.path() / "librms_norm_cpu.so").string(),
                 "--dtype=f32", "-a", "T=64", "-a", "H=512", records_option()});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  const auto benches = records("bench");
  ASSERT_EQ(benches.size(), 2u);  // forward and backward
  for (const auto& r : benches) {
    EXPECT_EQ(r["verdict"], "passed") << r;
    EXPECT_GT(r["median_s"].get<double>(), 1e-6);
    EXPECT_LT(r["median_s"].get<double>(), 0.1);
    EXPECT_EQ(r["verified_by"], "a fresh process, the oracle");
  }
}

// Rows that stand alone are sampled; dw, a sum over them, needs all.
TEST_F(Example, LargeCallsAreJudgedInASampleOfTheirRows) {
  take("rms_norm_cpu.cpp");
  ASSERT_EQ(command(kBuild), 0);
  const ProgramRun run =
      run_tigon({"bench", "--impl-from", (folder_.path() / "librms_norm_cpu.so").string(),
                 "--dtype=f32", "-a", "T=1024", "-a", "H=4096", records_option()});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  const auto benches = records("bench");
  ASSERT_EQ(benches.size(), 2u);
  EXPECT_EQ(benches[0]["verified_by"], "a fresh process, the oracle in 914 of 1024 rows");
  EXPECT_EQ(benches[1]["verified_by"], "a fresh process, the oracle");
}

TEST_F(Example, WhatIsWrongInLargeCallsOnlyDoesNotStand) {
  take("rms_norm_cpu.cpp");
  ASSERT_EQ(command("sed -i 's/args.eps)/(x.rows == 1024 ? 0.01 : args.eps))/' "
                    "rms_norm_cpu.cpp && grep -q 1024 rms_norm_cpu.cpp"),
            0);
  ASSERT_EQ(command(kBuild), 0);
  const ProgramRun run = run_tigon(
      {"bench", "--impl-from", (folder_.path() / "librms_norm_cpu.so").string(), "--pass=forward",
       "--dtype=f32", "-a", "T=1024", "-a", "H=4096", records_option()});
  EXPECT_EQ(run.exit_code, 1) << run.out << run.err;
  const auto benches = records("bench");
  ASSERT_EQ(benches.size(), 1u);
  EXPECT_EQ(benches[0]["verdict"], "invalid") << benches[0];
}

TEST_F(Example, SeveralAreJudgedSideBySide) {
  take("rms_norm_cpu.cpp");
  ASSERT_EQ(command(kBuild), 0);
  ASSERT_EQ(
      command("sed -i 's/\"example\"/\"other\"/' rms_norm_cpu.cpp && g++ -std=c++17 -O2 -shared "
              "-fPIC rms_norm_cpu.cpp -o libother.so"),
      0);
  const std::string both = (folder_.path() / "librms_norm_cpu.so").string() + "," +
                           (folder_.path() / "libother.so").string();
  const ProgramRun run = run_tigon(
      {"check", "--impl-from", both, "--quick", "--pass=forward", "--dtype=f32", records_option()});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  std::set<std::string> implementations;
  for (const auto& r : records("check")) implementations.insert(r["impl"]);
  EXPECT_EQ(implementations, (std::set<std::string>{"plugin:example", "plugin:other"}));
}

TEST_F(Example, HeadersArePureC) {
  take("rms_norm_cpu.cpp");
  std::ofstream use(folder_.path() / "use.c");
  const Json described = Json::parse(run_tigon({"describe", "--all", "--json"}).out);
  for (const Json& op : described.at("ops")) {
    const std::string name = op.at("name");
    write_header(name);
    use << "#include \"" << name << "_call.h\"\n";
  }
  use.close();
  EXPECT_EQ(command("gcc -std=c99 -pedantic -Wall -Wextra -Werror -Wno-unused-function -c use.c"),
            0);
}

// Whatever answers tigon_find() is a plug-in, Tigon's own library too.
TEST_F(Example, TheLibraryIsAPluginAsItIs) {
  const fs::path library = tigon_program().parent_path().parent_path() / "lib/libtigon-host.so";
  const ProgramRun run = run_tigon({"check", "--impl-from", library.string(), "--quick",
                                    "--op=softmax", "--dtype=f32", records_option()});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  for (const auto& r : records("check")) EXPECT_EQ(r["impl"], "plugin:fused");
}

TEST_F(Example, InCudaBuilds) {
  if (command("PATH=$PATH:/usr/local/cuda/bin command -v nvcc > /dev/null") != 0)
    GTEST_SKIP() << "no nvcc";
  take("rms_norm_cuda.cu");
  EXPECT_EQ(command("PATH=$PATH:/usr/local/cuda/bin nvcc -std=c++17 -O3 -arch=sm_90 -shared "
                    "-Xcompiler -fPIC rms_norm_cuda.cu -o librms_norm_cuda.so"),
            0);
  // A host build says that it cannot judge it, whatever the library could do.
  const ProgramRun run =
      run_tigon({"check", "--impl-from", (folder_.path() / "librms_norm_cuda.so").string(),
                 records_option()});
  EXPECT_EQ(run.exit_code, 2) << run.out << run.err;
  EXPECT_NE(run.err.find("this is a host build"), std::string::npos) << run.err;
}

#endif

}  // namespace
}  // namespace tigon
