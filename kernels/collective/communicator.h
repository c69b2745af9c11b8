// SPDX-License-Identifier: Apache-2.0
// The communicator seam: NCCL between GPUs (nccl.h), threads as ranks anywhere (thread_ranks.h).
#pragma once
#include <chrono>
#include <cstdint>

#include "kernels/device/owned_stream.h"
#include "kernels/signature/dtype.h"
#include "kernels/signature/status.h"

namespace tigon {

// One rank of a group. All ranks call the same functions in the same order and with the same sizes;
// memory is the device's. Sums are the same in every bit on every rank.
// Errors: kInvalidArgument for a size, a type or a pointer, or where ranks call different things;
// kLaunchFailed for what the library says, and where a rank has left or did not come in time. After
// an error the group is of no use.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;  // 0 to size() - 1
  virtual int size() const = 0;
  // Enqueues: receive [size, bytes] gets what each rank sends, in the order of ranks. `send` and
  // `receive` may not overlap.
  virtual Status all_gather(const void* send, void* receive, size_t bytes, Stream stream) = 0;
  // Enqueues: values [count] of f32, bf16 or f16 become the sum of all ranks' values.
  virtual Status all_reduce(void* values, int64_t count, DType type, Stream stream) = 0;
  // Enqueues: receive [count] gets this rank's part of the sum of all ranks' send [size, count].
  // `receive` may not overlap `send`.
  virtual Status reduce_scatter(const void* send, void* receive, int64_t count, DType type,
                                Stream stream) = 0;
  // A stream for collectives that run beside the caller's work. What is enqueued on it must follow
  // that work, and be followed by it (stream_follow in kernels/device/runtime.h).
  Stream beside() const { return beside_; }
  // Waits for the work of the stream. A rank that has died or hangs ends this after `limit`.
  virtual Status wait(Stream stream, std::chrono::milliseconds limit) = 0;

 private:
  OwnedStream beside_;
};

// What every communicator checks first.
inline Status check_sum(const void* values, int64_t count, DType type) {
  if (type != DType::kF32 && type != DType::kBF16 && type != DType::kF16)
    return invalid("collective: a sum is of f32, bf16 or f16");
  if (count < 0) return invalid("collective: a count must not be negative");
  if (count > 0 && values == nullptr) return invalid("collective: values must not be null");
  return {};
}

}  // namespace tigon
