// SPDX-License-Identifier: Apache-2.0
// Bad plug-in libraries: each a clear line and the right exit code, and nothing else lost.
#include <gtest/gtest.h>

#include <fstream>

#include "harness/judge/verdict.h"
#include "harness/tests/run_program.h"

namespace tigon {
namespace {

std::filesystem::path library(const std::string& name) {
  return tigon_program().parent_path().parent_path() / "lib" / "plugin_tests" /
         ("lib" + name + ".so");
}

constexpr const char* kCase = "--case=rms_norm/forward/plugin:bad/f32/T=3,H=8,inputs=normal,seed=1";

ProgramRun check(const std::string& path, const std::vector<std::string>& more,
                 const std::string& fault) {
  const TemporaryFolder folder;
  std::vector<std::string> words = {
      "check",    "--impl-from", path,
      "--jobs=1", "--timeout=2", "--json=" + (folder.path() / "r.jsonl").string()};
  words.insert(words.end(), more.begin(), more.end());
  return run_tigon(words, {"BAD_PLUGIN=" + fault});
}

// ---- libraries that are not used at all ---------------------------------------------------------

struct BadLibrary {
  const char* fault;
  int exit_code;
  const char* says;
};
std::ostream& operator<<(std::ostream& out, const BadLibrary& b) { return out << b.fault; }

class Load : public testing::TestWithParam<BadLibrary> {};

TEST_P(Load, IsRefusedWithOneLine) {
  const ProgramRun run = check(library("bad_plugin"), {}, GetParam().fault);
  EXPECT_EQ(run.exit_code, GetParam().exit_code) << run.out << run.err;
  EXPECT_EQ(run.err.rfind("tigon: --impl-from ", 0), 0u) << run.err;
  EXPECT_NE(run.err.find(GetParam().says), std::string::npos) << run.err;
  EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
  EXPECT_EQ(run.out, "");
}

INSTANTIATE_TEST_SUITE_P(
    PluginAbi, Load,
    testing::Values(
        BadLibrary{"no_op", 2, "it has no op: tigon_find() answered NULL for every op"},
        BadLibrary{"abi_0", 2, "it speaks ABI 0, this tigon speaks 1"},
        BadLibrary{"abi_2", 2, "it speaks ABI 2, this tigon speaks 1"},
        BadLibrary{"name_null", 2, "its op is named a null pointer"},
        BadLibrary{"name_other", 2, "its op is named 'rms_nrom.forward'"},
        BadLibrary{"implementation_null", 2, "implementation is a null pointer: give it 1 to 64"},
        BadLibrary{"implementation_empty", 2, "implementation is '': give it 1 to 64 letters"},
        BadLibrary{"implementation_long", 2, "aaa': give it 1 to 64 letters"},
        BadLibrary{"implementation_with_slash", 2, "implementation is 'a/b': give it"},
        BadLibrary{"dtype_99", 2,
                   "tigon_find(\"rms_norm.forward\", TIGON_F32): its op has dtype 99"},
        BadLibrary{"dtype_other", 2, "its op has dtype 2: answer NULL"},
        BadLibrary{"device_7", 2, "device is 7: set it to TIGON_DEVICE_HOST (0)"},
        BadLibrary{"device_cuda", 2, "this is a host build"},
        BadLibrary{"null_run", 2, "run is a null pointer"},
        BadLibrary{"load_throws", 5, "threw an exception: no while it was loaded"},
        BadLibrary{"load_segfaults", 5, "ended by signal 11"},
        BadLibrary{"load_exits_0", 5, "ended its process with exit code 0 while it was loaded"},
        BadLibrary{"load_hangs", 5, "no answer within 10 s while it was loaded"}),
    [](const auto& info) { return std::string(info.param.fault); });

// A file that is no library of ours.
class File : public testing::Test {
 protected:
  void expect_refusal(const std::string& path, const std::string& says) {
    const ProgramRun run = check(path, {}, "");
    EXPECT_EQ(run.exit_code, 2) << run.out << run.err;
    EXPECT_NE(run.err.find(says), std::string::npos) << run.err;
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
  }
  std::string write(const std::string& name, const std::string& contents) {
    const auto path = folder_.path() / name;
    std::ofstream(path) << contents;
    return path;
  }
  TemporaryFolder folder_;
};

TEST_F(File, Missing) { expect_refusal("/nowhere/libx.so", "no such file"); }
TEST_F(File, Folder) { expect_refusal(folder_.path(), "not a file"); }
TEST_F(File, Empty) { expect_refusal(write("libx.so", ""), "not a library that can be loaded"); }
TEST_F(File, Text) {
  expect_refusal(write("libx.so", "#!/bin/sh\necho passed\n"), "not a library that can be loaded");
}
TEST_F(File, Truncated) {
  std::ifstream whole(library("bad_plugin"), std::ios::binary);
  std::string start(2000, '\0');
  whole.read(start.data(), static_cast<std::streamsize>(start.size()));
  expect_refusal(write("libx.so", start), "it is cut off");
}
TEST_F(File, WithoutTheSymbol) {
  expect_refusal(library("no_symbol"), "it has no symbol tigon_find");
}
TEST_F(File, WithTheSymbolOfBefore) {
  expect_refusal(library("old_symbol"), "it exports tigon_plugin_get, which nothing calls");
}
TEST_F(File, Twice) {
  expect_refusal(library("bad_plugin").string() + "," + library("bad_plugin").string(),
                 "rms_norm.forward (bad): another library has an implementation of that name");
}

// ---- libraries that fail in a call --------------------------------------------------------------

struct BadCall {
  const char* fault;
  Verdict verdict;
  int exit_code;
  const char* says;
};
std::ostream& operator<<(std::ostream& out, const BadCall& b) { return out << b.fault; }

class CallOf : public testing::TestWithParam<BadCall> {};

TEST_P(CallOf, GetsItsVerdict) {
  const ProgramRun run = check(library("bad_plugin"), {kCase, "-v"}, GetParam().fault);
  EXPECT_EQ(run.exit_code, GetParam().exit_code) << run.out << run.err;
  EXPECT_NE(run.out.find(name_of(GetParam().verdict)), std::string::npos) << run.out;
  EXPECT_NE(run.out.find(GetParam().says), std::string::npos) << run.out;
}

INSTANTIATE_TEST_SUITE_P(
    PluginAbi, CallOf,
    testing::Values(BadCall{"nothing", Verdict::kPassed, 0, "1 passed"},
                    BadCall{"floods", Verdict::kPassed, 0, "1 passed"},
                    BadCall{"throws", Verdict::kRuntimeError, 1,
                            "threw an exception: out of paper"},
                    BadCall{"throws_int", Verdict::kRuntimeError, 1,
                            "threw something that is no std::exception"},
                    BadCall{"segfault", Verdict::kCrashed, 5, "ended by signal 11"},
                    BadCall{"aborts", Verdict::kCrashed, 5, "ended by signal 6"},
                    BadCall{"is_killed", Verdict::kCrashed, 5, "ended by signal 9"},
                    BadCall{"overflows_stack", Verdict::kCrashed, 5, "ended by signal 11"},
                    BadCall{"exits_0", Verdict::kCrashed, 5, "ended its process with exit code 0"},
                    BadCall{"exits_3", Verdict::kCrashed, 5, "ended its process with exit code 3"},
                    BadCall{"closes_all", Verdict::kCrashed, 5, "the library"},
                    BadCall{"hangs", Verdict::kTimeout, 5, "no result within 2 s"},
                    BadCall{"runs_out_of_memory", Verdict::kRuntimeError, 1, "threw an exception"},
                    BadCall{"says_invalid", Verdict::kRuntimeError, 1, "no good at all"},
                    BadCall{"says_unsupported", Verdict::kUnsupported, 4, "only on Sundays"},
                    BadCall{"says_its_name", Verdict::kUnsupported, 4, ": only on Sundays"},
                    BadCall{"says_nothing", Verdict::kUnsupported, 4, ""},
                    BadCall{"says_77", Verdict::kRuntimeError, 1, "returned the code 77"},
                    BadCall{"workspace_huge", Verdict::kOom, 5, "cannot allocate"},
                    BadCall{"prepare_fails", Verdict::kRuntimeError, 1, "not in the mood"}),
    [](const auto& info) { return std::string(info.param.fault); });

}  // namespace
}  // namespace tigon
