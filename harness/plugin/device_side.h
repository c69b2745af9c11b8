// SPDX-License-Identifier: Apache-2.0
// Memory and stream of tigon-plugin-host. Kernels see a mirror of the memory that is shared with
// the judge: that memory itself on the host, device memory of the same layout on a GPU. One of
// device_side_host.cpp and device_side_cuda.cpp is in a build. Errors are std::runtime_error.
#pragma once
#include <cstddef>
#include <memory>

namespace tigon::plugin {

class DeviceSide {
 public:
  // Starts the device, where there is one.
  explicit DeviceSide(int memory_descriptor);
  ~DeviceSide();
  DeviceSide(const DeviceSide&) = delete;
  DeviceSide& operator=(const DeviceSide&) = delete;

  // Maps the first `bytes` of the shared memory; the mirror follows.
  void map(size_t bytes);

  char* mirror() const;
  void* stream() const;  // cudaStream_t, or null

  // Shared memory to the mirror and back; complete when they return.
  void put();
  void get();

  // Around a call that is judged on a GPU: the stream is kept busy for some milliseconds, and only
  // behind that, in its order, the inputs arrive in the mirror and, after the call, the mirror is
  // copied. Work on any other stream comes too early for the inputs. Nothing on the host.
  void begin_ordered();
  void end_ordered();

  void synchronize();  // the whole device

  // Leaves a GPU's caches without the tensors, and the GPU with this process: to come from
  // another's takes time. Complete when it returns.
  void flush_caches();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tigon::plugin
