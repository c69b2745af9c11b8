// SPDX-License-Identifier: Apache-2.0
// What a launcher returns and the stream it is given; no CUDA header is needed to name either.
#pragma once

struct CUstream_st;

namespace tigon {

// A CUDA stream (the same type as cudaStream_t); the host executor ignores it.
using Stream = CUstream_st*;

// Result of a launcher. `reason` is a string that outlives the call; it says what was wrong and
// what would be right.
struct Status {
  enum Code { kOk, kInvalidArgument, kUnsupported, kLaunchFailed, kOutOfMemory };
  Code code = kOk;
  const char* reason = "";
  bool ok() const { return code == kOk; }
};

inline Status invalid(const char* reason) { return {Status::kInvalidArgument, reason}; }
inline Status unsupported(const char* reason) { return {Status::kUnsupported, reason}; }

}  // namespace tigon
