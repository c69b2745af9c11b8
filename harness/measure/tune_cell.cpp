// SPDX-License-Identifier: Apache-2.0
// Tuning of one cell.
#include "harness/measure/tune_cell.h"

#include <algorithm>
#include <limits>

#include "harness/measure/timing.h"
#include "harness/run/check.h"

namespace tigon {
namespace {

// An implementation that takes this shape.
Implementation in_shape(const Implementation& original, const LaunchTable::Key& key,
                        const LaunchShape& shape) {
  Implementation fixed = original;
  fixed.run = [=](DType type, const Bound& bound, Stream stream) {
    launch_table().choose(key, shape);
    const Status status = original.run(type, bound, stream);
    launch_table().forget(key);
    return status;
  };
  return fixed;
}

size_t workspace_of(const Case& c, const Implementation& implementation, const Bound& bound) {
  return implementation.workspace ? implementation.workspace(c.dtype, bound) : 0;
}

class TunedCell {
 public:
  TunedCell(const Case& c, const Implementation& implementation)
      : case_(c), implementation_(implementation), set_(c) {
    set_.fill_inputs(c.seed);
  }

  LaunchTable::Question question() {
    launch_table().listen();
    const DeviceBuffer scratch(workspace_of(case_, implementation_, set_.bound()));
    const Status status = implementation_.run(case_.dtype, set_.with_scratch(scratch), nullptr);
    stream_synchronize(nullptr);
    if (!status.ok()) throw DeviceError(status.reason);
    return launch_table().heard();
  }

  std::vector<double> medians(const LaunchTable::Key& key, const std::vector<LaunchShape>& shapes,
                              size_t samples) {
    std::vector<Implementation> fixed;
    for (const LaunchShape& s : shapes) fixed.push_back(in_shape(implementation_, key, s));
    std::vector<Contender> contenders;
    for (size_t i = 0; i < shapes.size(); ++i) {
      launch_table().choose(key, shapes[i]);
      const size_t bytes = workspace_of(case_, implementation_, set_.bound());
      launch_table().forget(key);
      contenders.push_back({case_, &fixed[i], DeviceBuffer(bytes)});
    }
    const bool on_gpu = default_executor() == "cuda";
    const size_t least = on_gpu ? 5 * device_info().l2_bytes : 0;
    Rotation rotation(case_, least, device_free_bytes() / 2);
    StoppingRule rule;
    rule.least = rule.most = samples;
    const std::vector<Timing> timings =
        on_gpu ? time_cold(contenders, rotation, rule) : time_wall(contenders, rotation, rule);
    std::vector<double> medians;
    for (const Timing& t : timings)
      medians.push_back(t.verdict == "passed" && !t.samples.empty()
                            ? summarize(t.samples).median
                            : std::numeric_limits<double>::infinity());
    return medians;
  }

 private:
  Case case_;
  const Implementation& implementation_;
  CallSet set_;
};

}  // namespace

std::optional<Tuned> tune_cell(const Case& c, const HalvingRule& rule) {
  TunedCell cell(c, *find_implementation(*find_pass(*find_op(c.op), c.pass), c.impl));
  const LaunchTable::Question question = cell.question();
  if (question.others.empty()) return std::nullopt;
  std::vector<LaunchShape> shapes = {question.usual};
  shapes.insert(shapes.end(), question.others.begin(), question.others.end());
  const auto measure = [&](const std::vector<size_t>& candidates, size_t samples) {
    std::vector<LaunchShape> measured;
    for (size_t i : candidates) measured.push_back(shapes[i]);
    return cell.medians(question.key, measured, samples);
  };
  const Halving h = halve(shapes.size(), 0, measure, rule);
  return Tuned{question.key, shapes.size(), shapes[0], shapes[h.winner], h.before, h.after};
}

}  // namespace tigon
