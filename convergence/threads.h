// Numbered tasks on all cores.
#pragma once
#include <algorithm>
#include <atomic>
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

}  // namespace tigon::convergence
