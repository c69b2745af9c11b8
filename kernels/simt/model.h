// SPDX-License-Identifier: Apache-2.0
// The GPU that the host executor stands for: an H200.
#pragma once
#include <cstddef>

namespace tigon::simt {

inline constexpr int kMultiprocessors = 132;
inline constexpr size_t kSharedPerBlock = 227 * 1024;  // dynamic, that a launch may ask for
inline constexpr size_t kSharedPerBlockBeforeSm90 = 163 * 1024;  // of an A100
inline constexpr size_t kSharedPerMultiprocessor = 228 * 1024;
inline constexpr size_t kReservedSharedPerBlock = 1024;  // that the system takes

}  // namespace tigon::simt
