/* SPDX-License-Identifier: Apache-2.0 */
/* Tigon's kernels for any language: one call convention, plain C.
 *
 *   const tigon_op* op = tigon_find("rms_norm.forward", TIGON_BF16);
 *   tigon_call call = {tensors, options, scratch, scratch_bytes, tensor_count, option_count};
 *   tigon_status status = tigon_run(op, &call, stream);
 *   if (status.code != TIGON_OK) puts(status.message);
 *
 * tigon_describe(op) says what an op takes: the formula of forward, its tensors in the order of a
 * call, with symbolic shapes and dtypes, and its options with their defaults. kernels/README.md has
 * examples.
 *
 * Nothing here allocates device memory, waits for a device or keeps a pointer of a call; only
 * tigon_prepare() may do the first two. All functions may be called from several threads at once. A
 * call works on the device that is current in the calling thread. Texts that are returned are
 * the library's; they live as long as it is loaded, but a status' message only until the thread's
 * next call.
 *
 * A plug-in is a library that exports tigon_find() and nothing else of this header. */
#ifndef TIGON_H_
#define TIGON_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Changes when something below changes its meaning. */
#define TIGON_ABI 1

#if defined(_WIN32)
#define TIGON_API
#else
#define TIGON_API __attribute__((visibility("default")))
#endif

/* Element types. Of an op it names the type of the activations: TIGON_F32, TIGON_BF16, TIGON_F16.
 */
enum {
  TIGON_F64 = 0,
  TIGON_F32 = 1,
  TIGON_BF16 = 2,
  TIGON_F16 = 3,
  TIGON_I64 = 4,
  TIGON_I32 = 5,
  TIGON_U8 = 6
};

/* Where an op's tensors lie: in host memory (the host executor; streams are ignored), or in the
 * memory of a CUDA device. */
enum { TIGON_DEVICE_HOST = 0, TIGON_DEVICE_CUDA = 1 };

enum {
  TIGON_OK = 0,
  TIGON_INVALID = 1,       /* the call is wrong; nothing was enqueued */
  TIGON_UNSUPPORTED = 2,   /* the call is right, but this op cannot do it; nothing was enqueued */
  TIGON_LAUNCH_FAILED = 3, /* the device or one of its libraries refused */
  TIGON_OUT_OF_MEMORY = 4  /* of the host, or of the device where the function may allocate there */
};

/* What a function returns: a code, and one sentence that names the op and, where there is one, the
 * tensor and its axis. "" with TIGON_OK. */
typedef struct tigon_status {
  int32_t code;
  const char* message;
} tigon_status;

#define TIGON_MAX_RANK 8

/* A tensor: sizes and strides in elements. The stride of the last axis is 1; rows may lie apart
 * where the op's header (kernels/OP/OP.h) says so. Any address that the element type allows is
 * right; multiples of 16 bytes, of the address and of the strides, are fast. Tensors of a call may
 * not overlap, but for the pairs that the op's header names. */
typedef struct tigon_tensor {
  void* data;             /* NULL: an optional tensor that is left out */
  const int64_t* sizes;   /* [rank] */
  const int64_t* strides; /* [rank]; NULL: rows follow each other without gaps */
  int32_t dtype;          /* TIGON_F32, ... */
  int32_t rank;
} tigon_tensor;

/* An option that is not to have its default. Choices are given by their index. */
typedef struct tigon_option {
  int32_t index; /* as in tigon_describe(); see tigon_option_index() */
  int32_t reserved;
  double value;
} tigon_option;

/* One call; nothing in it outlives the call. */
typedef struct tigon_call {
  const tigon_tensor* tensors; /* as in tigon_describe(); those behind the last are left out */
  const tigon_option* options; /* in any order */
  void* scratch;               /* 256-byte aligned memory of the device, contents undefined */
  size_t scratch_bytes;        /* at least tigon_workspace() */
  int32_t tensor_count;
  int32_t option_count;
} tigon_call;

/* One pass of one op for one dtype. Callers use the functions below; the members are for those who
 * make ops. */
typedef struct tigon_op tigon_op;
struct tigon_op {
  uint32_t abi; /* TIGON_ABI */
  int32_t dtype;
  int32_t device;             /* TIGON_DEVICE_HOST or TIGON_DEVICE_CUDA */
  int32_t reserved;           /* 0 */
  const char* name;           /* "rms_norm.forward" */
  const char* implementation; /* letters, digits, '_', '-', '.': "fused" */
  /* Bytes of scratch; may look at everything but contents and addresses. NULL: none. */
  size_t (*workspace)(const tigon_op* op, const tigon_call* call);
  /* Once per shape, outside of any timing, e.g. to choose an algorithm: may allocate and wait.
   * NULL: nothing to prepare. */
  tigon_status (*prepare)(const tigon_op* op, const tigon_call* call);
  /* Enqueues the work on a cudaStream_t and does not wait; on the host it is done on return. */
  tigon_status (*run)(const tigon_op* op, const tigon_call* call, void* stream);
  const char* (*describe)(const tigon_op* op); /* NULL: it takes what Tigon's own op takes */
  const void* state;                           /* the maker's own */
};

/* The op of this name, e.g. "cross_entropy.backward", for activations of this dtype; NULL if there
 * is none. The op lives as long as the library is loaded. */
TIGON_API const tigon_op* tigon_find(const char* name, int32_t dtype);

/* All ops: index 0, 1, ... until NULL. */
TIGON_API const tigon_op* tigon_op_at(int32_t index);

/* Bytes of scratch that tigon_run() needs for a call of these shapes and options, whatever the
 * addresses; of no meaning for a call that tigon_run() refuses. */
TIGON_API size_t tigon_workspace(const tigon_op* op, const tigon_call* call);

/* Optional, once per shape and device: chooses among algorithms of libraries (matrix products) by
 * timing them. Allocates and waits for the device. TIGON_INVALID and TIGON_UNSUPPORTED as
 * tigon_run() has them; TIGON_LAUNCH_FAILED: no algorithm ran, or there is too little memory for a
 * copy of the operands. */
TIGON_API tigon_status tigon_prepare(const tigon_op* op, const tigon_call* call);

/* Enqueues the op on `stream` (a cudaStream_t; NULL is the default stream) of the current device.
 * It can be captured into a CUDA graph, after one call outside of a capture. TIGON_INVALID: a
 * tensor is missing or has the wrong rank, dtype, size or stride, an option has a value it cannot
 * have, or there is too little scratch. TIGON_UNSUPPORTED: this device cannot run it.
 * TIGON_LAUNCH_FAILED: CUDA or cuBLASLt refused, with its own words. TIGON_OUT_OF_MEMORY: the host
 * has no memory left. */
TIGON_API tigon_status tigon_run(const tigon_op* op, const tigon_call* call, void* stream);

/* Of an op of this library; "" for NULL and for an op without a description. JSON: {"name",
 * "dtype", "implementation", "abi", "formula", "axes": {symbol: meaning}, "tensors": [{"name",
 * "role": "in", "out", "inout" or "saved", "dtype", "shape": [text, ...], "optional",
 * "gradient_of", "same_gradient_as", "strided", "may_alias": [input, ...]}], "options": [{"name",
 * "type": "float", "int" or "choice", "default", "choices"}]}. The formula is that of
 * forward, for the backward pass as well. A saved tensor is an output that backward takes. An input
 * with the gradient of another input names that one, and backward writes it once. All strides of a
 * strided tensor but the last are free; the others are contiguous. An output may be in the memory
 * of any one input that it may alias, element on element; no other output may overlap a tensor. */
TIGON_API const char* tigon_describe(const tigon_op* op);

/* Where a tensor or an option stands in a call; -1 if the op is NULL or has none of this name. */
TIGON_API int32_t tigon_tensor_index(const tigon_op* op, const char* name);
TIGON_API int32_t tigon_option_index(const tigon_op* op, const char* name);

/* The sizes that tensor number `tensor` must have beside the other tensors and the options of this
 * call, and its rank. TIGON_INVALID if they do not say, or the op is NULL. */
TIGON_API tigon_status tigon_shape(const tigon_op* op, const tigon_call* call, int32_t tensor,
                                   int64_t sizes[TIGON_MAX_RANK], int32_t* rank);

/* Lets kernels take the launch shapes that `./tigon tune` found, on the devices that the file
 * names. Without a call the file that TIGON_LAUNCH_TABLE names is read, else
 * tigon_launch_table.tsv beside the library, if it is there. TIGON_INVALID: file, line and what is
 * wrong; then nothing of it is used. */
TIGON_API tigon_status tigon_load_launch_table(const char* path);

/* JSON: {"version", "abi", "device": "cuda" or "host", "architectures", "cuda"}. */
TIGON_API const char* tigon_build_info(void);

#ifdef __cplusplus
}
#endif
#endif /* TIGON_H_ */
