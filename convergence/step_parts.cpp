// SPDX-License-Identifier: Apache-2.0
// Pairs of points on the stream, and the high water of memory between them.
#include "convergence/step_parts.h"

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "kernels/device/nvtx.h"

namespace tigon::convergence {

const char* name_of(Part part) {
  constexpr const char* kNames[] = {"norms", "rotary",    "activation", "attention", "linear",
                                    "loss",  "optimizer", "weights",    "gradients", "other"};
  return kNames[static_cast<size_t>(part)];
}

struct PartMeter::Range {
  Part part = Part::kOther;
  size_t before = 0;  // bytes allocated
  GpuTimer timer;
  std::optional<ProfilerRange> shown;
};

PartMeter::PartMeter() = default;
PartMeter::~PartMeter() = default;

// Kept for the next step: making an event takes longer than recording it.
PartMeter::Range& PartMeter::next_range() {
  if (count_ == ranges_.size()) ranges_.push_back(std::make_unique<Range>());
  return *ranges_[count_++];
}

void PartMeter::begin_step(Stream stream) {
  stream_ = stream;
  count_ = 0;
  open_ = false;
  parts_ = {};
  step_.start(stream);
}

void PartMeter::end_step() { step_.stop(stream_); }

void PartMeter::begin(Part part) {
  if (open_) throw std::logic_error("PartMeter: a part within a part");
  open_ = true;
  Range& range = next_range();
  range.part = part;
  range.shown.emplace("part", name_of(part));
  parts_.high_water =
      std::max(parts_.high_water, static_cast<int64_t>(device_memory_stats().high_water));
  device_memory_reset_high_water();
  range.before = device_memory_stats().current;
  range.timer.start(stream_);
}

void PartMeter::end() {
  Range& range = *ranges_[count_ - 1];
  open_ = false;
  range.timer.stop(stream_);
  range.shown.reset();
  const size_t highest = device_memory_stats().high_water;
  const auto intermediates = static_cast<int64_t>(highest - range.before);
  if (intermediates >
      *std::max_element(parts_.intermediates.of.begin(), parts_.intermediates.of.end())) {
    parts_.at_high_water = range.part;
    parts_.phase_of_high_water = phase_;
  }
  int64_t& most = parts_.intermediates[range.part];
  most = std::max(most, intermediates);
  parts_.high_water = std::max(parts_.high_water, static_cast<int64_t>(highest));
}

StepParts PartMeter::read() {
  parts_.step_s = step_.seconds();
  for (size_t i = 0; i < count_; ++i)
    parts_.seconds[ranges_[i]->part] += ranges_[i]->timer.seconds();
  return parts_;
}

}  // namespace tigon::convergence
