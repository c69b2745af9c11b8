# SPDX-License-Identifier: Apache-2.0
# The Triton ops that come with flash-attn.
from flash_attn.ops.triton.cross_entropy import cross_entropy_loss
from flash_attn.ops.triton.layer_norm import layer_norm_fn, rms_norm_fn
from flash_attn.ops.triton.rotary import apply_rotary
from saved_values import cross_entropy_saved, layer_norm_saved, rms_norm_saved  # noqa: F401

PACKAGE = "flash_attn"


def rms_norm(x, w, eps):
    return rms_norm_fn(x, w, None, eps=eps)


def add_rms_norm(x, residual, w, eps):
    y, h = rms_norm_fn(x, w, None, residual=residual, eps=eps, prenorm=True)
    return h, y


def layer_norm(x, w, b, eps):
    return layer_norm_fn(x, w, b, eps=eps)


def turned(x, cos, sin, conjugate):
    return apply_rotary(x[None], cos, sin, inplace=True, conjugate=conjugate)[0]


def rope_forward(q, k, cos, sin):
    return {"q": turned(q, cos, sin, False), "k": turned(k, cos, sin, False)}


def rope_backward(dq, dk, cos, sin):
    return {"dq": turned(dq, cos, sin, True), "dk": turned(dk, cos, sin, True)}


def in_type_of_heads(cos, sin, **heads):
    dtype = next(iter(heads.values())).dtype
    return {"cos": cos.to(dtype), "sin": sin.to(dtype), **heads}


rope_forward.prepare = in_type_of_heads
rope_backward.prepare = in_type_of_heads


def cross_entropy(logits, target, ignore_index, label_smoothing, z_loss, reduction):
    losses, _ = cross_entropy_loss(logits, target, label_smoothing=label_smoothing, lse_square_scale=z_loss,
                                   ignore_index=int(ignore_index), inplace_backward=True)
    if reduction == "mean":
        return (losses.sum() / (target != int(ignore_index)).sum()).reshape(-1)
    return losses.sum().reshape(-1) if reduction == "sum" else losses
