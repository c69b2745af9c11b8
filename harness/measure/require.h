// SPDX-License-Identifier: Apache-2.0
// A status as an exception, for measurements, whose calls must not fail.
#pragma once
#include "kernels/device/runtime.h"
#include "kernels/signature/status.h"

namespace tigon {

// Throws DeviceError with the status' reason unless it is ok.
inline void require(const Status& status) {
  if (!status.ok()) throw DeviceError(status.reason);
}

}  // namespace tigon
