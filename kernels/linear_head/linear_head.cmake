# SPDX-License-Identifier: Apache-2.0
# The engine of losses behind a linear layer.
tigon_add_family(tigon_linear_head SOURCES linear_head/engine.cu linear_head/valid_rows.cu
  OPS linear_cross_entropy linear_log_prob linear_policy linear_divergence
      vocab_parallel_linear_cross_entropy
  LIBRARIES tigon_gemm)
