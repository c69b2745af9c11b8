// SPDX-License-Identifier: Apache-2.0
// runtime.h on the host executor: device memory is host memory, which the checker knows of.
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>
#include <thread>

#include "kernels/device/memory_ledger.h"
#include "kernels/device/runtime.h"
#include "kernels/simt/device_memory.h"
#include "kernels/simt/simt.h"

namespace tigon {

namespace {

device::MemoryLedger& ledger() {
  static device::MemoryLedger l;
  return l;
}

// What stands behind "name:" in a file of /proc; empty when it is not there.
std::string proc_value(const char* file, const std::string& name) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);)
    if (line.rfind(name, 0) == 0) return line.substr(line.find(':') + 2);
  return "";
}

std::string cpu_name() {
  const std::string name = proc_value("/proc/cpuinfo", "model name");
  return name.empty() ? "unknown CPU" : name;
}

size_t positive(long value) { return value > 0 ? static_cast<size_t>(value) : 0; }
size_t pages(int name) { return positive(sysconf(name)) * positive(sysconf(_SC_PAGESIZE)); }

// With what the kernel would take back from caches.
size_t available_bytes() {
  const std::string kib = proc_value("/proc/meminfo", "MemAvailable");
  return kib.empty() ? pages(_SC_AVPHYS_PAGES) : std::strtoull(kib.c_str(), nullptr, 10) * 1024;
}

}  // namespace

void* device_alloc(size_t bytes) {
  void* p = simt::memory_allocate(bytes);
  if (p == nullptr)
    throw DeviceOutOfMemory("cannot allocate " + std::to_string(bytes) + " bytes of host memory");
  if (simt::config().poison) memset(p, 0xff, bytes);
  ledger().add(p, bytes);
  return p;
}

void device_free(void* p) {
  if (p == nullptr) return;
  const size_t bytes = ledger().remove(p);
  simt::memory_free(p, bytes);
}

void* device_alloc_async(size_t bytes, Stream) { return device_alloc(bytes); }
void device_free_async(void* p, Stream) { device_free(p); }

void device_upload(void* to, const void* from_host, size_t bytes, Stream stream) {
  device_copy(to, from_host, bytes, stream);
}
void device_download(void* to_host, const void* from, size_t bytes, Stream) {
  if (bytes > 0) memcpy(to_host, from, bytes);  // of nothing, either may be null
}
void device_copy(void* to, const void* from, size_t bytes, Stream) {
  if (bytes == 0) return;  // either may be null then
  memmove(to, from, bytes);
  simt::memory_mark(to, bytes, true);
}
void device_fill(void* p, unsigned char byte, size_t bytes, Stream) {
  if (bytes == 0) return;
  memset(p, byte, bytes);
  simt::memory_mark(p, bytes, true);
}
void device_mark_uninitialized(void* p, size_t bytes) { simt::memory_mark(p, bytes, false); }

Stream stream_create() { return nullptr; }
void stream_destroy(Stream) {}
void stream_synchronize(Stream) {}
void stream_follow(Stream, Stream) {}
void device_synchronize() {}

DeviceInfo device_info() {
  DeviceInfo d;
  d.kind = "host";
  d.name = cpu_name();
  d.sm_count = static_cast<int>(std::thread::hardware_concurrency());
  d.l2_bytes = positive(sysconf(_SC_LEVEL2_CACHE_SIZE));
  d.memory_bytes = pages(_SC_PHYS_PAGES);
  return d;
}

const std::string& current_device_name() {
  static const std::string name = cpu_name();
  return name;
}

DeviceRange device_range_of(const void* p) { return ledger().range_of(p); }
MemoryStats device_memory_stats() { return ledger().stats(); }
void device_memory_reset_high_water() { ledger().reset_high_water(); }
size_t device_free_bytes() { return available_bytes(); }

struct GpuTimer::State {
  std::chrono::steady_clock::time_point start, stop;
};
GpuTimer::GpuTimer() : state_(std::make_unique<State>()) {}
GpuTimer::~GpuTimer() = default;
GpuTimer::GpuTimer(GpuTimer&&) noexcept = default;
GpuTimer& GpuTimer::operator=(GpuTimer&&) noexcept = default;
void GpuTimer::start(Stream) { state_->start = std::chrono::steady_clock::now(); }
void GpuTimer::stop(Stream) { state_->stop = std::chrono::steady_clock::now(); }
double GpuTimer::seconds() const {
  return std::chrono::duration<double>(state_->stop - state_->start).count();
}

struct Graph::State {
  std::function<void(Stream)> work;
};
Graph::Graph() : state_(std::make_unique<State>()) {}
Graph::~Graph() = default;
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;
void Graph::capture(Stream, const std::function<void(Stream)>& work) { state_->work = work; }
void Graph::replay(Stream stream) {
  if (!state_->work) throw DeviceError("Graph::replay: nothing was captured");
  state_->work(stream);
}

}  // namespace tigon
