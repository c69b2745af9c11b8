// On the host a kernel's memory is the shared memory itself.
#include <sys/mman.h>

#include <stdexcept>

#include "harness/plugin/device_side.h"

namespace tigon::plugin {

struct DeviceSide::State {
  int descriptor;
  void* memory = nullptr;
  size_t bytes = 0;
};

DeviceSide::DeviceSide(int memory_descriptor)
    : state_(std::make_unique<State>(State{memory_descriptor})) {}

DeviceSide::~DeviceSide() {
  if (state_->memory != nullptr) munmap(state_->memory, state_->bytes);
}

void DeviceSide::map(size_t bytes) {
  if (bytes <= state_->bytes) return;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, state_->descriptor, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("cannot map the shared memory");
  if (state_->memory != nullptr) munmap(state_->memory, state_->bytes);
  state_->memory = memory;
  state_->bytes = bytes;
}

char* DeviceSide::mirror() const { return static_cast<char*>(state_->memory); }
void* DeviceSide::stream() const { return nullptr; }
void DeviceSide::put() {}
void DeviceSide::get() {}
void DeviceSide::begin_ordered() {}
void DeviceSide::end_ordered() {}
void DeviceSide::synchronize() {}
void DeviceSide::flush_caches() {}

}  // namespace tigon::plugin
