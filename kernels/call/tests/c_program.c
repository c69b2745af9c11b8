/* SPDX-License-Identifier: Apache-2.0 */
/* tigon.h from C89: a call of softmax, as a C program would make it. */
#include "kernels/call/tigon.h"

/* 0 when softmax of {0, 0} in host memory gives {0.5, 0.5}; else a number that says what was wrong. */
int tigon_called_from_c(void) {
  const float x[2] = {0, 0};
  float y[2] = {0, 0};
  const int64_t sizes[2] = {1, 2};
  tigon_tensor tensors[2];
  tigon_call call = {NULL, NULL, NULL, 0, 0, 0};
  const tigon_op* op = tigon_find("softmax.forward", TIGON_F32);
  int i;

  if (op == NULL) return 1;
  for (i = 0; i < 2; ++i) {
    tensors[i].data = i == 0 ? (void*)x : (void*)y;
    tensors[i].sizes = sizes;
    tensors[i].strides = NULL;
    tensors[i].dtype = TIGON_F32;
    tensors[i].rank = 2;
  }
  call.tensors = tensors;
  call.tensor_count = 2;
  if (op->device != TIGON_DEVICE_HOST) return 0;
  if (tigon_run(op, &call, NULL).code != TIGON_OK) return 2;
  return y[0] == 0.5f && y[1] == 0.5f ? 0 : 3;
}
