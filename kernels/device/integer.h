// SPDX-License-Identifier: Apache-2.0
// Quotients and multiples that are rounded up. Nothing here may be negative.
#pragma once
#include "kernels/signature/dtype.h"

namespace tigon {

// Blocks of `per_block` items that cover `items`.
template <class A, class B>
TIGON_HOST_DEVICE constexpr auto ceil_div(A items, B per_block) {
  return (items + per_block - 1) / per_block;
}

// The first multiple that is no less than n.
template <class A, class B>
TIGON_HOST_DEVICE constexpr auto round_up(A n, B multiple) {
  return ceil_div(n, multiple) * multiple;
}

}  // namespace tigon
