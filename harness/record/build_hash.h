// SPDX-License-Identifier: Apache-2.0
// Which build a program is.
#pragma once
#include <string>

namespace tigon {

// 16 hex digits of the bytes of this program: two builds of different sources differ, whatever git
// says. Empty when it cannot be read.
std::string build_hash();

}  // namespace tigon
