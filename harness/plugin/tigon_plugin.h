/* The C interface of a kernel that Tigon judges from outside: copy this one file, implement
 * tigon_plugin_get(), build a shared library, then
 *   ./tigon check --impl-from ./libmine.so        ./tigon bench --impl-from ./libmine.so
 * Pure C; no other header of Tigon is needed. */
#ifndef TIGON_PLUGIN_H_
#define TIGON_PLUGIN_H_

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Changes when something below changes its meaning. tigon_plugin, tigon_kernel and tigon_call may
 * grow at their end within a version; `size` says how much of a struct its maker knew.
 * tigon_tensor and tigon_value stay as they are. */
#define TIGON_PLUGIN_ABI 1

/* Element types of tensors. A kernel's dtype names the policy: the type of its activations. */
enum {
  TIGON_F64 = 0,
  TIGON_F32 = 1,
  TIGON_BF16 = 2,
  TIGON_F16 = 3,
  TIGON_I64 = 4,
  TIGON_I32 = 5,
  TIGON_U8 = 6
};

/* Where a kernel's tensors lie. A host build of Tigon (--device host) judges TIGON_DEVICE_HOST
 * kernels, which get addresses in host memory and no stream; a CUDA build (--device cuda) judges
 * TIGON_DEVICE_CUDA kernels, which get device addresses and a cudaStream_t. */
enum { TIGON_DEVICE_HOST = 0, TIGON_DEVICE_CUDA = 1 };

enum {
  TIGON_IN = 0,    /* must not be written */
  TIGON_OUT = 1,   /* holds garbage before the call; every element must be written */
  TIGON_INOUT = 2, /* read, then written */
  TIGON_SAVED = 3  /* an output that forward keeps for backward */
};

/* What a call returns. */
enum {
  TIGON_OK = 0,
  TIGON_INVALID = 1,     /* the arguments are wrong */
  TIGON_UNSUPPORTED = 2, /* right, but not by this kernel; the case is skipped, not passed */
  TIGON_FAILED = 3       /* e.g. a launch failed */
};

/* A tensor; sizes and strides in elements, the last stride is 1, rows may lie apart. */
typedef struct tigon_tensor {
  const char* name; /* as ./tigon describe OP prints it, e.g. "x" */
  int32_t role;     /* TIGON_IN, ... */
  int32_t dtype;    /* TIGON_F32, ... */
  int32_t rank;
  int32_t reserved;
  void* data; /* NULL: an optional tensor that is left out */
  const int64_t* shape;
  const int64_t* stride;
} tigon_tensor;

/* The value of an axis or of an option. text: the choice of an option that has names, else "". */
typedef struct tigon_value {
  const char* name;
  double number;
  const char* text;
} tigon_value;

/* One call. Nothing in it outlives the call. */
typedef struct tigon_call {
  size_t size; /* sizeof(tigon_call) of the caller */
  const char* op;
  const char* pass;
  int32_t dtype;  /* policy: TIGON_F32, TIGON_BF16 or TIGON_F16 */
  int32_t device; /* TIGON_DEVICE_HOST or TIGON_DEVICE_CUDA */
  int32_t tensor_count, axis_count, option_count;
  int32_t reserved;
  const tigon_tensor* tensors; /* all of the pass */
  const tigon_value* axes;
  const tigon_value* options; /* all, defaults filled in */
  void* workspace;            /* 256-byte aligned, contents undefined */
  size_t workspace_bytes;
  void* stream; /* cudaStream_t: all work must be ordered by it. NULL on the host */
} tigon_call;

/* A kernel: one pass of one op. Of the functions only run is required. They may set *message to a
 * text that lives until the next call. prepare and workspace may look at everything but the
 * contents of the tensors. */
typedef struct tigon_kernel {
  size_t size;      /* sizeof(tigon_kernel) */
  const char* op;   /* e.g. "rms_norm" */
  const char* pass; /* "forward", "backward" or "forward_backward" */
  const char* name; /* letters, digits, '_', '-', '.'; it is listed as plugin:NAME */
  int32_t device;   /* TIGON_DEVICE_HOST or TIGON_DEVICE_CUDA */
  int32_t dtype_count;
  const int32_t* dtypes; /* policies that it supports */
  /* Bytes of workspace that run needs. */
  size_t (*workspace)(const tigon_call* call);
  /* Once per shape before run and never timed: e.g. to choose an algorithm. */
  int32_t (*prepare)(const tigon_call* call, const char** message);
  /* The work. It must not wait for the device, and be complete in the order of the stream; on the
   * host it must be complete when it returns. */
  int32_t (*run)(const tigon_call* call, const char** message);
} tigon_kernel;

typedef struct tigon_plugin {
  size_t size;  /* sizeof(tigon_plugin) */
  uint32_t abi; /* TIGON_PLUGIN_ABI */
  int32_t kernel_count;
  const char* name;
  const char* version;
  const tigon_kernel* const* kernels;
} tigon_plugin;

/* The one symbol that a library exports. `abi` is what the caller speaks. */
#if defined(_WIN32)
#define TIGON_PLUGIN_EXPORT
#else
#define TIGON_PLUGIN_EXPORT __attribute__((visibility("default")))
#endif
TIGON_PLUGIN_EXPORT const tigon_plugin* tigon_plugin_get(uint32_t abi);
#define TIGON_PLUGIN_SYMBOL "tigon_plugin_get"

/* ---- helpers --------------------------------------------------------------------------------- */

/* The tensor of that name, NULL if the pass has none. Left out: its data is NULL. */
static inline const tigon_tensor* tigon_find(const tigon_call* call, const char* name) {
  int32_t i;
  for (i = 0; i < call->tensor_count; ++i)
    if (strcmp(call->tensors[i].name, name) == 0) return &call->tensors[i];
  return NULL;
}

/* The number of an axis or option, `otherwise` if there is none of that name. */
static inline double tigon_number(const tigon_call* call, const char* name, double otherwise) {
  int32_t i;
  for (i = 0; i < call->axis_count; ++i)
    if (strcmp(call->axes[i].name, name) == 0) return call->axes[i].number;
  for (i = 0; i < call->option_count; ++i)
    if (strcmp(call->options[i].name, name) == 0) return call->options[i].number;
  return otherwise;
}

/* 1 if the option has that choice. */
static inline int tigon_chosen(const tigon_call* call, const char* name, const char* choice) {
  int32_t i;
  for (i = 0; i < call->option_count; ++i)
    if (strcmp(call->options[i].name, name) == 0) return strcmp(call->options[i].text, choice) == 0;
  return 0;
}

#ifdef __cplusplus
}
#endif
#endif /* TIGON_PLUGIN_H_ */
