// SPDX-License-Identifier: Apache-2.0
// The best this GPU does, measured in the same run as what is compared with it: memory bandwidth of
// a copy, a read and a triad, and the rate of the library's GEMM per element type.
#pragma once
#include <map>
#include <string>

#include "kernels/signature/dtype.h"

namespace tigon {

// Names as in the records ("copy", "gemm_bf16", ...); bytes/s or flop/s. A ceiling that could not
// be measured is absent.
using Ceilings = std::map<std::string, double>;

// Takes a few seconds. Throws DeviceError.
Ceilings measure_ceilings();
// Only the streams and the GEMM of one type, for a block of measurements; tenths of a second.
Ceilings measure_ceilings_of(DType dtype);

inline bool is_bandwidth(const std::string& name) { return name.rfind("gemm", 0) != 0; }

}  // namespace tigon
