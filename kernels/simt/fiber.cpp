// SPDX-License-Identifier: Apache-2.0
// Context switch and stacks of the host executor's fibers.
#include "kernels/simt/fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <new>

#include "kernels/simt/sanitizer.h"

namespace tigon::simt {

#ifdef TIGON_SIMT_USE_UCONTEXT

void prepare(Context& c, char* stack, size_t size, void (*entry)()) {
  getcontext(&c.saved);
  c.saved.uc_stack.ss_sp = stack;
  c.saved.uc_stack.ss_size = size;
  c.saved.uc_link = nullptr;
  makecontext(&c.saved, entry, 0);
}

void switch_context(Context& from, const Context& to) { swapcontext(&from.saved, &to.saved); }

#else

// Out of line: the callee-saved registers of the System V ABI are all there is to save.
extern "C" void tigon_simt_switch(void** save, void* to);
asm(R"(
.text
.globl tigon_simt_switch
.hidden tigon_simt_switch
.type tigon_simt_switch,@function
tigon_simt_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp,(%rdi)
  movq %rsi,%rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size tigon_simt_switch,.-tigon_simt_switch
)");

void prepare(Context& c, char* stack, size_t size, void (*entry)()) {
  // Spread the tops over the L1 sets: stacks are a power of two apart, and without this hundreds of
  // fibers drive each other out of the cache.
  const size_t colour = reinterpret_cast<uintptr_t>(stack) / size * 5 % 61 * 64;
  auto** top = reinterpret_cast<void**>((reinterpret_cast<uintptr_t>(stack) + size - 64 - colour) &
                                        ~uintptr_t{63});
  *--top = nullptr;  // where a return address would be: ends back traces
  *--top = reinterpret_cast<void*>(entry);
  for (int saved = 0; saved < 6; ++saved) *--top = nullptr;
  c.sp = top;
}

void switch_context(Context& from, const Context& to) { tigon_simt_switch(&from.sp, to.sp); }

#endif

namespace {
constexpr size_t kStacksPerSlab = 64;
constexpr size_t kGuardBytes = 4096;
}  // namespace

StackPool::~StackPool() { release(); }

void StackPool::release() {
  for (char* slab : slabs_) {
    // The system may give these addresses to a new thread's stack.
    sanitizer::unpoison(slab, bytes_ * kStacksPerSlab);
    munmap(slab, bytes_ * kStacksPerSlab);
  }
  slabs_.clear();
  free_.clear();
}

void StackPool::set_size(size_t bytes) {
  if (bytes < sanitizer::kMinStack) bytes = sanitizer::kMinStack;
  if (bytes == bytes_) return;
  release();
  bytes_ = bytes;
}

char* StackPool::take() {
  if (free_.empty()) {
    void* slab = mmap(nullptr, bytes_ * kStacksPerSlab, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (slab == MAP_FAILED) throw std::bad_alloc();
    slabs_.push_back(static_cast<char*>(slab));
    for (size_t i = kStacksPerSlab; i-- > 0;) {
      char* stack = slabs_.back() + i * bytes_;
      mprotect(stack, kGuardBytes, PROT_NONE);
      free_.push_back(stack);
    }
  }
  char* stack = free_.back();
  free_.pop_back();
  // Frames of an abandoned fiber may have left red zones behind.
  sanitizer::unpoison(stack + kGuardBytes, bytes_ - kGuardBytes);
  return stack;
}

void StackPool::reclaim_all() {
  free_.clear();
  for (char* slab : slabs_)
    for (size_t i = kStacksPerSlab; i-- > 0;) free_.push_back(slab + i * bytes_);
}

}  // namespace tigon::simt
