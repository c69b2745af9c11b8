// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <string>
#include <thread>

#include "kernels/collective/nccl.h"
#include "kernels/collective/sentence.h"

namespace tigon {
namespace {

// What of nccl.h is used. It is declared here because the CUDA Toolkit does not bring that header;
// NCCL keeps these numbers and functions through all versions 2.
using Comm = void*;
using Result = int;
constexpr Result kSuccess = 0, kInProgress = 7;
constexpr int kByte = 0, kFloat16 = 6, kFloat32 = 7, kBfloat16 = 9, kSum = 0;

struct Nccl {
  Result (*make_id)(NcclId*);
  Result (*connect)(Comm*, int, NcclId, int);
  Result (*destroy)(Comm);
  Result (*abort)(Comm);
  Result (*rank)(Comm, int*);
  Result (*count)(Comm, int*);
  Result (*async_error)(Comm, Result*);
  const char* (*error_string)(Result);
  const char* (*last_error)(Comm);
  Result (*all_gather)(const void*, void*, size_t, int, Comm, Stream);
  Result (*all_reduce)(const void*, void*, size_t, int, int, Comm, Stream);
  Result (*reduce_scatter)(const void*, void*, size_t, int, int, Comm, Stream);
};

struct Found {
  Nccl functions{};
  std::string error;
};

Found find() {
  Found found;
  // The first finds a copy that is loaded already, whoever loaded it and however private.
  void* library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) library = dlopen("libnccl.so.2", RTLD_NOW);
  if (library == nullptr) {
    found.error = std::string("NCCL 2 is not found; install it, or add its folder to ") +
                  "LD_LIBRARY_PATH (" + dlerror() + ")";
    return found;
  }
  const auto load = [&]<class F>(F* function, const char* name) {
    *function = reinterpret_cast<F>(dlsym(library, name));
    if (*function == nullptr) found.error = std::string("NCCL has no ") + name;
  };
  Nccl& n = found.functions;
  load(&n.make_id, "ncclGetUniqueId");
  load(&n.connect, "ncclCommInitRank");
  load(&n.destroy, "ncclCommDestroy");
  load(&n.abort, "ncclCommAbort");
  load(&n.rank, "ncclCommUserRank");
  load(&n.count, "ncclCommCount");
  load(&n.async_error, "ncclCommGetAsyncError");
  load(&n.error_string, "ncclGetErrorString");
  load(&n.last_error, "ncclGetLastError");
  load(&n.all_gather, "ncclAllGather");
  load(&n.all_reduce, "ncclAllReduce");
  load(&n.reduce_scatter, "ncclReduceScatter");
  return found;
}

const Found& found() {
  static const auto* f = new Found(find());
  return *f;
}
const Nccl& nccl() { return found().functions; }

Status status_of(Result result, const char* call, Comm comm) {
  if (result == kSuccess || result == kInProgress) return {};
  return collective_failed(std::string(call) + ": " + nccl().error_string(result) + " (" +
                           nccl().last_error(comm) + ")");
}

int type_code(DType type) {
  if (type == DType::kF32) return kFloat32;
  return type == DType::kBF16 ? kBfloat16 : kFloat16;
}

class NcclRank final : public Communicator {
 public:
  NcclRank(Comm comm, bool owns) : comm_(comm), owns_(owns) {}
  ~NcclRank() override {
    if (owns_ && comm_ != nullptr) nccl().destroy(comm_);
  }
  NcclRank(const NcclRank&) = delete;
  NcclRank& operator=(const NcclRank&) = delete;

  Status find_place() {
    if (const Status s = status_of(nccl().rank(comm_, &rank_), "ncclCommUserRank", comm_); !s.ok())
      return s;
    return status_of(nccl().count(comm_, &size_), "ncclCommCount", comm_);
  }
  int rank() const override { return rank_; }
  int size() const override { return size_; }

  Status all_gather(const void* send, void* receive, size_t bytes, Stream stream) override {
    if (bytes > 0 && (send == nullptr || receive == nullptr))
      return invalid("collective: send and receive must not be null");
    return enqueue("ncclAllGather", [&](Comm comm) {
      return nccl().all_gather(send, receive, bytes, kByte, comm, stream);
    });
  }
  Status all_reduce(void* values, int64_t count, DType type, Stream stream) override {
    if (const Status s = check_sum(values, count, type); !s.ok()) return s;
    return enqueue("ncclAllReduce", [&](Comm comm) {
      return nccl().all_reduce(values, values, static_cast<size_t>(count), type_code(type), kSum,
                               comm, stream);
    });
  }
  Status reduce_scatter(const void* send, void* receive, int64_t count, DType type,
                        Stream stream) override {
    if (const Status s = check_sum(send, count, type); !s.ok()) return s;
    if (count > 0 && receive == nullptr) return invalid("collective: receive must not be null");
    return enqueue("ncclReduceScatter", [&](Comm comm) {
      return nccl().reduce_scatter(send, receive, static_cast<size_t>(count), type_code(type), kSum,
                                   comm, stream);
    });
  }

  Status wait(Stream stream, std::chrono::milliseconds limit) override {
    if (comm_ == nullptr) return given_up();
    const auto end = std::chrono::steady_clock::now() + limit;
    while (true) {
      const cudaError_t done = cudaStreamQuery(stream);
      if (done == cudaSuccess) return {};
      if (done != cudaErrorNotReady) return give_up(cudaGetErrorString(done));
      Result error = kSuccess;
      const Result asked = nccl().async_error(comm_, &error);
      if (const Status s = status_of(asked == kSuccess ? error : asked, "NCCL", comm_); !s.ok())
        return give_up(s.reason);
      if (std::chrono::steady_clock::now() >= end)
        return give_up("the others did not come within " + std::to_string(limit.count()) + " ms");
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }

 private:
  template <class F>
  Status enqueue(const char* name, const F& call) {
    if (comm_ == nullptr) return given_up();
    return status_of(call(comm_), name, comm_);
  }

  static Status given_up() { return collective_failed("the group was given up after an error"); }

  // Ends what is enqueued, which would wait for ever, unless the group is somebody else's.
  Status give_up(const std::string& why) {
    if (owns_) {
      nccl().abort(comm_);
      comm_ = nullptr;
    }
    return collective_failed("rank " + std::to_string(rank_) + " of " + std::to_string(size_) +
                             ": " + why);
  }

  Comm comm_;
  const bool owns_;
  int rank_ = 0, size_ = 1;
};

Status hold(Comm comm, bool owns, std::unique_ptr<Communicator>* result) {
  auto rank = std::make_unique<NcclRank>(comm, owns);
  if (const Status s = rank->find_place(); !s.ok()) return s;
  *result = std::move(rank);
  return {};
}

Status find_library() {
  return found().error.empty() ? Status{} : collective_failed(found().error);
}

}  // namespace

Status nccl_make_id(NcclId* id) {
  if (const Status s = find_library(); !s.ok()) return s;
  return status_of(nccl().make_id(id), "ncclGetUniqueId", nullptr);
}

Status nccl_connect(const NcclId& id, int rank, int ranks, std::unique_ptr<Communicator>* result) {
  if (const Status s = find_library(); !s.ok()) return s;
  if (ranks < 1 || rank < 0 || rank >= ranks)
    return invalid("collective: a rank must be in [0, ranks), and there must be one at least");
  Comm comm = nullptr;
  const Result connected = nccl().connect(&comm, ranks, id, rank);
  if (const Status s = status_of(connected, "ncclCommInitRank", nullptr); !s.ok()) return s;
  return hold(comm, true, result);
}

Status nccl_adopt(void* comm, std::unique_ptr<Communicator>* result) {
  if (const Status s = find_library(); !s.ok()) return s;
  if (comm == nullptr) return invalid("collective: comm must be an ncclComm_t, not null");
  return hold(comm, false, result);
}

}  // namespace tigon
