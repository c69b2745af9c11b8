# SPDX-License-Identifier: Apache-2.0
# QuACK's ops. Modules are taken with importlib: quack.rmsnorm is also the name of a function. The linear cross entropy's is
# imported where it is called: it wants to know all that its GEMMs depend on, and knows installed packages by a folder
# `site-packages` or `dist-packages` in their path, so that from elsewhere it refuses; the other ops do not care.
import importlib

import torch

PACKAGE = "quack"
cross_entropies = importlib.import_module("quack.cross_entropy")
norms = importlib.import_module("quack.rmsnorm")
rotary = importlib.import_module("quack.rotary")
softmaxes = importlib.import_module("quack.softmax")


def rms_norm(x, w, eps, offset):
    return norms.rmsnorm(x, w, eps=eps, weight_offset=offset)


def add_rms_norm(x, residual, w, eps, offset):
    y, h = norms.rmsnorm(x, w, residual=residual, eps=eps, prenorm=True, weight_offset=offset)
    return h, y


def layer_norm_forward(x, w, b, eps):
    """It has no autograd function, and wants weight and bias in float."""
    return {"y": norms.layernorm_fwd(x, w, b, eps)}


def float_weights(x, w, b, eps):
    return {"x": x, "w": w.float(), "b": b if b is None else b.float(), "eps": eps}


layer_norm_forward.prepare = float_weights


def turned(x, cos, sin, conjugate):
    return rotary.apply_rotary(x[None], cos, sin, inplace=True, conjugate=conjugate)[0]


def rope_forward(q, k, cos, sin):
    return {"q": turned(q, cos, sin, False), "k": turned(k, cos, sin, False)}


def rope_backward(dq, dk, cos, sin):
    return {"dq": turned(dq, cos, sin, True), "dk": turned(dk, cos, sin, True)}


def softmax(x):
    return softmaxes.softmax(x)


def cross_entropy(logits, target, ignore_index, reduction, class_weight=None):
    loss = cross_entropies.cross_entropy(logits, target, weight=class_weight, ignore_index=int(ignore_index), reduction=reduction,
                                         inplace_backward=True)
    return loss.reshape(-1)


def cross_entropy_forward_backward(logits, target, ignore_index, reduction, dloss):
    """A sum's gradient needs no division by the number of tokens: one pass over the logits, in place."""
    if reduction == "sum" and dloss is None:
        loss, gradient = cross_entropies.cross_entropy_fwd(logits.detach(), target, ignore_index=int(ignore_index), return_dx=True,
                                                           inplace_backward=True)
        return {"loss": loss.sum().reshape(1), "logits": gradient}
    loss = cross_entropy(logits, target, ignore_index, reduction)
    return {"loss": loss, "logits": torch.autograd.grad(loss, logits, dloss)[0]}


def chunked_linear_cross_entropy(*arguments, **words):
    module = importlib.import_module("quack.linear_cross_entropy")
    return module.chunked_linear_cross_entropy(*arguments, **words).reshape(-1)


def linear_cross_entropy(x, w, target, ignore_index, reduction):
    """Its own choice of path. Chunks of as many rows as H are ambiguous to it."""
    rows = 4096 if x.shape[-1] != 4096 else 2048
    return chunked_linear_cross_entropy(x, w, target, rows, int(ignore_index), reduction)


linear_cross_entropy.gradient_in_forward = True
