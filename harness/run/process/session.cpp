// SPDX-License-Identifier: Apache-2.0
// Workers and their children.
#include "harness/run/process/session.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>

#include "harness/run/executor.h"
#include "harness/run/process/child.h"
#include "harness/run/process/wire.h"
#include "kernels/device/device_limits.h"

namespace tigon {

namespace {

// Cases that one child runs before another worker may take the next ones of its group: on a GPU
// few, because a baseline's library compiles for each.
constexpr size_t kChunkCases = 16, kChunkCasesOnGpu = 8;

bool same_group(const Case& a, const Case& b) {
  return a.op == b.op && a.pass == b.pass && a.impl == b.impl;
}

std::string known_executor(const std::string& wanted) {
  const std::string executor = wanted.empty() ? default_executor() : wanted;
  const auto& known = executors();
  if (std::find(known.begin(), known.end(), executor) != known.end()) return executor;
  throw UsageError(
      fmt::format("no executor '{}' in this build; it has {}", executor, fmt::join(known, ", ")));
}

std::string repro_of(const Case& c, const std::string& executor, const std::string& plugin) {
  return fmt::format("./tigon check --case '{}'{}{}{}", case_id(c),
                     executor == default_executor() ? "" : " --executor " + executor,
                     is_as_sm_80() ? fmt::format(" --as {}", kAsSm80) : "",
                     plugin.empty() ? "" : fmt::format(" --impl-from '{}'", plugin));
}

// More do not pay: the children share one GPU.
constexpr int kMostGpuChildren = 12;

// What judging a case takes of the host, by the bytes of its tensors: they are filled, kept in
// double, compared and kept again as they were. Generous.
constexpr double kMemoryPerByte = 24, kJudgedBytesPerS = 5e6;

double half_of_memory() {
  return 0.5 * static_cast<double>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<double>(sysconf(_SC_PAGESIZE));
}

int cores() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

}  // namespace

Session::Session(std::vector<Case> cases, const CheckRequest& request)
    : cases_(std::move(cases)),
      executor_(known_executor(request.executor)),
      program_(program_of(executor_)),
      save_folder_(request.save_folder),
      plugin_(request.plugin),
      shares_children_(executor_ == "cuda" && plugin_.empty()),
      timeout_s_(request.timeout_s),
      memory_(half_of_memory()),
      results_(cases_.size()) {
  const int wanted = request.jobs > 0      ? request.jobs
                     : executor_ == "cuda" ? std::min(cores(), kMostGpuChildren)
                                           : cores();
  jobs_ = std::max(1, std::min(wanted, static_cast<int>(cases_.size())));
  threads_per_child_ = std::max(1, cores() / jobs_);
}

Session::~Session() {
  stop_ = true;
  for (std::thread& w : workers_) w.join();
}

void Session::make_chunks() {
  const size_t most = executor_ == "cuda" ? kChunkCasesOnGpu : kChunkCases;
  for (size_t i = 0; i < chosen_.size(); ++i) {
    const bool extend = !chunks_.empty() && i - chunks_.back().begin < most &&
                        same_group(cases_[chosen_[i]], cases_[chosen_[chunks_.back().begin]]);
    if (extend)
      chunks_.back().end = i + 1;
    else
      chunks_.push_back({i, i + 1});
  }
}

void Session::start(std::vector<size_t> chosen) {
  chosen_ = std::move(chosen);
  make_chunks();
  running_ = jobs_;
  for (int i = 0; i < jobs_; ++i) workers_.emplace_back([this] { work(); });
}

std::optional<CheckResult> Session::wait(size_t index) {
  std::unique_lock lock(mutex_);
  finished_.wait(lock, [&] { return results_[index].has_value() || running_ == 0; });
  return results_[index];
}

void Session::work() {
  Child child(program_, executor_, threads_per_child_, plugin_);
  const Case* previous = nullptr;
  for (size_t n; !stop_ && (n = next_chunk_++) < chunks_.size();) {
    for (size_t i = chunks_[n].begin; i < chunks_[n].end && !stop_; ++i) {
      const Case& c = cases_[chosen_[i]];
      if (previous && !shares_children_ && !same_group(*previous, c)) child.stop();
      previous = &c;
      CheckResult result = run(&child, c);
      if (interrupted()) stop_ = true;
      if (!stop_) finish(chosen_[i], std::move(result));
    }
  }
  const std::lock_guard lock(mutex_);
  --running_;
  finished_.notify_all();
}

double Session::timeout_of(double bytes) const {
  if (timeout_s_ > 0) return timeout_s_;
  return (executor_ == "cuda" ? 30 : 60) + bytes / kJudgedBytesPerS;
}

CheckResult Session::run(Child* child, const Case& c) {
  const double bytes = stored_bytes(c);
  const Room::Part held(&memory_, kMemoryPerByte * bytes);
  CheckResult result;
  result.c = c;
  const auto end_with = [&](Verdict verdict, const std::string& reason) {
    result.verdict = verdict;
    result.reason = reason;
  };
  try {
    const std::string folder = save_folder_.empty() ? "" : save_folder_ + "/" + case_key(c);
    const Reply reply = child->ask(encode(WireRequest{case_id(c), folder}), timeout_of(bytes));
    bool last = false;
    switch (reply.kind) {
      case Reply::kAnswer:
        result = decode_check(reply.text, &last);
        if (last) child->stop();
        break;
      case Reply::kTimeout:
        end_with(Verdict::kTimeout, reply.text);
        break;
      case Reply::kCrashed:
        end_with(Verdict::kCrashed, reply.text);
        break;
      case Reply::kInterrupted:
        end_with(Verdict::kNotRun, reply.text);
        break;
    }
  } catch (const std::exception& e) {
    child->stop();
    end_with(Verdict::kCrashed, e.what());
  }
  result.executor = executor_;
  result.repro = repro_of(c, executor_, plugin_);
  return result;
}

void Session::finish(size_t index, CheckResult result) {
  const std::lock_guard lock(mutex_);
  results_[index] = std::move(result);
  finished_.notify_all();
}

}  // namespace tigon
