// SPDX-License-Identifier: Apache-2.0
// The tables of bad inputs.
#include "harness/tests/bad_inputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "harness/tests/run_program.h"

namespace tigon {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

Words case_of(const std::string& id) { return {"check", "--case", id}; }
Words axis(const std::string& value) { return {"check", "rms_norm", "-a", value}; }
Words resume(const std::string& run) { return {"check", "--resume", run}; }

std::vector<BadInput> command_lines() {
  std::string groups = "x", few_letters;
  for (int i = 0; i < 201; ++i) groups += "(letters_of_it)|", few_letters += "(x)";
  groups.back() = 'x';
  return {
      {{}, 2, "subcommand"},
      {{"chekc"}, 2, "did you mean 'check'"},
      {{"--nope"}, 2, "--nope"},
      {{"check", "--dtpye", "bf16"}, 2, "did you mean '--dtype'"},
      {{"check", "--op", "rms_nrom"}, 2, "rms_norm"},
      {{"check", "rms_nrom"}, 2, "rms_norm"},
      {{"check", "--op", ""}, 2, "op"},
      {{"check", "--op", "a\nb"}, 2, "a b"},
      {{"check", "--op", "\xff\xfe"}, 2, "op"},
      {{"check", "--pass", "sideways"}, 2, "forward"},
      {{"check", "--impl", "fusde"}, 2, "fused"},
      {{"check", "--dtype", "f8"}, 2, "bf16"},
      {{"check", "--filter", "("}, 2, "regular expression"},
      {{"check", "--exclude", "["}, 2, "regular expression"},
      {{"check"}, 2, "regular expression", {"TIGON_FILTER=*"}},
      {{"check", "--filter", groups}, 2, "has at most 2000 and 200"},
      {{"check", "--exclude", groups}, 2, "--exclude: 3217 letters and 201 groups"},
      {{"mutants", "--filter", groups}, 2, "has at most 2000 and 200"},
      {{"mutants", "--score", "101"}, 2, "it is a percentage, 1 to 100"},
      {{"check", "--filter", std::string(2001, 'x')}, 2, "--filter: 2001 letters"},
      {{"check", "--exclude", few_letters}, 2, "603 letters and 201 groups"},
      {{"check"}, 2, "has at most 2000", {"TIGON_EXCLUDE=" + groups}},
      {{"bench", "--gtest_filter=x"}, 2, "--gtest_filter: only check takes"},
      {{"list", "--gtest_color=no"}, 2, "--gtest_color: only check takes"},
      {{"run", "--gtest_nope"}, 2, "--gtest_nope: only check takes"},
      {{"check", "--shard", "2/2"}, 2, "from 0 to N-1"},
      {{"check", "--shard", "-1/2"}, 2, "0 to N-1"},
      {{"check", "--shard", "0/0"}, 2, "N"},
      {{"check", "--shard", "half"}, 2, "0/4"},
      {{"check", "--shard", "1/x"}, 2, "shard"},
      {{"check"}, 2, "together", {"GTEST_TOTAL_SHARDS=2"}},
      {{"check"}, 2, "does not exist", {"GTEST_TOTAL_SHARDS=2", "GTEST_SHARD_INDEX=5"}},
      {{"check", "--seed", "-1"}, 2, "--seed"},
      {{"check", "--seed", "abc"}, 2, "--seed"},
      {{"check", "--timeout", "-1"}, 2, "--timeout"},
      {{"check", "--timeout", "soon"}, 2, "--timeout"},
      {{"check", "--timeout", "nan"}, 2, "--timeout"},
      {{"check", "--jobs", "-2"}, 2, "--jobs"},
      {{"check", "--executor", "gpu"}, 2, "--executor gpu"},
      {{"check", "--gtest_nope=1"}, 2, "gtest"},
      {{"check", "--tag", "no_value"}, 2, "name=value"},
      {{"check", "--tag", "=x"}, 2, "name=value"},
      {{"check", "--quick", "--tier", "check"}, 2, "--quick"},
      {{"check", "--out"}, 2, "--out"},
      {{"check", "--json", "/proc/no/file.jsonl"}, 5, "cannot write"},
      {{"check", "--json", "/tmp"}, 5, "cannot write /tmp: Is a directory"},
      {{"bench", "--op", "ropes"}, 2, "rope"},
      {{"bench", "--min-time", "-1"}, 2, "--min-time"},
      {{"bench", "--quick", "--full"}, 2, "--quick"},
      {{"bench", "-a", "Z=1"}, 2, "axis 'Z'"},
      {{"converge", "--config", "huge"}, 2, "tiny"},
      {{"converge", "--dtype", "f16"}, 2, "bf16"},
      {{"converge", "--steps", "-1"}, 2, "--steps"},
      {{"converge", "--steps", "0"}, 2, "--steps"},
      {{"run", "--steps", "0"}, 2, "--steps"},
      {{"run", "--json", "-"}, 2, "run needs a file"},
      {{"converge", "--steps", "many"}, 2, "--steps"},
      {{"converge", "--batch", "-4"}, 2, "--batch"},
      {{"converge", "--batch", "0"}, 2, "--batch"},
      {{"converge", "--sequence", "-1"}, 2, "--sequence"},
      {{"converge", "--vocabulary", "-1"}, 2, "--vocabulary"},
      {{"converge", "--tied", "--untied"}, 2, "tied"},
      {{"converge", "--experiment", "rms_nrom"}, 2, "rms_norm"},
      {{"converge", "--experiment", "8b", "--all"}, 2, "--all"},
      {{"converge", "--accumulate", "-1"}, 2, "--accumulate"},
      {{"converge", "--fused", "rms_nrom"}, 2, "rms_norm"},
      {{"converge", "--frozen"}, 2, "Medusa"},
      {{"converge", "--checkpoint-every", "-1"}, 2, "--checkpoint-every"},
      {{"converge", "--each"}, 2, "--parts"},
      {{"converge", "--parts", "--all"}, 2, "--all"},
      {{"converge", "--parts", "-a", "Q=5"}, 2, "its axes are T, V"},
      {{"converge", "--parts", "-a", "T=0"}, 2, "T=0"},
      {{"converge", "--parts", "-a", "T=4Gi"}, 2, "T=4294967296"},
      {{"converge", "--parts", "--memory", "much"}, 2, "--memory"},
      {{"converge", "--parts", "--plan", "--confirm"}, 2, "--plan"},
      {{"converge", "--json", "/dev/null", "--tokenizer", "/no/such.json"}, 2, "/no/such.json"},
      {{"soak", "--most-elements", "0"}, 2, "--most-elements"},
      {{"soak", "--op", "rms_norm", "-a", "H=9", "--most-elements", "8"}, 2, "or more"},
      {{"bench", "swiglu", "--ranks", "2"}, 2, "--ranks"},
      {{"run", "--stages", "check,cook"}, 2, "stage"},
      {{"run", "--steps", "x"}, 2, "--steps"},
      {{"report", "no_such_run"}, 4, "no_such_run"},
      {{"describe", "rms"}, 2, "rms_norm"},
      {{"list", "everything"}, 2, "everything"},
      {{"doctor", "who"}, 2, "who"},
      {{"child"}, 2, "started by tigon itself"},
  };
}

std::vector<BadInput> axes() {
  return {
      {axis("T"), 2, "write T=128"},
      {axis("T="), 2, "no value"},
      {axis("=5"), 2, "not an axis"},
      {axis("T=[]"), 2, "no value"},
      {axis("T=[1,2"), 2, "bracket"},
      {axis("T=1]"), 2, "bracket"},
      {axis("T=[1,,2]"), 2, "missing"},
      {axis("T=abc"), 2, "not a size"},
      {axis("T=1.5"), 2, "not a size"},
      {axis("T=1e3"), 2, "not a size"},
      {axis("T=1kk"), 2, "not a size"},
      {axis("T=0x10"), 2, "not a size"},
      {axis("T=-1"), 2, "a size is 1 or more"},
      {axis("T=[5:1]"), 2, "ends before it starts"},
      {axis("H=0"), 2, "H=0: a size is 1 or more, or 0 where"},
      {axis("H=-3"), 2, "H=-3: '-3': a size is 1 or more, or 0 where"},
      {{"bench", "softmax", "-a", "V=[0,8]"}, 2, "V=0: a size is 1 or more"},
      {case_of("rms_norm/forward/fused/f32/T=3,H=0"), 2, "H=0: a size is 1 or more"},
      {{"check", "rms_norm", "--quick", "--save", "/proc/no/such"}, 5, "--save"},
      {{"check", "rms_norm", "--quick", "--save", "/dev/full"}, 5, "--save"},
      {axis("T=[1:5:0]"), 2, "stride"},
      {axis("T=[1:2:3:4]"), 2, "colons"},
      {axis("T=[1:1000000]"), 2, "larger stride"},
      {axis("T[pow3]=[1:2]"), 2, "pow2"},
      {axis("T[pow2]=41"), 2, "too large"},
      {axis("T=99999999999999999999"), 2, "too large"},
      {axis("T=9000000000G"), 2, "too large"},
      {axis("V=3"), 2, "its axes are"},
      {{"check", "rms_norm", "-a", "T=1", "-a", "T=2"}, 2, "twice"},
  };
}

std::vector<BadInput> cases() {
  return {
      {case_of(""), 2, "case"},
      {case_of("garbage"), 2, "garbage"},
      {case_of("nope/forward/fused/f32/T=3"), 2, "rms_norm"},
      {case_of("rms_norm/up/fused/f32/T=3,H=8"), 2, "forward"},
      {case_of("rms_norm/forward/best/f32/T=3,H=8"), 2, "fused"},
      {case_of("rms_norm/forward/fused/f8/T=3,H=8"), 2, "f8"},
      {case_of("rms_norm/forward/fused/f32/T=3"), 2, "H"},
      {case_of("rms_norm/forward/fused/f32/T=-3,H=8"), 2, "T=-3"},
      {case_of("rms_norm/forward/fused/f32/T=x,H=8"), 2, "T=x"},
      {case_of("rms_norm/forward/fused/f32/T=3,H=8,wings=2"), 2, "wings"},
      {case_of("rms_norm/forward/fused/f32/T=3,H=8,casting=odd"), 2, "casting"},
      {case_of("rms_norm/forward/fused/f32/T=3,H=8,w=here"), 2, "absent"},
      {case_of("rms_norm/forward/fused/f32/T=3,H=8,inputs=odd"), 2, "odd"},
      {case_of("rms_norm/forward/fused/f32/T=3,H=8,seed=-1"), 2, "seed"},
      {case_of("rms_norm/forward/fused/f32/T=3,H=8,prop=odd"), 2, "odd"},
      {case_of(std::string(100000, 'x')), 2, "case"},
  };
}

std::vector<BadInput> records(const BadFiles& file) {
  const char* no_run = "does not begin with the record of its run";
  return {
      {resume("no_such_run"), 4, "no such run"},
      {resume(""), 4, "no such run"},
      {{"check", "--resume"}, 2, "--resume"},
      {{"check", "--resume", file("run"), "--op", "rope"}, 2, "nothing else"},
      {{"check", "--op", "rope", "--resume", file("run")}, 2, "nothing else"},
      {{"bench", "--resume", file("run")}, 2, "was made by ./tigon check"},
      {resume(file("empty_folder")), 4, "records.jsonl"},
      {resume(file("empty.jsonl")), 4, no_run},
      {resume(file("garbage.jsonl")), 4, no_run},
      {resume(file("zeros.jsonl")), 4, no_run},
      {resume(file("torn.jsonl")), 4, no_run},
      {resume(file("deep.jsonl")), 4, no_run},
      {resume(file("array.jsonl")), 4, no_run},
      {resume(file("headless.jsonl")), 4, no_run},
      {resume(file("flipped.jsonl")), 4, no_run},
      {resume(file("no_hash.jsonl")), 2, "another build"},
      {resume(file("other_build.jsonl")), 2, "another build"},
      {resume(file("wrong_types.jsonl")), 2, "another build"},
      {resume(file("no_command.jsonl")), 4, "does not say its command"},
      {resume(file("command_of_numbers.jsonl")), 4, "does not say its command"},
      {resume(file("other_filter.jsonl")), 2, "TIGON_FILTER='x'"},
      {{"check", "--out", file("run")}, 2, "holds another run"},
      {{"check", "--json", file("garbage.jsonl")}, 2, "holds another run"},
      {{"check", "--out", file("empty.txt")}, 5, "cannot write"},
      {{"report", file("garbage.jsonl")}, 4, ""},
      {{"report", file("empty_folder")}, 4, ""},
  };
}

std::vector<BadInput> corpora(const BadFiles& file) {
  const auto data = [](const std::string& path) { return Words{"converge", "--data", path}; };
  return {
      {data("/no/such/text"), 4, "no such file"},
      {{"run", "--data", "/no/such/text"}, 4, "no such file"},
      {data(file("empty.txt")), 2, "empty or not text"},
      {data(file("zeros.jsonl")), 2, "is no JSON object"},
      {data(file("empty_folder")), 2, "no text"},
      {data("/dev/null"), 2, "no such text"},
      {{"run", "--data", file("empty.txt")}, 2, "empty or not text"},
      {{"converge", "--json", "/dev/null", "--data", file("short.txt")}, 2, "short.txt"},
      {{"converge", "--json", "/dev/null", "--data", file("short.txt"), "--pad"},
       2,
       "has no examples to pad"},
  };
}

std::vector<BadInput> plugins(const BadFiles& file) {
  const auto library = [](const std::string& path) { return Words{"check", "--impl-from", path}; };
  const std::string bad = plugin_library("bad_plugin");
  std::vector<BadInput> all = {
      {library("/no/such/library.so"), 2, "no such file"},
      {{"bench", "--impl-from", "/no/such/library.so"}, 2, "no such file"},
      {library(file("empty_folder")), 2, "not a file"},
      {library(file("empty.txt")), 2, "not a library that can be loaded"},
      {library(file("short.txt")), 2, "not a library that can be loaded"},
      {library(file("cut_off.so")), 2, "it is cut off"},
      {library(plugin_library("no_symbol")), 2, "it has no symbol tigon_find"},
      {library(plugin_library("old_symbol")), 2, "export tigon_find of kernels/call/tigon.h"},
  };
  const std::pair<const char*, const char*> faults[] = {
      {"no_op", "it has no op"},
      {"abi_0", "it speaks ABI 0, this tigon speaks 1"},
      {"abi_2", "it speaks ABI 2, this tigon speaks 1"},
      {"name_null", "its op is named a null pointer"},
      {"name_other", "its op is named 'rms_nrom.forward'"},
      {"implementation_null", "implementation is a null pointer"},
      {"implementation_long", "give it 1 to 64 letters"},
      {"implementation_with_slash", "give it 1 to 64 letters"},
      {"dtype_99", "its op has dtype 99"},
      {"dtype_other", "its op has dtype 2"},
      {"device_7", "device is 7"},
      {"null_run", "run is a null pointer"},
  };
  for (const auto& [fault, says] : faults)
    all.push_back({library(bad), 2, says, {std::string("BAD_PLUGIN=") + fault}});
  return all;
}

// What is wrong with how a bad input was refused; empty when it was refused as it must be.
std::string problem_with(const BadInput& bad, const ProgramRun& run) {
  if (run.exit_code != bad.code)
    return fmt::format("exit code {} instead of {}: {}", run.exit_code, bad.code, run.err);
  if (std::count(run.err.begin(), run.err.end(), '\n') != 1) return "not one line: " + run.err;
  if (run.err.find(bad.says) == std::string::npos)
    return fmt::format("does not say '{}': {}", bad.says, run.err);
  return run.err.size() > 600 ? "a line of more than 600 bytes" : "";
}

std::string show(const Words& words) {
  return fmt::format("{}", fmt::join(words, " ")).substr(0, 120);
}

}  // namespace

std::vector<BadInputTable> bad_inputs(const BadFiles& files) {
  std::vector<BadInputTable> tables = {{"command lines", command_lines()},
                                       {"axes", axes()},
                                       {"cases", cases()},
                                       {"records and runs", records(files)},
                                       {"corpora", corpora(files)}};
#ifndef TIGON_SANITIZE  // a sanitizer needs more than the process of a library may have
  tables.push_back({"plug-ins", plugins(files)});
#endif
  return tables;
}

std::vector<std::string> problems_of(const BadInputTable& table, const BadFiles& files) {
  const auto before = files.contents();
  const TemporaryFolder here;
  const fs::path old = fs::current_path();
  fs::current_path(here.path());
  std::vector<std::string> problems;
  for (const BadInput& bad : table.inputs) {
    std::string problem = problem_with(bad, run_tigon(bad.words, bad.variables));
    for (const auto& entry : fs::directory_iterator(here.path())) {
      if (problem.empty()) problem = "left behind: " + entry.path().filename().string();
      fs::remove_all(entry.path());
    }
    if (problem.empty() && files.contents() != before) problem = "a file has changed";
    if (!problem.empty()) problems.push_back(fmt::format("{}: {}", show(bad.words), problem));
  }
  fs::current_path(old);
  return problems;
}

}  // namespace tigon
