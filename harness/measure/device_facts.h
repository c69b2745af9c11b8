// SPDX-License-Identifier: Apache-2.0
// What device this program runs on, as the "device" block of the run record.
#pragma once
#include "harness/record/record_writer.h"

namespace tigon {

// Asked in a child process, because this one must not use the device before it forks others. A CUDA
// build without a usable GPU: throws DeviceError, one line.
Json device_block();

}  // namespace tigon
