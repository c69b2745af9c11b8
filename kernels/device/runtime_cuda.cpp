// SPDX-License-Identifier: Apache-2.0
// runtime.h on CUDA. Host code only: the CUDA runtime API, every call checked.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <mutex>
#include <vector>

#include "kernels/device/memory_ledger.h"
#include "kernels/device/runtime.h"

namespace tigon {

namespace {

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  (void)cudaGetLastError();  // so that an error that is not sticky is seen once only
  throw DeviceError(std::string(what) + ": " + cudaGetErrorString(error));
}

// Of what destructors call while an error of a kernel is on its way up. When that error has taken
// the context down, what lay in it is gone, and whoever uses the GPU next is told.
void check_release(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  (void)cudaGetLastError();
  const bool context_is_gone = cudaDeviceSynchronize() != cudaSuccess;
  if (!context_is_gone) check(error, what);
}

device::MemoryLedger& ledger() {
  static device::MemoryLedger l;
  return l;
}

int current_device() {
  int gpu = 0;
  check(cudaGetDevice(&gpu), "cudaGetDevice");
  return gpu;
}

// Whether the device's allocations come from the driver's pool, which then is told to keep what is
// freed: the next allocation of that size costs no synchronisation.
bool has_pool(int gpu) {
  int supported = 0;
  check(cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, gpu),
        "cudaDeviceGetAttribute");
  if (supported == 0) return false;
  cudaMemPool_t pool = nullptr;
  check(cudaDeviceGetDefaultMemPool(&pool, gpu), "cudaDeviceGetDefaultMemPool");
  uint64_t keep_all = UINT64_MAX;
  check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep_all),
        "cudaMemPoolSetAttribute");
  return true;
}

// The same of the current device, asked once of each.
bool use_pool() {
  static std::mutex mutex;
  static std::map<int, bool> known;
  const int gpu = current_device();
  const std::lock_guard lock(mutex);
  const auto found = known.find(gpu);
  if (found != known.end()) return found->second;
  return known[gpu] = has_pool(gpu);
}

std::string version_text(int v) {
  return std::to_string(v / 1000) + "." + std::to_string(v % 1000 / 10);
}

std::string uuid_text(const cudaUUID_t& uuid) {
  std::string text = "GPU";
  for (int i = 0; i < 16; ++i) {
    const bool dash = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
    char byte[4];
    snprintf(byte, sizeof byte, "%s%02x", dash ? "-" : "",
             static_cast<unsigned>(static_cast<unsigned char>(uuid.bytes[i])));
    text += byte;
  }
  return text;
}

}  // namespace

void* device_alloc_async(size_t bytes, Stream stream) {
  void* p = nullptr;
  const size_t asked = bytes == 0 ? 1 : bytes;
  const cudaError_t error = use_pool() ? cudaMallocAsync(&p, asked, stream) : cudaMalloc(&p, asked);
  if (error == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    throw DeviceOutOfMemory("cannot allocate " + std::to_string(bytes) + " bytes on the GPU, " +
                            std::to_string(device_free_bytes()) + " are free");
  }
  check(error, "cudaMallocAsync");
  ledger().add(p, bytes);
  return p;
}

void device_free_async(void* p, Stream stream) {
  if (p == nullptr) return;
  ledger().remove(p);
  if (use_pool())
    check_release(cudaFreeAsync(p, stream), "cudaFreeAsync");
  else
    check_release(cudaFree(p), "cudaFree");
}

void* device_alloc(size_t bytes) {
  // On the legacy stream and waited for, so that any stream may use it.
  void* p = device_alloc_async(bytes, nullptr);
  check(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
  return p;
}

void device_free(void* p) {
  if (p == nullptr) return;
  check_release(cudaDeviceSynchronize(), "cudaDeviceSynchronize");  // any stream may still use it
  device_free_async(p, nullptr);
}

void device_upload(void* to, const void* from_host, size_t bytes, Stream stream) {
  check(cudaMemcpyAsync(to, from_host, bytes, cudaMemcpyHostToDevice, stream), "upload");
  stream_synchronize(stream);
}
void device_download(void* to_host, const void* from, size_t bytes, Stream stream) {
  check(cudaMemcpyAsync(to_host, from, bytes, cudaMemcpyDeviceToHost, stream), "download");
  stream_synchronize(stream);
}
void device_copy(void* to, const void* from, size_t bytes, Stream stream) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream), "device_copy");
}
void device_fill(void* p, unsigned char byte, size_t bytes, Stream stream) {
  check(cudaMemsetAsync(p, byte, bytes, stream), "device_fill");
}
void device_mark_uninitialized(void*, size_t) {}

Stream stream_create() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  return stream;
}
void stream_destroy(Stream stream) {
  check_release(cudaStreamDestroy(stream), "cudaStreamDestroy");
}
void stream_synchronize(Stream stream) {
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}
void stream_follow(Stream later, Stream earlier) {
  cudaEvent_t reached = nullptr;
  check(cudaEventCreateWithFlags(&reached, cudaEventDisableTiming), "cudaEventCreate");
  const cudaError_t recorded = cudaEventRecord(reached, earlier);
  const cudaError_t waits =
      recorded == cudaSuccess ? cudaStreamWaitEvent(later, reached) : recorded;
  check_release(cudaEventDestroy(reached), "cudaEventDestroy");
  check(waits, "cudaStreamWaitEvent");
}
void device_synchronize() { check(cudaDeviceSynchronize(), "cudaDeviceSynchronize"); }

DeviceInfo device_info() {
  cudaDeviceProp p{};
  check(cudaGetDeviceProperties(&p, current_device()), "cudaGetDeviceProperties");
  int driver = 0, runtime = 0;
  check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  DeviceInfo d;
  d.kind = "cuda";
  d.name = p.name;
  d.uuid = uuid_text(p.uuid);
  d.sm_count = p.multiProcessorCount;
  d.l2_bytes = static_cast<size_t>(p.l2CacheSize);
  d.memory_bytes = p.totalGlobalMem;
  d.compute_major = p.major;
  d.compute_minor = p.minor;
  d.driver_version = version_text(driver);
  d.runtime_version = version_text(runtime);
  return d;
}

const std::string& current_device_name() {
  static std::mutex mutex;
  static std::map<int, std::string> names;  // by ordinal; references to them stay
  const int device = current_device();
  const std::lock_guard lock(mutex);
  std::string& name = names[device];
  if (name.empty()) name = device_info().name;
  return name;
}

DeviceRange device_range_of(const void* p) { return ledger().range_of(p); }
MemoryStats device_memory_stats() { return ledger().stats(); }
void device_memory_reset_high_water() { ledger().reset_high_water(); }
size_t device_free_bytes() {
  size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return free;
}

struct GpuTimer::State {
  State() {
    check(cudaEventCreate(&start), "cudaEventCreate");
    check(cudaEventCreate(&stop), "cudaEventCreate");
  }
  ~State() {
    (void)cudaEventDestroy(start);
    (void)cudaEventDestroy(stop);
  }
  cudaEvent_t start = nullptr, stop = nullptr;
};
GpuTimer::GpuTimer() : state_(std::make_unique<State>()) {}
GpuTimer::~GpuTimer() = default;
GpuTimer::GpuTimer(GpuTimer&&) noexcept = default;
GpuTimer& GpuTimer::operator=(GpuTimer&&) noexcept = default;
void GpuTimer::start(Stream stream) {
  check(cudaEventRecord(state_->start, stream), "cudaEventRecord");
}
void GpuTimer::stop(Stream stream) {
  check(cudaEventRecord(state_->stop, stream), "cudaEventRecord");
}
double GpuTimer::seconds() const {
  check(cudaEventSynchronize(state_->stop), "cudaEventSynchronize");
  float ms = 0;
  check(cudaEventElapsedTime(&ms, state_->start, state_->stop), "cudaEventElapsedTime");
  return static_cast<double>(ms) * 1e-3;
}

namespace {

bool allocates(cudaGraph_t graph) {
  size_t count = 0;
  check(cudaGraphGetNodes(graph, nullptr, &count), "cudaGraphGetNodes");
  std::vector<cudaGraphNode_t> nodes(count);
  check(cudaGraphGetNodes(graph, nodes.data(), &count), "cudaGraphGetNodes");
  return std::any_of(nodes.begin(), nodes.end(), [](cudaGraphNode_t node) {
    cudaGraphNodeType type{};
    check(cudaGraphNodeGetType(node, &type), "cudaGraphNodeGetType");
    return type == cudaGraphNodeTypeMemAlloc;
  });
}

// Graphs have a pool of their own, which cannot take what the other one keeps.
void release_unused() {
  if (!use_pool()) return;
  cudaMemPool_t pool = nullptr;
  check(cudaDeviceGetDefaultMemPool(&pool, current_device()), "cudaDeviceGetDefaultMemPool");
  check(cudaMemPoolTrimTo(pool, 0), "cudaMemPoolTrimTo");
}

}  // namespace

struct Graph::State {
  ~State() {
    if (exec == nullptr) return;
    (void)cudaGraphExecDestroy(exec);
    int gpu = 0;
    if (has_memory && cudaGetDevice(&gpu) == cudaSuccess) (void)cudaDeviceGraphMemTrim(gpu);
  }
  cudaGraphExec_t exec = nullptr;
  bool has_memory = false;  // that it allocates
};
Graph::Graph() : state_(std::make_unique<State>()) {}
Graph::~Graph() = default;
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;

void Graph::capture(Stream stream, const std::function<void(Stream)>& work) {
  state_ = std::make_unique<State>();
  cudaGraph_t graph = nullptr;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  try {
    work(stream);
  } catch (...) {
    (void)cudaStreamEndCapture(stream, &graph);
    if (graph != nullptr) (void)cudaGraphDestroy(graph);
    throw;
  }
  check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
  state_->has_memory = allocates(graph);
  if (state_->has_memory) release_unused();
  const cudaError_t error = cudaGraphInstantiate(&state_->exec, graph, 0);
  (void)cudaGraphDestroy(graph);
  check(error, "cudaGraphInstantiate");
}

void Graph::replay(Stream stream) {
  if (state_->exec == nullptr) throw DeviceError("Graph::replay: nothing was captured");
  check(cudaGraphLaunch(state_->exec, stream), "cudaGraphLaunch");
}

}  // namespace tigon
