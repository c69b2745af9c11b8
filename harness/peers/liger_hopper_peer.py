# SPDX-License-Identifier: Apache-2.0
# Liger Kernel's linear cross entropy for Hopper: all logits in bf16, products by its own kernels.
from liger_kernel.ops.cutedsl.ops.fused_linear_cross_entropy_sm90 import liger_fused_linear_cross_entropy_sm90

PACKAGE = "liger_kernel"


def linear_cross_entropy(x, w, target, ignore_index, reduction):
    return liger_fused_linear_cross_entropy_sm90(x, w, target, int(ignore_index), reduction).reshape(-1)


linear_cross_entropy.gradient_in_forward = True
