// SPDX-License-Identifier: Apache-2.0
// Calls of a case in graphs and on several streams.
#include <memory>

#include "harness/run/executor.h"
#include "harness/run/judging/case_experiment.h"
#include "harness/run/memory/arena.h"
#include "kernels/device/owned_stream.h"

namespace tigon {

namespace {

// The host executor has one stream, which is everybody's.
void require_our_stream(const Implementation& implementation) {
  if (implementation.on_own_stream && this_executor() == "cuda")
    throw NotApplicable("it runs on a stream of its own");
}

// A problem on a stream of its own. Inputs wait elsewhere in device memory, behind a delay.
class Streamed {
 public:
  explicit Streamed(const Problem& problem) : problem_(problem), device_case_(problem) {
    device_case_.run(0);
    device_case_.fill(0);
    for (const CaseTensor& t : problem.tensors) {
      const TensorRef& ref = device_case_.bound().tensors.at(t.info->name);
      const size_t bytes = t.input.size() * size_of(t.dtype);
      if (!t.is_input || bytes == 0) continue;
      waiting_.push_back({ref.data, DeviceBuffer(bytes)});
      device_copy(waiting_.back().copy.data(), ref.data, bytes);
      device_fill(ref.data, kPoisons[0], bytes);
    }
  }

  void enqueue() {
    // Keeps the stream busy for so long that work on another stream would see poison.
    device_fill(delay_.data(), 0, delay_.bytes(), stream_);
    for (const Waiting& w : waiting_) device_copy(w.to, w.copy.data(), w.copy.bytes(), stream_);
    device_case_.call(stream_);
  }

  HostTensors outputs() {
    stream_synchronize(stream_);
    return outputs_of(problem_, device_case_.collect());
  }

 private:
  struct Waiting {
    void* to;
    DeviceBuffer copy;
  };
  const Problem& problem_;
  DeviceCase device_case_;
  OwnedStream stream_;
  std::vector<Waiting> waiting_;
  DeviceBuffer delay_{size_t{256} << 20};
};

}  // namespace

std::vector<HostTensors> CaseExperiment::replay(const std::vector<Call>& calls) {
  require_our_stream(*problem_.implementation);
  const std::vector<Problem> problems = problems_of(calls);
  DeviceCase on_device(problems.front(), layout_of(calls.front()));
  on_device.run(0);  // a library may allocate in its first call
  const OwnedStream stream;
  Graph graph;
  graph.capture(stream, [&](Stream s) { on_device.call(s); });
  std::vector<HostTensors> all;
  for (size_t i = 0; i < problems.size(); ++i) {
    on_device.use(problems[i]);
    on_device.fill(static_cast<int>(i));
    device_synchronize();  // uploads are in the default stream's order
    graph.replay(stream);
    stream_synchronize(stream);
    all.push_back(outputs_of(problems[i], on_device.collect()));
  }
  return all;
}

std::vector<HostTensors> CaseExperiment::run_on_streams(const std::vector<Call>& calls, int times) {
  require_our_stream(*problem_.implementation);
  const std::vector<Problem> problems = problems_of(calls);
  std::vector<std::unique_ptr<Streamed>> streams;
  for (const Problem& p : problems) streams.push_back(std::make_unique<Streamed>(p));
  device_synchronize();
  for (int i = 0; i < times; ++i)
    for (const auto& s : streams) s->enqueue();
  std::vector<HostTensors> all;
  for (const auto& s : streams) all.push_back(s->outputs());
  return all;
}

}  // namespace tigon
