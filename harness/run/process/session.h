// SPDX-License-Identifier: Apache-2.0
// Workers that run cases in children of their own; results are taken by index.
#pragma once
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "harness/run/check.h"
#include "harness/run/process/room.h"

namespace tigon {

class Child;

class Session {
 public:
  // Throws UsageError when the executor is unknown or its program is missing.
  Session(std::vector<Case> cases, const CheckRequest& request);
  ~Session();

  const std::vector<Case>& cases() const { return cases_; }

  // Starts to run the cases with these indices, in this order.
  void start(std::vector<size_t> chosen);
  // Waits for the result of a chosen case; nullopt when the run was interrupted before it.
  std::optional<CheckResult> wait(size_t index);

 private:
  struct Chunk {
    size_t begin, end;  // in chosen_
  };
  void make_chunks();
  void work();
  CheckResult run(Child* child, const Case& c);
  double timeout_of(double bytes) const;  // of tensors
  void finish(size_t index, CheckResult result);

  std::vector<Case> cases_;
  std::string executor_, program_, save_folder_, plugin_;
  bool shares_children_;  // among groups: on a GPU children start slowly, one after the other
  double timeout_s_;      // 0: as long as its size needs
  Room memory_;
  int jobs_, threads_per_child_;
  std::vector<size_t> chosen_;
  std::vector<Chunk> chunks_;
  std::atomic<size_t> next_chunk_{0};
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::condition_variable finished_;
  std::vector<std::optional<CheckResult>> results_;
  int running_ = 0;  // workers
  std::vector<std::thread> workers_;
};

}  // namespace tigon
