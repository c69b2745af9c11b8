// SPDX-License-Identifier: Apache-2.0
// Static and dynamic shared memory of the host executor.
#include "kernels/simt/shared_memory.h"

#include <cstring>
#include <new>

#include "kernels/simt/check.h"
#include "kernels/simt/device_memory.h"
#include "kernels/simt/report.h"
#include "kernels/simt/sanitizer.h"
#include "kernels/simt/worker.h"

namespace tigon::simt {

namespace {
// Behind every array, where an overrun is seen; elsewhere it must spoil the next one, as on a GPU.
size_t gap() { return check::enabled || sanitizer::kEnabled ? 32 : 0; }
}  // namespace

SharedMemory::~SharedMemory() {
  if (arena_ != nullptr) shared_arena_free(arena_, capacity_ * kBlockBytes);
}

void SharedMemory::begin_launch(unsigned blocks, size_t dynamic_bytes, bool poison) {
  if (capacity_ < blocks) {
    if (arena_ != nullptr) shared_arena_free(arena_, capacity_ * kBlockBytes);
    arena_ = shared_arena_allocate(blocks * kBlockBytes);
    capacity_ = blocks;
  }
  blocks_ = blocks;
  dynamic_bytes_ = dynamic_bytes;
  poison_ = poison;
  static_used_ = 0;
  arrays_.clear();
  // Also behind arrays: the previous launch's may have been larger, which would hide an overrun.
  sanitizer::poison(arena_, capacity_ * kBlockBytes);
  check::forbid(arena_, capacity_ * kBlockBytes);
}

void SharedMemory::begin_group() {
  for (const Array& a : arrays_) undefine(a.offset, a.bytes);
  if (dynamic_bytes_ != 0) undefine(kStaticBytes, dynamic_bytes_);
}

void SharedMemory::undefine(size_t offset, size_t bytes) {
  for (unsigned rank = 0; rank < blocks_; ++rank) {
    char* p = block(rank) + offset;
    sanitizer::unpoison(p, bytes);
    if (poison_) memset(p, 0xff, bytes);
    check::undefine(p, bytes);
  }
}

size_t SharedMemory::add_array(size_t bytes, size_t align) {
  const size_t offset = (static_used_ + align - 1) & ~(align - 1);
  if (offset + bytes > kStaticBytes) return kStaticBytes;
  static_used_ = offset + bytes + gap();
  arrays_.push_back({offset, bytes});
  undefine(offset, bytes);
  return offset;
}

int SharedMemory::owner(const void* p) const {
  const auto offset = static_cast<size_t>(static_cast<const char*>(p) - arena_);
  return offset < blocks_ * kBlockBytes ? static_cast<int>(offset / kBlockBytes) : -1;
}

void* shared_array(SharedSite& site, size_t bytes, size_t align) {
  Worker& w = *this_worker;
  if (site.launch != w.launch->id) {
    const size_t offset = w.shared.add_array(bytes, align < 16 ? 16 : align);
    if (offset == SharedMemory::kStaticBytes) trap("static shared memory above 48 KB");
    site = {w.launch->id, static_cast<uint32_t>(offset)};
  }
  return current_ids->block->shared + site.offset;
}

void* dynamic_shared() { return current_ids->block->shared + SharedMemory::kStaticBytes; }

void* cluster_map(void* shared, unsigned rank) {
  Worker& w = *this_worker;
  const BlockIds& own = *current_ids->block;
  if (w.shared.owner(shared) != static_cast<int>(own.rank) || rank >= w.blocks.size()) {
    add_finding(
        Kind::kTrap, __builtin_return_address(0),
        "cluster_map: the pointer is not in this block's shared memory or the rank is not in "
        "the cluster");
    return shared;
  }
  return w.blocks[rank].shared + (static_cast<char*>(shared) - own.shared);
}

}  // namespace tigon::simt
