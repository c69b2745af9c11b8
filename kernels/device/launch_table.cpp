// SPDX-License-Identifier: Apache-2.0
// The choices of a process: a map that launches read and tools write.
#include "kernels/device/launch_table.h"

#include <mutex>

#include "kernels/device/runtime.h"

namespace tigon {

namespace {

struct Listener {
  bool on = false;
  LaunchTable::Question last;
};
thread_local Listener listener;

}  // namespace

LaunchTable& launch_table() {
  static LaunchTable table;
  return table;
}

void LaunchTable::choose(const Key& key, const LaunchShape& shape) {
  choose(current_device_name(), key, shape);
}

void LaunchTable::choose(const std::string& device, const Key& key, const LaunchShape& shape) {
  const std::unique_lock lock(mutex_);
  choices_.insert_or_assign({device, key}, shape);
  any_ = true;
}

void LaunchTable::forget(const Key& key) {
  const std::unique_lock lock(mutex_);
  choices_.erase({current_device_name(), key});
  any_ = !choices_.empty();
}

std::optional<LaunchShape> LaunchTable::choice(const char* name, int64_t size) const {
  if (!any_) return {};
  const std::shared_lock lock(mutex_);
  const auto found = choices_.find({current_device_name(), {name, size}});
  return found == choices_.end() ? std::nullopt : std::optional(found->second);
}

void LaunchTable::listen() { listener = {true, {}}; }

LaunchTable::Question LaunchTable::heard() {
  listener.on = false;
  return std::move(listener.last);
}

bool LaunchTable::listens() const { return listener.on; }

void LaunchTable::hear(Question asked) { listener.last = std::move(asked); }

}  // namespace tigon
