// SPDX-License-Identifier: Apache-2.0
// A test program that has this file checks the accesses of its kernels.
#include "kernels/simt/simt.h"

namespace {
[[maybe_unused]] const bool kChecked = (tigon::simt::set_checked(), true);
}
