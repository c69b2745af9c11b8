// SPDX-License-Identifier: Apache-2.0
#include "kernels/collective/thread_ranks.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "kernels/collective/sentence.h"
#include "kernels/device/runtime.h"

namespace tigon {
namespace {

// What a rank brings to a collective.
struct Offer {
  std::string call;  // equal on all ranks, e.g. "all_gather of 12 bytes"
  const void* data = nullptr;
};

// Where ranks meet.
class Group {
 public:
  Group(int size, std::chrono::milliseconds limit)
      : limit_(limit), offers_(static_cast<size_t>(size)), here_(static_cast<size_t>(size)) {}

  int size() const { return static_cast<int>(offers_.size()); }
  const Offer& offer(int rank) const { return offers_[static_cast<size_t>(rank)]; }

  // Waits until every rank is here with its offer.
  Status meet(int rank, Offer offer) {
    std::unique_lock lock(mutex_);
    if (!failure_.ok()) return failure_;
    offers_[static_cast<size_t>(rank)] = std::move(offer);
    return wait_for_all(rank, lock);
  }

  // Waits until every rank has used the offers.
  Status part(int rank) {
    std::unique_lock lock(mutex_);
    return failure_.ok() ? wait_for_all(rank, lock) : failure_;
  }

  // A rank that is done: nobody may wait for it.
  void leave(int rank, const Status& why) {
    const std::lock_guard lock(mutex_);
    left_ = "rank " + std::to_string(rank) + " of " + std::to_string(size()) + " has left" +
            (why.ok() ? "" : std::string(": ") + why.reason);
    if (arrived_ > 0 || !why.ok()) fail_locked(collective_failed(left_));
  }

  // Only the first failure counts.
  Status fail(const Status& why) {
    const std::lock_guard lock(mutex_);
    return fail_locked(why);
  }
  Status failure() const {
    const std::lock_guard lock(mutex_);
    return failure_;
  }

 private:
  Status fail_locked(const Status& why) {
    if (failure_.ok()) failure_ = why;
    changed_.notify_all();
    return failure_;
  }

  Status wait_for_all(int rank, std::unique_lock<std::mutex>& lock) {
    if (!left_.empty()) return fail_locked(collective_failed(left_));
    here_[static_cast<size_t>(rank)] = true;
    if (++arrived_ == size()) return all_are_here();
    const uint64_t meeting = meeting_;
    const auto over = [&] { return meeting_ != meeting || !failure_.ok(); };
    if (!changed_.wait_for(lock, limit_, over)) return fail_locked(collective_failed(absent()));
    return meeting_ != meeting ? Status{} : failure_;
  }

  Status all_are_here() {
    for (int r = 1; r < size(); ++r)
      if (offer(r).call != offer(0).call)
        return fail_locked(collective_failed("rank 0 calls " + offer(0).call + ", rank " +
                                             std::to_string(r) + " " + offer(r).call));
    arrived_ = 0;
    here_.assign(here_.size(), false);
    ++meeting_;
    changed_.notify_all();
    return {};
  }

  std::string absent() const {
    std::string ranks;
    for (size_t r = 0; r < here_.size(); ++r)
      if (!here_[r]) ranks += (ranks.empty() ? "" : ", ") + std::to_string(r);
    return "rank " + ranks + " of " + std::to_string(size()) + " did not come within " +
           std::to_string(limit_.count()) + " ms";
  }

  const std::chrono::milliseconds limit_;
  std::vector<Offer> offers_;
  std::vector<bool> here_;
  int arrived_ = 0;
  uint64_t meeting_ = 0;
  std::string left_;  // why no collective can come to an end any more; empty: all ranks are here
  Status failure_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
};

// Calls f with a value of the type's element type.
template <class F>
void with_element(DType type, const F& f) {
  if (type == DType::kF32) return f(float{});
  type == DType::kBF16 ? f(bf16{}) : f(f16{});
}

// out [count] = sum over the ranks of their offers from element `first` on.
template <class T>
void add_offers(const Group& group, int64_t first, int64_t count, T* out) {
  for (int64_t i = 0; i < count; ++i) {
    double sum = 0;
    for (int r = 0; r < group.size(); ++r)
      sum += static_cast<double>(static_cast<const T*>(group.offer(r).data)[first + i]);
    out[i] = static_cast<T>(sum);
  }
}

class ThreadRank final : public Communicator {
 public:
  ThreadRank(Group* group, int rank) : group_(*group), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return group_.size(); }

  Status all_gather(const void* send, void* receive, size_t bytes, Stream stream) override {
    if (bytes > 0 && (send == nullptr || receive == nullptr))
      return fail(invalid("collective: send and receive must not be null"));
    return guarded([&] {
      stream_synchronize(stream);
      const std::string call = "all_gather of " + std::to_string(bytes) + " bytes";
      if (const Status s = group_.meet(rank_, {call, send}); !s.ok()) return s;
      for (int r = 0; r < size(); ++r)
        device_copy(static_cast<char*>(receive) + static_cast<size_t>(r) * bytes,
                    group_.offer(r).data, bytes, stream);
      stream_synchronize(stream);
      return group_.part(rank_);
    });
  }

  Status all_reduce(void* values, int64_t count, DType type, Stream stream) override {
    return sum("all_reduce", values, values, count, count, 0, type, stream);
  }
  Status reduce_scatter(const void* send, void* receive, int64_t count, DType type,
                        Stream stream) override {
    return sum("reduce_scatter", send, receive, count, count * size(), count * rank_, type, stream);
  }
  Status wait(Stream stream, std::chrono::milliseconds) override {
    return guarded([&] {  // nothing is enqueued that another rank could keep from ending
      stream_synchronize(stream);
      return group_.failure();
    });
  }

 private:
  // receive [count] = the sum over the ranks of their `sent` values, from element `first` on.
  Status sum(const char* name, const void* send, void* receive, int64_t count, int64_t sent,
             int64_t first, DType type, Stream stream) {
    if (const Status s = check_sum(send, count, type); !s.ok()) return fail(s);
    if (count > 0 && receive == nullptr)
      return fail(invalid("collective: receive must not be null"));
    const std::string call =
        std::string(name) + " of " + std::to_string(count) + " " + name_of(type);
    Status status;
    with_element(type, [&]<class T>(T) {
      status = guarded([&] {
        std::vector<T> own(static_cast<size_t>(sent)), out(static_cast<size_t>(count));
        device_download(own.data(), send, own.size() * sizeof(T), stream);
        if (const Status s = group_.meet(rank_, {call, own.data()}); !s.ok()) return s;
        add_offers(group_, first, count, out.data());
        if (const Status s = group_.part(rank_); !s.ok()) return s;
        device_upload(receive, out.data(), out.size() * sizeof(T), stream);
        stream_synchronize(stream);
        return Status{};
      });
    });
    return status;
  }

  Status fail(const Status& why) { return group_.fail(why); }

  template <class F>
  Status guarded(const F& f) {
    try {
      return f();
    } catch (const std::exception& error) {
      return fail(collective_failed("rank " + std::to_string(rank_) + ": " + error.what()));
    }
  }

  Group& group_;
  const int rank_;
};

// What the work of a rank returns, also where it throws.
Status status_of(const std::function<Status(Communicator&)>& work, Communicator& communicator) {
  try {
    return work(communicator);
  } catch (const std::exception& error) {
    return {Status::kLaunchFailed, kept_sentence(error.what())};
  }
}

}  // namespace

Status run_ranks(int ranks, std::chrono::milliseconds limit,
                 const std::function<Status(Communicator&)>& work) {
  if (ranks < 1) return invalid("collective: there must be at least one rank");
  Group group(ranks, limit);
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      ThreadRank rank(&group, r);
      group.leave(r, status_of(work, rank));
    });
  for (std::thread& t : threads) t.join();
  return group.failure();
}

}  // namespace tigon
