// SPDX-License-Identifier: Apache-2.0
// What a pass is timed beside, in turns with its implementations and on the same basis: a copy of
// the bytes that it has to move or, where its contract names matrix products, these alone.
#pragma once
#include <optional>

#include "harness/measure/timing.h"

namespace tigon {

inline constexpr const char* kCopyYardstick = "copy";
inline constexpr const char* kProductsYardstick = "products";
inline bool is_yardstick(const std::string& implementation) {
  return implementation == kCopyYardstick || implementation == kProductsYardstick;
}

struct Yardstick {
  Implementation implementation;  // has one of those names and writes none of the outputs
  // On as many buffers in turn as the rotation has sets, so that the caches help both alike.
  // Products are tuned first, which takes tenths of a second. nullopt when its buffers do not fit
  // into `memory_bytes`. Throws DeviceError.
  static std::optional<Yardstick> of(const Case& c, size_t sets, size_t memory_bytes);
  // To be timed among implementations of the case; must not outlive this.
  Contender contender(Case c) const {
    c.impl = implementation.name;
    return {std::move(c), &implementation, {}};
  }
};

}  // namespace tigon
