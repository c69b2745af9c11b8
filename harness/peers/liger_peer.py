# SPDX-License-Identifier: Apache-2.0
# Liger Kernel's ops with the options that its models take, in Triton unless LIGER_KERNEL_IMPL says otherwise.
import os

from liger_kernel.transformers import functional
from saved_values import cross_entropy_saved, layer_norm_saved, rms_norm_saved  # noqa: F401

PACKAGE = "liger_kernel"
PREPARES = True  # its kernels stay in the process, and choose their launches without timing


def rms_norm(x, w, eps, offset, casting):
    return functional.liger_rms_norm(x, w, eps, offset, casting)


def add_rms_norm(x, residual, w, eps, offset, casting):
    y, h = functional.liger_fused_add_rms_norm(x, residual, w, eps, offset, casting)
    return h, y


def layer_norm(x, w, b, eps):
    return functional.liger_layer_norm(x, w, b, eps)


def rope(q, k, cos, sin):
    """In place. Liger takes [1, heads, T, D] over memory that lies as [T, heads, D]."""
    q, k = functional.liger_rope(q[None].transpose(1, 2), k[None].transpose(1, 2), cos, sin)
    return q.transpose(1, 2).squeeze(0), k.transpose(1, 2).squeeze(0)  # indexing would be copied in backward


def whole_tables(q, k, cos, sin):
    if 2 * cos.shape[-1] != q.shape[-1]:
        raise NotImplementedError("turned whole heads only here")
    return {"q": q, "k": k, "cos": cos.repeat(1, 2)[None].to(q.dtype), "sin": sin.repeat(1, 2)[None].to(q.dtype)}


rope.prepare = whole_tables


def softmax(x):
    return functional.liger_softmax(x)


def swiglu(a, b):
    return functional.liger_swiglu(a, b)


def geglu(a, b):
    return functional.liger_geglu(a, b)


def cross_entropy(logits, target, ignore_index, label_smoothing, z_loss, softcap, reduction, class_weight=None):
    loss = functional.liger_cross_entropy(logits, target, class_weight, ignore_index=int(ignore_index), reduction=reduction,
                                          label_smoothing=label_smoothing, lse_square_scale=z_loss, softcap=softcap or None)
    return loss.reshape(-1)


def linear_cross_entropy(x, w, target, ignore_index, label_smoothing, z_loss, softcap, reduction, class_weight=None):
    loss = functional.liger_fused_linear_cross_entropy(
        x, w, target, ce_weight=class_weight, ignore_index=int(ignore_index), lse_square_scale=z_loss,
        label_smoothing=label_smoothing, reduction=reduction, softcap=softcap or None)
    return loss.reshape(-1)


# The Triton ops read the number of targets that count.
cross_entropy.waits = linear_cross_entropy.waits = not os.environ.get("LIGER_KERNEL_IMPL")
cross_entropy.gradient_in_forward = True
linear_cross_entropy.gradient_in_forward = True
rope.roundings = 3
swiglu.roundings = 1
geglu.roundings = 1
