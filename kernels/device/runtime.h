// SPDX-License-Identifier: Apache-2.0
// The device as host code sees it, without a CUDA type: memory, streams, events, graphs, and what
// the device is. On the host executor everything happens at once and streams have no meaning.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include "kernels/signature/status.h"

namespace tigon {

struct DeviceError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct DeviceOutOfMemory : DeviceError {
  using DeviceError::DeviceError;
};

// Memory; addresses are multiples of 256. Everything below throws DeviceError when the device
// fails, device_alloc throws DeviceOutOfMemory. Size 0 gives an address that may not be used.
void* device_alloc(size_t bytes);
void device_free(void* p);
// The allocation that an address lies in; throws DeviceError when there is none.
struct DeviceRange {
  void* data = nullptr;
  size_t bytes = 0;
};
DeviceRange device_range_of(const void* p);
// The same in the order of a stream, without waiting: only work enqueued on it between the two may
// use the memory. It takes memory from what earlier work of the stream has freed.
void* device_alloc_async(size_t bytes, Stream stream);
void device_free_async(void* p, Stream stream);
// Copies, in the order of the stream. Host memory may be reused when the call returns; a download
// has finished then.
void device_upload(void* to, const void* from_host, size_t bytes, Stream stream = nullptr);
void device_download(void* to_host, const void* from, size_t bytes, Stream stream = nullptr);
void device_copy(void* to, const void* from, size_t bytes, Stream stream = nullptr);
void device_fill(void* p, unsigned char byte, size_t bytes, Stream stream = nullptr);
// Tells the checker that these bytes have no defined contents any more. Nothing elsewhere.
void device_mark_uninitialized(void* p, size_t bytes);

Stream stream_create();
void stream_destroy(Stream stream);
void stream_synchronize(Stream stream);
// Work that `later` gets from now on waits for all that is on `earlier`. Nothing waits for it here.
void stream_follow(Stream later, Stream earlier);
void device_synchronize();

struct DeviceInfo {
  std::string kind;  // "host" or "cuda"
  std::string name;
  std::string uuid;
  int sm_count = 0;
  size_t l2_bytes = 0;
  size_t memory_bytes = 0;
  int compute_major = 0, compute_minor = 0;
  std::string driver_version, runtime_version;
};
DeviceInfo device_info();
// device_info().name of the current device, asked once per device.
const std::string& current_device_name();

// Memory allocated with device_alloc, in bytes.
struct MemoryStats {
  size_t current = 0;
  size_t high_water = 0;     // largest `current` since the last reset
  uint64_t allocations = 0;  // calls since the start
};
MemoryStats device_memory_stats();
void device_memory_reset_high_water();
// Free memory of the device, whoever uses the rest.
size_t device_free_bytes();

// Owns an allocation.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  explicit DeviceBuffer(size_t bytes) : data_(device_alloc(bytes)), bytes_(bytes) {}
  ~DeviceBuffer() {
    if (data_ != nullptr) device_free(data_);
  }
  DeviceBuffer(DeviceBuffer&& other) noexcept { swap(other); }
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    DeviceBuffer(std::move(other)).swap(*this);
    return *this;
  }
  void* data() const { return data_; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }
  size_t bytes() const { return bytes_; }

 private:
  void swap(DeviceBuffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

// Time between two points of a stream.
class GpuTimer {
 public:
  GpuTimer();
  ~GpuTimer();
  GpuTimer(GpuTimer&&) noexcept;
  GpuTimer& operator=(GpuTimer&&) noexcept;
  void start(Stream stream);
  void stop(Stream stream);
  // Waits for the second point.
  double seconds() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Work recorded once and replayed with one call. `work` must launch everything on the stream it is
// given and may not allocate, free or synchronise. On the host executor replay calls it again.
class Graph {
 public:
  Graph();
  ~Graph();
  Graph(Graph&&) noexcept;
  Graph& operator=(Graph&&) noexcept;
  void capture(Stream stream, const std::function<void(Stream)>& work);
  void replay(Stream stream);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tigon
