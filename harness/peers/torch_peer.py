# SPDX-License-Identifier: Apache-2.0
# The ops in eager PyTorch, as the models of Hugging Face's transformers write them.
import math

import torch
from saved_values import (  # noqa: F401
    cross_entropy_saved,
    divergence_saved,
    layer_norm_saved,
    linear_divergence_saved,
    linear_log_prob_saved,
    log_prob_saved,
    rms_norm_saved,
)
from torch.nn import functional

PACKAGE = "torch"
PREPARES = True  # what the first products and the first backward load


def rms_norm(x, w, eps, offset, casting):
    """LlamaRMSNorm; with casting gemma, GemmaRMSNorm."""
    if casting == "none":
        normalized = x * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + eps).to(x.dtype)
        return normalized if w is None else normalized * (offset + w if offset else w)
    normalized = x.float() * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + eps)
    if w is None:
        return normalized.to(x.dtype)
    if casting == "gemma":
        return (normalized * (offset + w.float())).to(x.dtype)
    return (offset + w if offset else w) * normalized.to(x.dtype)


def add_rms_norm(x, residual, w, eps, offset, casting):
    """A decoder layer's residual addition and the norm behind it: (h, y)."""
    h = x + residual
    return h, rms_norm(h, w, eps, offset, casting)


def add_rms_norm_saved(x, residual, eps):
    return rms_norm_saved(x + residual, eps)


def layer_norm(x, w, b, eps):
    return functional.layer_norm(x, x.shape[-1:], w, b, eps)


def rotate_half(x):
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), -1)


def rope(q, k, cos, sin):
    """apply_rotary_pos_emb; of `prepare` come tables [T, D] in the type of q, which all layers of a model share."""
    cos, sin = cos[:, None], sin[:, None]
    return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin


def whole_tables(q, k, cos, sin):
    if 2 * cos.shape[-1] != q.shape[-1]:
        raise NotImplementedError("turns whole heads only")
    return {"q": q, "k": k, "cos": torch.cat((cos, cos), -1).to(q.dtype), "sin": torch.cat((sin, sin), -1).to(q.dtype)}


rope.prepare = whole_tables


def swiglu(a, b):
    return functional.silu(a) * b


def geglu(a, b, approximate):
    return functional.gelu(a, approximate=approximate) * b


def softmax(x):
    return torch.softmax(x, -1)


def log_prob(logits, target, ignore_index, temperature):
    """log_softmax and gather of logits in float, as trainers by reinforcement learning have it."""
    logits, counted = logits.float(), target != int(ignore_index)
    logp = torch.log_softmax(logits if temperature == 1 else logits / temperature, -1)
    return logp.gather(-1, (target * counted)[:, None])[:, 0].masked_fill(~counted, 0)


def cross_entropy(logits, target, ignore_index, label_smoothing, reduction, class_weight=None):
    """ForCausalLMLoss, which takes the logits in float."""
    loss = functional.cross_entropy(logits.float(), target, class_weight, ignore_index=int(ignore_index),
                                    label_smoothing=label_smoothing, reduction=reduction)
    return loss.reshape(-1)


def linear_cross_entropy(x, w, target, ignore_index, label_smoothing, reduction, class_weight=None):
    return cross_entropy(x @ w.t(), target, ignore_index, label_smoothing, reduction, class_weight)


def linear_log_prob(x, w, target, ignore_index, temperature):
    return log_prob(x @ w.t(), target, ignore_index, temperature)


def linear_policy(x, w, target, advantage, old_logp, ignore_index, temperature, clip_low, clip_high):
    """The clipped loss of TRL's GRPOTrainer, as BNPO averages it."""
    ratio = torch.exp(linear_log_prob(x, w, target, ignore_index, temperature) - old_logp)
    kept, counted = torch.clamp(ratio, 1 - clip_low, 1 + clip_high), target != int(ignore_index)
    losses = -torch.min(ratio * advantage, kept * advantage) * counted
    return (losses.sum() / counted.sum().clamp(min=1)).reshape(1)


def kl(log_p, log_q):
    return functional.kl_div(log_q, log_p, reduction="none", log_target=True).sum(-1)


def divergence(logits, teacher, kind, beta, temperature):
    """Of each row: generalized_jsd_loss of TRL's GKDTrainer, with logits in float."""
    log_q, log_p = (torch.log_softmax(x.float() if temperature == 1 else x.float() / temperature, -1) for x in (logits, teacher))
    if kind == "forward_kl" or (kind == "jsd" and beta == 0):
        return kl(log_p, log_q)
    if kind == "reverse_kl" or beta == 1:
        return kl(log_q, log_p)
    mixture = torch.logsumexp(torch.stack([log_q + math.log1p(-beta), log_p + math.log(beta)]), 0)
    return beta * kl(log_p, mixture) + (1 - beta) * kl(log_q, mixture)


def linear_divergence(x, w, teacher_x, teacher_w, target, kind, beta, temperature, ignore_index):
    losses = divergence(x @ w.t(), teacher_x @ teacher_w.t(), kind, beta, temperature)
    return losses.masked_fill(target == int(ignore_index), 0)


rope.roundings = 3
swiglu.roundings = 1
geglu.roundings = 1
