// SPDX-License-Identifier: Apache-2.0
// A stream that lives as long as its owner. The default stream cannot be captured into a graph.
#pragma once
#include "kernels/device/runtime.h"

namespace tigon {

class OwnedStream {
 public:
  OwnedStream() : stream_(stream_create()) {}
  ~OwnedStream() { stream_destroy(stream_); }
  OwnedStream(const OwnedStream&) = delete;
  OwnedStream& operator=(const OwnedStream&) = delete;
  operator Stream() const { return stream_; }  // NOLINT: it is one

 private:
  Stream stream_;
};

}  // namespace tigon
