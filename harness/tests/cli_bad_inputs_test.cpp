// Bad inputs of every command of the program: one clear line on stderr that says what is wrong and
// what would be right, the right exit code, nothing written and nothing lost.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "harness/record/record_reader.h"
#include "harness/run/check.h"
#include "harness/tests/run_program.h"

namespace tigon {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

struct BadInput {
  Words words;
  int code;
  std::string says;  // a part of the line
  Words variables = {};
};

std::string text_of(const fs::path& file) {
  std::stringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

// Files that are wrong in one way each, and one run that is right.
class BadFiles {
 public:
  BadFiles() {
    const fs::path run = folder_.path() / "run";
    run_tigon({"check", "rope", "--impl", "fused", "--dtype", "f32", "--filter",
               "forward.*T=1,.*inputs=normal,seed=42$", "--out", run.string()});
    std::istringstream lines(text_of(run / "records.jsonl"));
    for (std::string line; std::getline(lines, line);) lines_.push_back(line);
    write("empty.jsonl", "");
    write("garbage.jsonl", "this is no record\n");
    write("zeros.jsonl", std::string(5000, '\0'));
    write("torn.jsonl", lines_.at(0).substr(0, 100));
    write("deep.jsonl", std::string(100000, '[') + "\n");
    write("array.jsonl", "[1,2,3]\n");
    write("headless.jsonl", lines_.at(1) + "\n");
    write("flipped.jsonl", flipped(lines_.at(0)) + "\n");
    write("no_hash.jsonl", changed([](Json& r) { r["build"].erase("hash"); }));
    write("other_build.jsonl", changed([](Json& r) { r["build"]["hash"] = "0123456789abcdef"; }));
    write("wrong_types.jsonl", changed([](Json& r) { r["build"] = {1, 2}; }));
    write("no_command.jsonl", changed([](Json& r) { r.erase("command"); }));
    write("command_of_numbers.jsonl", changed([](Json& r) { r["command"] = {1, 2, 3}; }));
    write("other_filter.jsonl", changed([](Json& r) { r["environment"]["TIGON_FILTER"] = "x"; }));
    write("empty.txt", "");
    write("short.txt", "a b");
    fs::create_directories(folder_.path() / "empty_folder");
  }

  std::string operator()(const char* name) const { return (folder_.path() / name).string(); }

  // Every file with its contents.
  std::map<std::string, std::string> contents() const {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path()))
      all[entry.path().string()] = entry.is_regular_file() ? text_of(entry.path()) : "";
    return all;
  }

 private:
  void write(const char* name, const std::string& text) {
    std::ofstream(folder_.path() / name, std::ios::binary) << text;
  }
  static std::string flipped(std::string line) {
    line[line.size() / 2] ^= 1;
    return line;
  }
  // The run record after a change, with a right checksum.
  std::string changed(const std::function<void(Json&)>& change) const {
    Json record = Json::parse(lines_.at(0));
    record.erase("sum");
    change(record);
    return with_sum(record.dump()) + "\n";
  }

  TemporaryFolder folder_;
  Words lines_;
};

Words case_of(const std::string& id) { return {"check", "--case", id}; }
Words axis(const std::string& value) { return {"check", "rms_norm", "-a", value}; }
Words resume(const std::string& run) { return {"check", "--resume", run}; }

const std::vector<BadInput> kCommandLines = {
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
    {{"check", "--quick", "--full"}, 2, "--quick"},
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
    {{"converge", "--steps", "many"}, 2, "--steps"},
    {{"converge", "--batch", "-4"}, 2, "--batch"},
    {{"converge", "--sequence", "-1"}, 2, "--sequence"},
    {{"converge", "--vocabulary", "-1"}, 2, "--vocabulary"},
    {{"converge", "--tied", "--untied"}, 2, "tied"},
    {{"converge", "--data", "/no/such/text"}, 4, "no such file"},
    {{"converge", "--resume", "x"}, 2, "only check, bench and run"},
    {{"run", "--stages", "check,cook"}, 2, "stage"},
    {{"run", "--steps", "x"}, 2, "--steps"},
    {{"run", "--data", "/no/such/text"}, 4, "no such file"},
    {{"report", "no_such_run"}, 4, "no_such_run"},
    {{"describe", "rms"}, 2, "rms_norm"},
    {{"list", "everything"}, 2, "everything"},
    {{"doctor", "who"}, 2, "who"},
    {{"child"}, 2, "started by tigon itself"},
};

const std::vector<BadInput> kAxes = {
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
    {axis("T=-1"), 2, "negative"},
    {axis("T=[5:1]"), 2, "ends before it starts"},
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

const std::vector<BadInput> kCases = {
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

std::vector<BadInput> file_inputs(const BadFiles& file) {
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

TEST(BadInputs, are_refused_in_one_line_and_nothing_is_lost) {
  const BadFiles files;
  const auto before = files.contents();
  const TemporaryFolder here;
  const fs::path old = fs::current_path();
  fs::current_path(here.path());
  int refused = 0, all = 0;
  for (const auto& table : {kCommandLines, kAxes, kCases, file_inputs(files)})
    for (const BadInput& bad : table) {
      const std::string problem = problem_with(bad, run_tigon(bad.words, bad.variables));
      EXPECT_EQ(problem, "") << "tigon " << show(bad.words);
      ++all;
      refused += problem.empty();
    }
  fs::current_path(old);
  EXPECT_EQ(files.contents(), before) << "a file has changed";
  for (const auto& entry : fs::directory_iterator(here.path()))
    ADD_FAILURE() << "left behind: " << entry.path();
  fmt::print("{} of {} bad inputs refused\n", refused, all);
}

}  // namespace
}  // namespace tigon
