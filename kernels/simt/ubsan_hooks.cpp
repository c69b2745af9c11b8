// SPDX-License-Identifier: Apache-2.0
// The functions that -fsanitize=bounds,shift makes compilers call. Kernels are compiled with these
// flags but linked with these functions instead of UndefinedBehaviorSanitizer's own. What they find
// has no meaning in C++: a GPU and a host may do different things with it.
#include <cstdint>
#include <string>

#include "kernels/simt/kernel_api.h"
#include "kernels/simt/report.h"

namespace {

// What a compiler says of a type (https://clang.llvm.org/docs/UndefinedBehaviorSanitizer.html;
// layouts as in compiler-rt's ubsan_value.h).
struct TypeDescriptor {
  uint16_t kind, info;
  char name[1];  // "'float [8]'", and more than this
};
struct SourceLocation {
  const char* file;
  uint32_t line, column;
};
struct OutOfBounds {
  SourceLocation location;
  const TypeDescriptor *array, *index;
};

// Of kernel code alone: host code in the same file is not looked at.
void note(tigon::simt::Kind kind, const void* pc, const std::string& what) {
  if (tigon::simt::current_ids != nullptr) tigon::simt::add_finding(kind, pc, what);
}

}  // namespace

extern "C" {

void __ubsan_handle_out_of_bounds(OutOfBounds* where, uintptr_t index) {
  note(tigon::simt::Kind::kOutOfBounds, __builtin_return_address(0),
       "index " + std::to_string(static_cast<intptr_t>(index)) + " of " + where->array->name);
}

void __ubsan_handle_shift_out_of_bounds(void*, uintptr_t, uintptr_t by) {
  note(tigon::simt::Kind::kUndefined, __builtin_return_address(0),
       "a shift by " + std::to_string(static_cast<intptr_t>(by)) + " bits");
}

}  // extern "C"
