// SPDX-License-Identifier: Apache-2.0
// Times implementations of one pass side by side.
#include "harness/measure/timing.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "harness/measure/device_data.h"
#include "kernels/device/nvtx.h"
#include "kernels/device/owned_stream.h"

namespace tigon {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMostSets = 64;
constexpr double kGraphSeconds = 2e-3;  // of one replay, beside which its start is little
constexpr size_t kMostGraphCalls = 512;

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// One sample of a contender on a set.
using Sample = std::function<double(size_t contender)>;

// Rounds of one sample per contender until every contender has enough.
void interleave(std::vector<Timing>& timings, const StoppingRule& rule, const Sample& sample) {
  for (int round = 0; round < rule.warm_up; ++round)
    for (size_t i = 0; i < timings.size(); ++i)
      if (timings[i].reason.empty()) sample(i);
  const auto start = Clock::now();
  const double budget = rule.seconds * static_cast<double>(timings.size());
  for (bool enough = false; !enough;) {
    enough = true;
    for (size_t i = 0; i < timings.size(); ++i) {
      if (!timings[i].reason.empty()) continue;
      timings[i].samples.push_back(sample(i));
      StoppingRule shared = rule;
      shared.seconds = budget;
      enough = enough && shared.enough(timings[i].samples, since(start));
    }
  }
}

std::vector<Timing> empty_timings(const std::vector<Contender>& contenders, const char* basis) {
  std::vector<Timing> timings;
  for (const Contender& contender : contenders)
    timings.push_back({.impl = contender.c.impl, .basis = basis});
  return timings;
}

// Outputs of `times` calls in a row on fresh inputs.
std::vector<uint64_t> outputs_after(CallSet& set, const std::function<void()>& work) {
  set.fill_inputs(kTimedSeed);
  set.poison_outputs();
  device_synchronize();  // the work may go to another stream, which does not wait for the poison
  work();
  device_synchronize();
  return set.fingerprints();
}

void check_outputs(Timing* timing, CallSet& set, const std::function<void()>& untimed,
                   const std::function<void()>& timed) {
  const ProfilerRange range("verify", case_id(set.of()));
  const std::vector<uint64_t> alone = outputs_after(set, untimed);
  timing->fingerprints = outputs_after(set, timed);
  if (alone == timing->fingerprints) return;
  timing->verdict = "invalid";
  timing->reason = fmt::format(
      "outputs of the timed call ({}) differ from those of an untimed call on the same inputs",
      timing->basis);
}

// Whether a sampled call leaves what a call alone does.
void check_samples(std::vector<Timing>* timings, std::vector<Contender>& contenders,
                   Rotation& rotation, auto& sample) {
  for (size_t i = 0; i < contenders.size(); ++i)
    check_outputs(
        &(*timings)[i], rotation[0], [&] { call_once(contenders[i], rotation[0], nullptr); },
        [&] { sample(contenders[i], rotation[0]); });
}

// A flush writes and reads twice the L2; while it runs the host enqueues what follows, so that no
// launch falls between the events.
class ColdSample {
 public:
  ColdSample() : scratch_(2 * std::max<size_t>(device_info().l2_bytes, size_t{1} << 20)) {}
  double operator()(const Contender& contender, const CallSet& set) {
    const Status flushed = flush_caches(scratch_.data(), scratch_.bytes(), nullptr);
    if (!flushed.ok()) throw DeviceError(flushed.reason);
    timer_.start(nullptr);
    call_once(contender, set, nullptr);
    timer_.stop(nullptr);
    return timer_.seconds();
  }

 private:
  DeviceBuffer scratch_;
  GpuTimer timer_;
};

struct CapturedCalls {
  Graph graph;
  size_t calls = 0, rounds = 0;  // calls = rounds * sets
};

CapturedCalls capture(const Contender& contender, Rotation& rotation, double hint_s,
                      Stream stream) {
  CapturedCalls captured;
  const double wanted = kGraphSeconds / std::max(hint_s, 1e-7);
  const double most = static_cast<double>(std::max(kMostGraphCalls, rotation.size()));
  const auto calls = static_cast<size_t>(std::min(wanted, most));
  captured.rounds = std::max<size_t>(1, calls / rotation.size());
  captured.calls = captured.rounds * rotation.size();
  captured.graph.capture(stream, [&](Stream s) {
    for (size_t i = 0; i < captured.calls; ++i)
      call_once(contender, rotation[i % rotation.size()], s);
  });
  return captured;
}

}  // namespace

Rotation::Rotation(const Case& c, size_t least_bytes, size_t memory_bytes) {
  const size_t one = std::max<size_t>(tensor_bytes(c).total(), 1);
  const size_t wanted = std::clamp<size_t>((least_bytes + one - 1) / one, 2, kMostSets);
  const size_t fitting = std::max<size_t>(1, memory_bytes / one);
  for (size_t i = 0; i < std::min(wanted, fitting); ++i) {
    sets_.emplace_back(c);
    sets_.back().fill_inputs(kTimedSeed + i);
  }
}

void call_once(const Contender& contender, const CallSet& set, Stream stream) {
  const Status status =
      contender.implementation->run(contender.c.dtype, set.with_scratch(contender.scratch), stream);
  if (!status.ok()) throw DeviceError(status.reason);
}

std::vector<Timing> time_cold(std::vector<Contender>& contenders, Rotation& rotation,
                              const StoppingRule& rule) {
  std::vector<Timing> timings = empty_timings(contenders, "cold");
  ColdSample sample;
  {
    const ProfilerRange range("timed cold", case_id(contenders.front().c));
    interleave(timings, rule, [&](size_t i) { return sample(contenders[i], rotation.next()); });
  }
  check_samples(&timings, contenders, rotation, sample);
  return timings;
}

std::vector<Timing> time_graph(std::vector<Contender>& contenders, Rotation& rotation,
                               const std::vector<double>& hint_s, const StoppingRule& rule) {
  std::vector<Timing> timings = empty_timings(contenders, "graph");
  const OwnedStream stream;
  std::vector<CapturedCalls> captured(contenders.size());
  for (size_t i = 0; i < contenders.size(); ++i) {
    try {
      captured[i] = capture(contenders[i], rotation, hint_s[i], stream);
    } catch (const DeviceError& error) {
      timings[i].verdict = "unsupported";
      timings[i].reason = fmt::format("cannot be captured into a graph: {}", error.what());
    }
  }
  GpuTimer timer;
  const auto replay = [&](size_t i) {
    timer.start(stream);
    captured[i].graph.replay(stream);
    timer.stop(stream);
    return timer.seconds() / static_cast<double>(captured[i].calls);
  };
  {
    const ProfilerRange range("timed graph", case_id(contenders.front().c));
    interleave(timings, rule, replay);
  }
  for (size_t i = 0; i < contenders.size(); ++i) {
    if (!timings[i].reason.empty()) continue;
    check_outputs(
        &timings[i], rotation[0],
        [&] {
          for (size_t k = 0; k < captured[i].rounds; ++k)
            call_once(contenders[i], rotation[0], nullptr);
        },
        [&] {
          captured[i].graph.replay(stream);
          stream_synchronize(stream);
        });
    timings[i].fingerprints.clear();
  }
  return timings;
}

std::vector<Timing> time_wall(std::vector<Contender>& contenders, Rotation& rotation,
                              const StoppingRule& rule) {
  std::vector<Timing> timings = empty_timings(contenders, "wall");
  const auto sample = [&](const Contender& contender, const CallSet& set) {
    const auto start = Clock::now();
    call_once(contender, set, nullptr);
    device_synchronize();
    return since(start);
  };
  interleave(timings, rule, [&](size_t i) { return sample(contenders[i], rotation.next()); });
  check_samples(&timings, contenders, rotation, sample);
  return timings;
}

}  // namespace tigon
