// SPDX-License-Identifier: Apache-2.0
// tigon converge, killed and interrupted: what goes on ends with the bytes of what never stopped.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <random>

#include "harness/json/json.h"
#include "harness/run/check.h"
#include "harness/tests/world_process.h"

namespace tigon {
namespace {

namespace fs = std::filesystem;
using world::Process;

constexpr int kSteps = 8;

Process start(const std::vector<std::string>& words) {
  return Process(words, {.program = tigon_program()});
}

std::vector<std::string> training(const fs::path& folder) {
  return {"converge",   "--dtype", "bf16",         "--steps", fmt::to_string(kSteps),
          "--sequence", "16",      "--batch",      "1",       "--checkpoint-every",
          "2",          "--out",   folder.string()};
}

std::string bytes_of(const fs::path& file) {
  std::stringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

// The files of checkpoints and the losses of each training, the last record of each.
std::map<std::string, std::string> outcome(const fs::path& folder) {
  std::map<std::string, std::string> found;
  for (const auto& file : fs::directory_iterator(folder / "records.checkpoints"))
    found[file.path().filename()] = bytes_of(file);
  std::ifstream records(folder / "records.jsonl");
  for (std::string text; std::getline(records, text);) {
    const Json line = Json::try_parse(text).value_or(nullptr);
    if (line.is_null()) continue;
    if (line["record"] == "converge")
      found[fmt::format("{} {}", line["impl"].get<std::string>(), line["twin"].get<int>())] =
          line["loss"].dump() + line["held_out_loss"].dump();
    if (line["record"] == "converge_verdict") found["verdict"] = line["differences"].dump();
  }
  return found;
}

class Interrupted : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists("/usr/share/common-licenses")) GTEST_SKIP() << "no default text";
    const auto begin = std::chrono::steady_clock::now();
    const ProgramRun run = start(training(whole_.path())).wait();
    whole_s_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    ASSERT_EQ(run.exit_code, kExitOk) << run.out << run.err;
  }
  std::vector<std::string> resume() const {
    return {"converge", "--resume", part_.path().string()};
  }
  void expect_the_same() const {
    const auto want = outcome(whole_.path()), got = outcome(part_.path());
    for (const auto& [name, bytes] : want) {
      ASSERT_TRUE(got.count(name)) << name;
      EXPECT_TRUE(got.at(name) == bytes) << name << " differs";
    }
    EXPECT_EQ(got.size(), want.size());
  }

  TemporaryFolder whole_, part_;
  double whole_s_ = 0;
};

TEST_F(Interrupted, killed_at_random_moments_it_ends_with_the_same_bytes) {
  std::mt19937 random(20);
  std::uniform_real_distribution<double> moment(0.3, 0.9);
  bool begun = false;
  for (int kill = 0; kill < 6; ++kill) {
    const double seconds = moment(random) * whole_s_;
    ProgramRun run = start(begun ? resume() : training(part_.path())).wait(seconds);
    ASSERT_TRUE(run.exit_code == 128 + SIGKILL || run.exit_code == kExitOk) << run.err;
    begun = bytes_of(part_.path() / "records.jsonl").find('\n') != std::string::npos;
    if (!begun) fs::remove_all(part_.path());
  }
  const ProgramRun rest = start(resume()).wait();
  EXPECT_EQ(rest.exit_code, kExitOk) << rest.out << rest.err;
  expect_the_same();
}

TEST_F(Interrupted, ctrl_c_leaves_a_checkpoint_that_goes_on) {
  Process process(training(part_.path()), {.program = tigon_program()});
  const fs::path records = part_.path() / "records.jsonl";
  ASSERT_TRUE(world::wait_until(
      [&] { return bytes_of(records).find("\"converge_step\"") != std::string::npos; }));
  process.signal(SIGINT);
  const ProgramRun run = process.wait();
  EXPECT_EQ(run.exit_code, kExitInterrupted) << run.out << run.err;
  EXPECT_FALSE(fs::is_empty(part_.path() / "records.checkpoints"));
  EXPECT_NE(bytes_of(records).find("\"complete\":false"), std::string::npos);
  const ProgramRun rest = start(resume()).wait();
  EXPECT_EQ(rest.exit_code, kExitOk) << rest.out << rest.err;
  expect_the_same();
}

TEST_F(Interrupted, a_damaged_checkpoint_is_refused_by_name) {
  for (const auto& file : fs::directory_iterator(whole_.path() / "records.checkpoints"))
    fs::resize_file(file.path(), fs::file_size(file.path()) / 2);
  // Without the trainings' records they are asked for again.
  std::ifstream in(whole_.path() / "records.jsonl");
  std::string first;
  std::getline(in, first);
  std::ofstream(whole_.path() / "records.jsonl") << first << "\n";
  const ProgramRun run = start({"converge", "--resume", whole_.path().string()}).wait();
  EXPECT_EQ(run.exit_code, kExitUsage);
  EXPECT_NE(run.err.find("is not a whole safetensors file"), std::string::npos) << run.err;
}

}  // namespace
}  // namespace tigon
