// SPDX-License-Identifier: Apache-2.0
// A pool of OS threads with one job at a time. Helpers spin for some microseconds before they
// sleep: a training step makes hundreds of short launches.
#include "kernels/simt/thread_pool.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "kernels/simt/worker.h"

namespace tigon::simt {

namespace {

constexpr int kSpins = 4000;

void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

class Pool {
 public:
  ~Pool() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    for (std::thread& t : threads_) t.join();
  }

  void run(Launch& launch, void (*work)(Launch&), unsigned helpers) {
    while (threads_.size() < helpers)
      threads_.emplace_back([this, me = static_cast<unsigned>(threads_.size())] { loop(me); });
    if (helpers != 0) {
      const std::lock_guard lock(mutex_);
      launch_ = &launch;
      work_ = work;
      helpers_ = helpers;
      busy_ = helpers;
      generation_.fetch_add(1);
    }
    if (helpers != 0) wake_.notify_all();
    work(launch);
    for (int i = 0; i < kSpins && busy_ != 0; ++i) pause_cpu();
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return busy_ == 0; });
  }

 private:
  void loop(unsigned me) {
    uint64_t seen = 0;
    for (;;) {
      for (int i = 0; i < kSpins && generation_ == seen; ++i) pause_cpu();
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return stop_ || generation_ != seen; });
      if (stop_) return;
      seen = generation_;
      if (me >= helpers_) continue;
      lock.unlock();
      work_(*launch_);
      lock.lock();
      if (--busy_ == 0) done_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::vector<std::thread> threads_;
  Launch* launch_ = nullptr;
  void (*work_)(Launch&) = nullptr;
  unsigned helpers_ = 0;
  std::atomic<unsigned> busy_{0};
  std::atomic<uint64_t> generation_{0};
  bool stop_ = false;
};

}  // namespace

namespace {

// A process that fork() makes has the pool's memory, but none of its threads: it starts with a new
// pool, and the old one, which it could not even destroy, is left as it is.
std::unique_ptr<Pool>& pool() {
  static std::unique_ptr<Pool> the_pool = [] {
    pthread_atfork(nullptr, nullptr, [] {
      static_cast<void>(pool().release());
      pool() = std::make_unique<Pool>();
    });
    return std::make_unique<Pool>();
  }();
  return the_pool;
}

}  // namespace

void run_on_threads(Launch& launch, void (*work)(Launch&)) {
  unsigned threads = launch.config.os_threads;
  if (threads == 0) threads = std::max(1u, std::thread::hardware_concurrency());
  pool()->run(launch, work, static_cast<unsigned>(std::min<uint64_t>(threads, launch.groups)) - 1);
}

}  // namespace tigon::simt
