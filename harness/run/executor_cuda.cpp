// SPDX-License-Identifier: Apache-2.0
// A GPU as the harness sees it: nothing to choose, nothing counted.
#include "harness/run/executor.h"
#include "kernels/device/runtime.h"

namespace tigon {

std::string this_executor() { return "cuda"; }
bool executor_can_check() { return false; }
bool become_executor(const std::string& name) { return name == this_executor(); }
void executor_watch_prefetches() {}
bool executor_checks() { return false; }
void executor_set_threads(int) {}
const std::vector<std::string>& executor_orders() {
  static const std::vector<std::string> kOrders = {"the GPU's own"};
  return kOrders;
}
void executor_set_order(int) {}
void* executor_reserve(size_t bytes) { return device_alloc(bytes); }
void executor_release(void* p, size_t) { device_free(p); }
void executor_reset() {}
std::vector<Finding> executor_findings() { return {}; }
std::vector<KernelTrace> executor_counters() { return {}; }
std::vector<KernelTrace> executor_line_counters() { return {}; }
int executor_multiprocessors() {
  static const int count = device_info().sm_count;
  return count;
}
void executor_without_running(const std::function<void(Stream)>& work) {
  static const Stream stream = stream_create();
  Graph().capture(stream, work);
}
std::vector<std::string> executor_take_launched() { return {}; }
std::map<std::string, std::string> executor_kernels() { return {}; }
std::vector<Writer> executor_writers(const std::vector<const void*>& addresses) {
  return std::vector<Writer>(addresses.size());
}

}  // namespace tigon
