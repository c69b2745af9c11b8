// SPDX-License-Identifier: Apache-2.0
// Which of all classes the logits of a call are, where they lie in shards.
#pragma once
#include "kernels/signature/signature.h"

namespace tigon {

// Logits [T, V] are of the classes [first_class, first_class + V).
struct Shard {
  int64_t first_class = 0;
  int64_t classes = 0;  // of all ranks
};
constexpr void shard_options(auto&& f) {
  f(option(&Shard::first_class, "first_class"));
  f(option(&Shard::classes, "classes"));
}

constexpr Size all_classes() {
  return {"classes", [](const Binding& b, Axis) { return b.at("classes"); }};
}

}  // namespace tigon
