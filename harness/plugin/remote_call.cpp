// SPDX-License-Identifier: Apache-2.0
// One bound call in shared memory.
#include "harness/plugin/remote_call.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <string_view>
#include <utility>

#include "harness/run/judging/implementation_fault.h"
#include "kernels/device/integer.h"
#include "kernels/device/runtime.h"

namespace tigon::plugin {

namespace {

uint64_t hash_of(const char* bytes, size_t size) {
  return std::hash<std::string_view>()({bytes, size});
}

// Rows that lie gigabytes apart are reserved addresses, not an allocation.
DeviceRange range_of(const void* address) {
  try {
    return device_range_of(address);
  } catch (const DeviceError&) {
    throw ImplementationFault(Verdict::kUnsupported,
                              "not for plug-ins: its memory cannot be copied to another process");
  }
}

// The tensors of a call in their order.
std::vector<std::pair<const TensorInfo*, Role>> tensors_of(const KernelOf& kernel) {
  std::vector<std::pair<const TensorInfo*, Role>> all;
  for (const TensorInfo& info : kernel.pass->tensors) all.emplace_back(&info, info.role);
  if (kernel.before == nullptr) return all;
  const auto has = [&](const std::string& name) {
    return std::any_of(all.begin(), all.end(), [&](auto& t) { return t.first->name == name; });
  };
  for (const TensorInfo& info : kernel.before->tensors)
    if (info.is_input() && !has(info.name)) all.emplace_back(&info, Role::kIn);
  return all;
}

}  // namespace

size_t RemoteCall::Place::elements() const {
  size_t n = 1;
  for (int64_t s : ref.shape) n *= static_cast<size_t>(s);
  return n;
}

size_t RemoteCall::Place::offset(size_t row) const {
  int64_t offset = 0;
  for (size_t d = ref.shape.size() - 1; d-- > 0;) {
    const auto length = static_cast<size_t>(ref.shape[d]);
    offset += static_cast<int64_t>(row % length) * ref.stride[d];
    row /= length;
  }
  return at + static_cast<size_t>(offset) * size_of(ref.dtype);
}

size_t RemoteCall::Place::row_bytes() const {
  return size_of(ref.dtype) * (ref.shape.empty() ? 1 : static_cast<size_t>(ref.shape.back()));
}

std::vector<char> RemoteCall::Place::gather(const char* memory) const {
  std::vector<char> packed(elements() * size_of(ref.dtype));
  const size_t row = row_bytes();
  for (size_t r = 0; r * row < packed.size(); ++r)
    std::memcpy(packed.data() + r * row, memory + offset(r), row);
  return packed;
}

void RemoteCall::Place::scatter(const std::vector<char>& packed, Image* image) const {
  const size_t row = row_bytes();
  for (size_t r = 0; r * row < packed.size(); ++r)
    std::memcpy(image->data() + offset(r), packed.data() + r * row, row);
}

uint64_t RemoteCall::Place::fingerprint(const char* memory) const {
  const size_t row = row_bytes(), rows = row == 0 ? 0 : elements() * size_of(ref.dtype) / row;
  uint64_t all = 0;
  for (size_t r = 0; r < rows; ++r)
    all = all * 0x9e3779b97f4a7c15u + hash_of(memory + offset(r), row);
  return all;
}

RemoteCall::RemoteCall(const KernelOf& kernel, DType policy, const Bound& bound)
    : kernel_(kernel), policy_(policy), bound_(&bound) {
  for (const auto& [info, role] : tensors_of(kernel)) add(*info, role);
  if (bound.scratch.data != nullptr) scratch_at_ = place(bound.scratch.data);
}

void RemoteCall::add(const TensorInfo& info, Role role) {
  const auto found = bound_->tensors.find(info.name);
  if (found == bound_->tensors.end() || found->second.data == nullptr) return;
  places_.push_back({info.name, role, found->second, place(found->second.data)});
}

// Where an address lies in the shared memory; its allocation gets a place if it has none.
size_t RemoteCall::place(const void* address) {
  const auto inside = [&](const Region& r) {
    return static_cast<size_t>(static_cast<const char*>(address) - static_cast<char*>(r.data));
  };
  for (const Region& r : regions_)
    if (address >= r.data && inside(r) < r.bytes) return r.at + inside(r);
  const DeviceRange range = range_of(address);
  regions_.push_back({range.data, range.bytes, bytes_});
  bytes_ += round_up(range.bytes, kAlignment);
  return regions_.back().at + inside(regions_.back());
}

worker::SharedCall RemoteCall::call() const {
  worker::SharedCall call;
  for (const auto& [info, role] : tensors_of(kernel_)) {
    auto& tensor = call.tensors.emplace_back();
    for (const Place& p : places_)
      if (p.name == info->name)
        tensor = {p.at, static_cast<int32_t>(p.ref.dtype), p.ref.shape, p.ref.stride};
  }
  int32_t index = 0;
  for (const OptionInfo& option : kernel_.pass->options) {
    const double value = bound_->values.at(option.name);
    if (value != option.default_value) call.options.push_back({index, 0, value});
    ++index;
  }
  call.scratch_at = scratch_at_;
  call.scratch_bytes = bound_->scratch.bytes;
  return call;
}

Json RemoteCall::request(const char* what) const {
  return {{"do", what}, {"op", kernel_.ops.at(policy_)}, {"call", to_json(call())}};
}

void RemoteCall::upload_to(char* memory) const {
  for (const Region& r : regions_)
    if (r.bytes > 0) device_download(memory + r.at, r.data, r.bytes);
}

Image RemoteCall::upload() const {
  Image image(bytes_);
  upload_to(image.data());
  return image;
}

void RemoteCall::download(const Image& image) const {
  for (const Region& r : regions_)
    if (r.bytes > 0) device_upload(r.data, image.data() + r.at, r.bytes);
}

RemoteCall::Packed RemoteCall::inputs(const char* memory) const {
  Packed packed;
  for (const Place& p : places_)
    if (p.role == Role::kIn || p.role == Role::kInOut) packed[p.name] = p.gather(memory);
  return packed;
}

RemoteCall::Packed RemoteCall::outputs(const char* memory) const {
  Packed packed;
  for (const Place& p : places_)
    if (p.role != Role::kIn) packed[p.name] = p.gather(memory);
  return packed;
}

std::string RemoteCall::name_of(const Region& region) const {
  for (const Place& p : places_)
    if (p.at >= region.at && p.at - region.at < region.bytes) return p.name;
  return "the workspace";
}

RemoteCall::Fingerprints RemoteCall::fingerprints(const char* memory) const {
  Fingerprints all;
  for (const Region& r : regions_) all[name_of(r)] = hash_of(memory + r.at, r.bytes);
  return all;
}

}  // namespace tigon::plugin
