// SPDX-License-Identifier: Apache-2.0
// Fibers: a saved machine context and the stacks they run on. Hand-written switch on x86-64,
// ucontext elsewhere, which is slow: a system call each way.
#pragma once
#include <cstddef>
#include <vector>

#if !defined(__x86_64__) || defined(TIGON_SIMT_UCONTEXT)
#define TIGON_SIMT_USE_UCONTEXT 1
#include <ucontext.h>
#endif

namespace tigon::simt {

struct Context {
#ifdef TIGON_SIMT_USE_UCONTEXT
  ucontext_t saved;
#else
  void* sp = nullptr;
#endif
};

// Makes `c` start `entry`, which must never return, on the given stack.
void prepare(Context& c, char* stack, size_t size, void (*entry)());
// Saves the running context in `from` and resumes `to`.
void switch_context(Context& from, const Context& to);

// Stacks of one OS thread, each with a guard page at its low end, so that an overflow faults.
class StackPool {
 public:
  StackPool() = default;
  StackPool(const StackPool&) = delete;
  StackPool& operator=(const StackPool&) = delete;
  ~StackPool();
  // Throws every stack away when the size has changed. Call while none is in use.
  void set_size(size_t bytes);
  char* take();
  void give_back(char* stack) { free_.push_back(stack); }
  void reclaim_all();  // of abandoned fibers
  size_t stack_bytes() const { return bytes_; }

 private:
  void release();
  size_t bytes_ = 0;
  std::vector<char*> slabs_, free_;
};

}  // namespace tigon::simt
