// SPDX-License-Identifier: Apache-2.0
// What a training step is made of: its time by part, and which part its memory belongs to.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/device/runtime.h"

namespace tigon::convergence {

// Parts of a step. Weights and gradients hold memory and take no time; "other" is the residual
// stream, the embedding and the copies between host and device.
enum class Part {
  kNorms,
  kRotary,
  kActivation,
  kAttention,
  kLinear,
  kLoss,
  kOptimizer,
  kWeights,
  kGradients,
  kOther
};
inline constexpr int kParts = 10;
const char* name_of(Part part);  // "norms", "rotary", ...

template <class T>
struct ByPart {
  std::array<T, kParts> of{};
  T& operator[](Part part) { return of[static_cast<size_t>(part)]; }
  const T& operator[](Part part) const { return of[static_cast<size_t>(part)]; }
  T sum() const {
    T total{};
    for (const T& x : of) total += x;
    return total;
  }
};

// One step, measured.
struct StepParts {
  ByPart<double> seconds;  // on the stream
  double step_s = 0;       // the whole step on the stream: what the parts do not cover is between
  ByPart<int64_t> intermediates;      // the most bytes that a part allocated and freed on its way
  int64_t high_water = 0;             // the most bytes allocated on the device
  Part at_high_water = Part::kOther;  // the part and the phase (Model) with most intermediates
  int phase_of_high_water = 0;
};

// Times the parts of steps with pairs of points on the stream (events on a GPU, the clock on the
// host executor) that are read after the step, and names them for a profiler (NVTX). Resets the
// high water of device memory on the way.
class PartMeter {
 public:
  PartMeter();
  ~PartMeter();
  PartMeter(const PartMeter&) = delete;
  PartMeter& operator=(const PartMeter&) = delete;

  void begin_step(Stream stream);
  void end_step();
  // The phase of the step that the parts from here on belong to.
  void enter(int phase) { phase_ = phase; }
  // Parts do not nest. Throws std::logic_error when they do.
  void begin(Part part);
  void end();
  // Of the last step, which is waited for.
  StepParts read();

 private:
  struct Range;
  Range& next_range();

  Stream stream_ = nullptr;
  int phase_ = 0;
  bool open_ = false;
  size_t count_ = 0;  // ranges of this step
  std::vector<std::unique_ptr<Range>> ranges_;
  GpuTimer step_;
  StepParts parts_;
};

// Everything enqueued while it lives belongs to one part; nothing where there is no meter.
class PartRange {
 public:
  PartRange(PartMeter* meter, Part part) : meter_(meter) {
    if (meter_ != nullptr) meter_->begin(part);
  }
  // A device that failed says so again at the next call.
  ~PartRange() {
    if (meter_ == nullptr) return;
    try {
      meter_->end();
    } catch (const DeviceError&) {
    }
  }
  PartRange(const PartRange&) = delete;
  PartRange& operator=(const PartRange&) = delete;

 private:
  PartMeter* meter_;
};

}  // namespace tigon::convergence
