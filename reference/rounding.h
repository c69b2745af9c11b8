// SPDX-License-Identifier: Apache-2.0
// Rounding to an element type, for formulas that read again what they have stored.
#pragma once
#include "kernels/signature/dtype.h"

namespace tigon::reference {

// v as the type stores it; exact for f64, and for scalars that are no double (a dual number has no
// derivative of a rounding).
template <class S>
S rounded(const S& v, DType type) {
  if constexpr (std::is_same_v<S, double>) switch (type) {
      case DType::kF32:
        return static_cast<double>(static_cast<float>(v));
      case DType::kBF16:
        return static_cast<double>(bf16(v));
      case DType::kF16:
        return static_cast<double>(f16(v));
      default:
        break;
    }
  return v;
}

}  // namespace tigon::reference
