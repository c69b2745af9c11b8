// SPDX-License-Identifier: Apache-2.0
// What runs when: as it is, captured, replayed; and what a refusal leads to.
#include "convergence/step_graph.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "convergence/converge.h"
#include "kernels/device/owned_stream.h"

namespace tigon::convergence {
namespace {

// Adds nothing up on the host: counts calls, and fills device memory, which a graph can do.
class Launches {
 public:
  std::function<void()> fill(unsigned char byte) {
    return [this, byte] {
      ++calls;
      device_fill(memory_.data(), byte, 1, stream);
    };
  }
  unsigned char value() {
    unsigned char byte = 0;
    device_download(&byte, memory_.data(), 1, stream);
    return byte;
  }
  OwnedStream stream;
  int calls = 0;

 private:
  DeviceBuffer memory_{1};
};

TEST(StepGraphs, ReplayWhatWasCapturedInTheSecondRun) {
  Launches launches;
  StepGraphs graphs("");
  for (const unsigned char byte : {1, 2, 3}) {
    graphs.run(0, launches.stream, launches.fill(byte));
    // The third run does what the second one did.
    EXPECT_EQ(launches.value(), byte == 3 ? 2 : byte);
  }
  graphs.run(1, launches.stream, launches.fill(9));
  EXPECT_EQ(launches.value(), 9) << "another sequence";
  EXPECT_EQ(graphs.how(), "CUDA graph");
}

TEST(StepGraphs, WhatWasReleasedIsCapturedAnew) {
  Launches launches;
  StepGraphs graphs("");
  graphs.run(0, launches.stream, launches.fill(1));
  graphs.run(0, launches.stream, launches.fill(2));
  graphs.release();
  graphs.run(0, launches.stream, launches.fill(3));
  EXPECT_EQ(launches.value(), 3);
}

TEST(StepGraphs, LaunchOneByOneWhenTold) {
  Launches launches;
  StepGraphs graphs("--no-graph");
  for (const unsigned char byte : {1, 2, 3}) {
    graphs.run(0, launches.stream, launches.fill(byte));
    EXPECT_EQ(launches.value(), byte);
  }
  EXPECT_EQ(launches.calls, 3);
  EXPECT_EQ(graphs.how(), "one by one: --no-graph");
}

// The launches that fail are those of the capture; the run goes on without one.
TEST(StepGraphs, AFailedCaptureIsRunOneByOneAndSaysWhy) {
  Launches launches;
  StepGraphs graphs("");
  const auto fails_second = [&] {
    launches.fill(static_cast<unsigned char>(launches.calls + 1))();
    if (launches.calls == 2) throw ConvergeError(5, "no capture of this");
  };
  for (int run = 0; run < 3; ++run) graphs.run(0, launches.stream, fails_second);
  EXPECT_EQ(launches.value(), 4) << "first, capture, second, third";
  EXPECT_EQ(graphs.how(), "one by one: no capture of this");
}

}  // namespace
}  // namespace tigon::convergence
