// SPDX-License-Identifier: Apache-2.0
// A training that goes on from a checkpoint has the bits of one that never stopped.
#include "convergence/checkpoint.h"

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <sstream>

#include "convergence/micro.h"
#include "convergence/safetensors.h"
#include "convergence/train.h"
#include "harness/tests/temporary_folder.h"

namespace tigon::convergence {
namespace {

namespace fs = std::filesystem;

constexpr int kSteps = 9;

TrainSettings settings_at(const fs::path& file, int every) {
  TrainSettings s;
  s.steps = s.horizon = kSteps;
  s.checkpoint = file;
  s.checkpoint_every = every;
  return s;
}

template <class P>
RunReport run(const TrainSettings& settings) {
  const ModelConfig config = micro_config(false);
  return train<P>(config, fused_ops<P>(), micro_data(config), settings);
}

// Ends after `steps`.
template <class P>
RunReport run_until(TrainSettings settings, int steps) {
  std::atomic<bool> stop = false;
  settings.stop = &stop;
  settings.on_step = [&](const StepReport& s) { stop = s.step + 1 == steps; };
  return run<P>(settings);
}

std::string bytes_of(const fs::path& file) {
  std::stringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

template <class P>
void expect_same_bits() {
  const TemporaryFolder folder;
  const fs::path whole = folder.path() / "whole", parts = folder.path() / "parts";
  const RunReport want = run<P>(settings_at(whole, 3));
  ASSERT_TRUE(want.complete);
  for (int until : {1, 3, 4, 8}) EXPECT_EQ(run_until<P>(settings_at(parts, 3), until).steps, until);
  const RunReport got = run<P>(settings_at(parts, 3));
  EXPECT_EQ(got.loss, want.loss);
  EXPECT_EQ(got.held_out_loss, want.held_out_loss);
  EXPECT_TRUE(bytes_of(whole) == bytes_of(parts));
  EXPECT_FALSE(fs::exists(folder.path() / "parts.part"));
}

TEST(Checkpoint, GoesOnWithTheSameBitsInF32) { expect_same_bits<F32>(); }
TEST(Checkpoint, GoesOnWithTheSameBitsInBF16) { expect_same_bits<BF16>(); }

TEST(Checkpoint, AWholeTrainingLeavesNoneUnlessAsked) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "training";
  run_until<F32>(settings_at(file, 0), 2);
  EXPECT_TRUE(fs::exists(file));
  EXPECT_TRUE(run<F32>(settings_at(file, 0)).complete);
  EXPECT_FALSE(fs::exists(file));
}

TEST(Checkpoint, HoldsEveryTensorByName) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "training";
  run_until<BF16>(settings_at(file, 0), 2);
  const SafetensorsReader reader(file);
  EXPECT_EQ(reader.metadata().at("step"), "2");
  size_t found = 0;
  for (const TensorEntry& e : reader.entries())
    if (e.name == "weight.layers.1.down" || e.name == "master.layers.1.down" ||
        e.name == "adam_m.layers.1.down" || e.name == "adam_v.layers.1.down") {
      ++found;
      EXPECT_EQ(e.shape, (std::vector<int64_t>{32, 40}));
      EXPECT_EQ(e.type, e.name[0] == 'w' ? "BF16" : "F32");
    }
  EXPECT_EQ(found, 4u);
}

std::string refusal(const fs::path& file, const TrainSettings& settings) {
  try {
    run<F32>(settings);
  } catch (const ConvergeError& error) {
    EXPECT_EQ(error.exit_code, 2);
    EXPECT_NE(std::string(error.what()).find(file.string()), std::string::npos) << error.what();
    return error.what();
  }
  return "";
}

TEST(Checkpoint, OfAnotherTrainingIsRefused) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "training";
  run_until<F32>(settings_at(file, 0), 2);
  TrainSettings other = settings_at(file, 0);
  other.seed = 2;
  EXPECT_NE(refusal(file, other).find("another training"), std::string::npos);
}

TEST(Checkpoint, CutOffAnywhereIsRefused) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "training";
  run_until<F32>(settings_at(file, 0), 2);
  const std::string whole = bytes_of(file);
  for (size_t size : {size_t{0}, size_t{5}, size_t{200}, whole.size() / 2, whole.size() - 1}) {
    std::ofstream(file, std::ios::binary) << whole.substr(0, size);
    EXPECT_NE(refusal(file, settings_at(file, 0)).find("not a whole"), std::string::npos) << size;
  }
}

TEST(Checkpoint, AFullDiskIsAnErrorOfTheMachine) {
  if (!fs::exists("/dev/full")) GTEST_SKIP();
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "training";
  fs::create_symlink("/dev/full", folder.path() / "training.part");
  try {
    run_until<F32>(settings_at(file, 0), 2);
    FAIL();
  } catch (const ConvergeError& error) {
    EXPECT_EQ(error.exit_code, 5);
    EXPECT_NE(std::string(error.what()).find("No space left"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace tigon::convergence
