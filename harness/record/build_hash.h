// SPDX-License-Identifier: Apache-2.0
// Which build a program is.
#pragma once
#include <string>

namespace tigon {

// 16 hex digits of the bytes of this program and of the checking program beside it, if any: two
// builds of different sources differ, whatever git says. Empty when this program cannot be read.
std::string build_hash();

}  // namespace tigon
