// SPDX-License-Identifier: Apache-2.0
// What the adapter uses of two stable C ABIs, tvm-ffi's (tvm/ffi/c_api.h) and DLPack's (dlpack.h),
// so that it can be built where neither is installed. Names are theirs.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tigon::tvm_ffi {

enum : int32_t {
  kTVMFFIDLTensorPtr = 7,
  kTVMFFIRawStr = 8,
  kTVMFFISmallStr = 11,
  kTVMFFIStr = 65,
  kTVMFFIFunction = 68,
  kTVMFFITensor = 70
};
enum : int32_t { kDLCPU = 1 };

struct TVMFFIAny {
  int32_t type_index;
  uint32_t small_str_len;
  union {
    int64_t v_int64;
    void* v_ptr;
    const char* v_c_str;
    char v_bytes[8];
  };
};

// The header of every object; a string's or a tensor's own members follow it.
struct TVMFFIObject {
  uint64_t combined_ref_count;
  int32_t type_index;
  uint32_t padding;
  void (*deleter)(void* self, int flags);
};

struct TVMFFIByteArray {
  const char* data;
  size_t size;
};

struct DLTensor {
  void* data;
  int32_t device_type, device_id;
  int32_t ndim;
  uint8_t dtype_code, dtype_bits;
  uint16_t dtype_lanes;
  int64_t* shape;
  int64_t* strides;  // in elements; NULL: no gaps
  uint64_t byte_offset;
};

static_assert(sizeof(TVMFFIAny) == 16 && sizeof(TVMFFIObject) == 24 && sizeof(DLTensor) == 48);
static_assert(offsetof(DLTensor, shape) == 24 && offsetof(DLTensor, byte_offset) == 40);

using TVMFFISafeCallType = int (*)(void* self, const TVMFFIAny* given, int32_t count,
                                   TVMFFIAny* result);
using TVMFFIFunctionCreate = int (*)(void* self, TVMFFISafeCallType call, void (*deleter)(void*),
                                     void** out);
using TVMFFIErrorSetRaisedFromCStr = void (*)(const char* kind, const char* message);
using TVMFFIEnvGetStream = void* (*)(int32_t device_type, int32_t device_id);

}  // namespace tigon::tvm_ffi
