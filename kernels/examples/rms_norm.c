/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm of two rows from C, on the host executor: link libtigon-host. */
#include <stdio.h>
#include <tigon.h>

int main(void) {
  const float x[2][4] = {{1, 2, 3, 4}, {-1, 0, 1, 0}}, w[4] = {1, 1, 2, 2};
  float y[2][4], rstd[2];
  const int64_t rows[2] = {2, 4}, columns[1] = {4}, row_count[1] = {2};
  const tigon_op* op = tigon_find("rms_norm.forward", TIGON_F32);
  tigon_tensor tensors[4] = {{0}}; /* in the order of tigon_describe(op) */
  tigon_option eps = {0, 0, 1e-5};
  tigon_call call = {0};
  tigon_status status;
  int t;

  tensors[0] = (tigon_tensor){(void*)x, rows, NULL, TIGON_F32, 2};
  tensors[1] = (tigon_tensor){(void*)w, columns, NULL, TIGON_F32, 1};
  tensors[2] = (tigon_tensor){y, rows, NULL, TIGON_F32, 2};
  tensors[3] = (tigon_tensor){rstd, row_count, NULL, TIGON_F32, 1};
  eps.index = tigon_option_index(op, "eps");
  call.tensors = tensors;
  call.tensor_count = 4;
  call.options = &eps;
  call.option_count = 1;
  status = tigon_run(op, &call, NULL);
  if (status.code != TIGON_OK) return fprintf(stderr, "%s\n", status.message), 1;
  for (t = 0; t < 2; ++t) printf("%.4f %.4f %.4f %.4f\n", y[t][0], y[t][1], y[t][2], y[t][3]);
  return 0;
}
