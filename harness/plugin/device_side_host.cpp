// SPDX-License-Identifier: Apache-2.0
// On the host a kernel's memory is the shared memory itself.
#include "harness/plugin/device_side.h"
#include "harness/worker/shared_memory.h"

namespace tigon::plugin {

struct DeviceSide::State {
  worker::SharedMemory memory;
};

DeviceSide::DeviceSide(int memory_descriptor)
    : state_(new State{worker::SharedMemory(memory_descriptor)}) {}

DeviceSide::~DeviceSide() = default;

void DeviceSide::map(size_t bytes) { state_->memory.map(bytes); }

char* DeviceSide::mirror() const { return state_->memory.data(); }
void* DeviceSide::stream() const { return nullptr; }
void DeviceSide::put() {}
void DeviceSide::get() {}
void DeviceSide::begin_ordered() {}
void DeviceSide::end_ordered() {}
void DeviceSide::synchronize() {}
void DeviceSide::flush_caches() {}

}  // namespace tigon::plugin
