// SPDX-License-Identifier: Apache-2.0
// Numbered tasks on all cores.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace tigon::convergence {

// Calls f(0) to f(count - 1), each once, on as many threads as there are cores.
template <class F>
void parallel_for(int count, F&& f) {
  std::atomic<int> next = 0;
  const auto work = [&] {
    for (int i = next++; i < count; i = next++) f(i);
  };
  const int threads = std::min<int>(count, std::max(1u, std::thread::hardware_concurrency()));
  std::vector<std::jthread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back(work);
  work();
}

// f(i) for i from begin to end, in blocks on all cores where they are many.
template <class F>
void parallel_for_each(int64_t begin, int64_t end, F&& f) {
  constexpr int64_t kBlock = int64_t{1} << 18;
  parallel_for(static_cast<int>((end - begin + kBlock - 1) / kBlock), [&](int block) {
    const int64_t first = begin + block * kBlock;
    for (int64_t i = first; i < std::min(end, first + kBlock); ++i) f(i);
  });
}

}  // namespace tigon::convergence
