# SPDX-License-Identifier: Apache-2.0
# The row sweeps of cross entropy.
tigon_add_family(tigon_loss_rows SOURCES loss/rows.cu loss/columns.cu
  OPS cross_entropy linear_cross_entropy linear_policy vocab_parallel_cross_entropy
      vocab_parallel_linear_cross_entropy)
