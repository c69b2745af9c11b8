// SPDX-License-Identifier: Apache-2.0
// Two kernels, the second of which may start before the first has ended.
#pragma once
#include "kernels/signature/status.h"

namespace tigon::simt_tests {

enum class Wait {
  kAll,
  kTooLate,          // after the access
  kFirstThread,      // alone
  kThenSyncwarp,     // the first lane of each warp, then a barrier of the warp
  kThenSyncthreads,  // the first thread of each block, then a barrier of the block
  kThenClusterSync,  // the first thread, then a barrier of the cluster
  kNobody,
};
enum class Touch { kReadWritten, kWriteWritten, kWriteRead, kReadRead };

struct Dependent {
  Wait wait = Wait::kNobody;
  Touch touch = Touch::kReadWritten;
  bool dependent = true;
};

inline constexpr int kDependentWords = 128;  // a thread each, in a cluster of two blocks
// read, written, out: kDependentWords. The first kernel reads `read` and writes `written`.
Status first_kernel_of_two(const int* read, int* written);
// Touches one of them and writes `out`.
Status second_kernel_of_two(const Dependent& d, int* read, int* written, int* out);

}  // namespace tigon::simt_tests
