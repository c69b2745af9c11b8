// SPDX-License-Identifier: Apache-2.0
// On a GPU a kernel's memory is device memory of the shared memory's layout.
#include <cuda_runtime.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

#include "harness/plugin/device_side.h"
#include "harness/worker/shared_memory.h"

namespace tigon::plugin {

namespace {

// How long the caller's stream is busy before a judged call: a kernel that does not wait for it has
// long ended by then, whatever shape is checked.
constexpr std::chrono::milliseconds kHold{3};

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

void CUDART_CB hold(void*) { std::this_thread::sleep_for(kHold); }

}  // namespace

struct DeviceSide::State {
  explicit State(int descriptor) : shared(descriptor) {}

  worker::SharedMemory shared;
  char *mirror = nullptr, *staged = nullptr;
  cudaStream_t stream = nullptr;
  void* flushed = nullptr;  // twice the L2 cache
  size_t flushed_bytes = 0;

  void release() {
    cudaFree(mirror);
    cudaFree(staged);
    mirror = staged = nullptr;
  }
};

DeviceSide::DeviceSide(int memory_descriptor) : state_(std::make_unique<State>(memory_descriptor)) {
  // Not ordered with the default stream: work that lands there is on another stream.
  check(cudaStreamCreateWithFlags(&state_->stream, cudaStreamNonBlocking), "cudaStreamCreate");
  int device = 0, l2_bytes = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&l2_bytes, cudaDevAttrL2CacheSize, device), "L2 cache");
  state_->flushed_bytes = 2 * static_cast<size_t>(l2_bytes);
  check(cudaMalloc(&state_->flushed, state_->flushed_bytes), "cudaMalloc");
}

DeviceSide::~DeviceSide() {
  state_->release();
  cudaFree(state_->flushed);
}

void DeviceSide::map(size_t bytes) {
  if (bytes <= state_->shared.bytes()) return;
  state_->release();
  state_->shared.map(bytes);
  check(cudaMalloc(&state_->mirror, bytes), "cudaMalloc");
  check(cudaMalloc(&state_->staged, bytes), "cudaMalloc");
}

char* DeviceSide::mirror() const { return state_->mirror; }
void* DeviceSide::stream() const { return state_->stream; }

void DeviceSide::put() {
  check(cudaMemcpy(state_->mirror, state_->shared.data(), state_->shared.bytes(),
                   cudaMemcpyHostToDevice),
        "copy to the device");
  synchronize();
}

void DeviceSide::get() {
  check(cudaMemcpy(state_->shared.data(), state_->mirror, state_->shared.bytes(),
                   cudaMemcpyDeviceToHost),
        "copy from the device");
}

void DeviceSide::begin_ordered() {
  check(cudaMemcpy(state_->staged, state_->shared.data(), state_->shared.bytes(),
                   cudaMemcpyHostToDevice),
        "copy to the device");
  check(cudaMemset(state_->mirror, 0xff, state_->shared.bytes()), "cudaMemset");
  synchronize();
  check(cudaLaunchHostFunc(state_->stream, hold, nullptr), "cudaLaunchHostFunc");
  check(cudaMemcpyAsync(state_->mirror, state_->staged, state_->shared.bytes(),
                        cudaMemcpyDeviceToDevice, state_->stream),
        "copy on the device");
}

void DeviceSide::end_ordered() {
  check(cudaMemcpyAsync(state_->staged, state_->mirror, state_->shared.bytes(),
                        cudaMemcpyDeviceToDevice, state_->stream),
        "copy on the device");
  check(cudaStreamSynchronize(state_->stream), "the kernel");
  check(cudaMemcpy(state_->shared.data(), state_->staged, state_->shared.bytes(),
                   cudaMemcpyDeviceToHost),
        "copy from the device");
}

void DeviceSide::synchronize() { check(cudaDeviceSynchronize(), "the kernel"); }

void DeviceSide::flush_caches() {
  check(cudaMemset(state_->flushed, 0, state_->flushed_bytes), "cudaMemset");
  check(cudaDeviceSynchronize(), "cudaMemset");
}

}  // namespace tigon::plugin
