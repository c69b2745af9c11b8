# SPDX-License-Identifier: Apache-2.0
"""What each op computes, in torch's own operations, inputs for it, and a gradient that is wrong."""
from collections.abc import Callable
from typing import Any, NamedTuple

import tigon
import torch
import torch.nn.functional as F

IGNORED = -100


class Problem(NamedTuple):
    """A function of tensors, Tigon's and torch's; `parameters` are the shapes of what has gradients."""
    ours: Callable[..., Any]
    reference: Callable[..., Any]
    parameters: tuple[tuple[int, ...], ...]


class Scaled(torch.autograd.Function):
    """The identity, whose gradient is too large."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        return dy * 1.01


def _rms_norm(x: Any, w: Any, offset: float = 0.0) -> Any:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * (offset + w)


def _turn(x: Any, cos: Any, sin: Any) -> Any:
    half = cos.shape[-1]
    cos, sin = (a.to(x.dtype)[..., None, :] for a in (cos, sin))
    a, b, rest = x[..., :half], x[..., half:2 * half], x[..., 2 * half:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin, rest], -1)


def _target(vocabulary: int) -> Any:
    target = torch.arange(10).reshape(2, 5) * 7 % vocabulary
    target[0, 1] = IGNORED
    return target


def _wide(x: Any) -> Any:
    """In float32 at least, as losses are."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _loss(logits: Any, target: Any, **options: Any) -> Any:
    per_target = options.get("reduction") == "none"
    loss = F.cross_entropy(_wide(logits).flatten(0, -2), target.flatten(), ignore_index=IGNORED, **options)
    return loss.reshape(target.shape) if per_target else loss


def _log_prob(logits: Any, target: Any, temperature: float) -> tuple[Any, Any]:
    logp = (_wide(logits) / temperature).log_softmax(-1)
    counted = target != IGNORED
    return logp.gather(-1, (target * counted)[..., None])[..., 0] * counted, -(logp.exp() * logp).sum(-1) * counted


def _divergence(logits: Any, teacher: Any, kind: str) -> Any:
    log_q, log_p = _wide(logits).log_softmax(-1), _wide(teacher).log_softmax(-1)
    q, p = log_q.exp(), log_p.exp()
    if kind == "forward_kl":
        return (p * (log_p - log_q)).sum(-1)
    if kind == "reverse_kl":
        return (q * (log_q - log_p)).sum(-1)
    log_m = ((p + q) / 2).log()
    return ((p * (log_p - log_m) + q * (log_q - log_m)) / 2).sum(-1)


def _teacher(x: Any) -> Any:
    return torch.sin(torch.arange(x.numel())).reshape(x.shape).to(x)


def _divergences() -> dict[str, Problem]:
    return {f"divergence {kind}": Problem(lambda x, kind=kind: tigon.ops.divergence(x, _teacher(x), kind=kind),
                                          lambda x, kind=kind: _divergence(x, _teacher(x), kind), ((2, 5, 31),))
            for kind in ("forward_kl", "reverse_kl", "jsd")}


def _teacher_layer(x: Any, w: Any) -> tuple[Any, Any]:
    """Of a layer of another width."""
    return _teacher(torch.empty(*x.shape[:-1], 24, dtype=x.dtype)), _teacher(torch.empty(w.shape[0], 24, dtype=w.dtype))


def _linear_divergence(x: Any, w: Any, kind: str) -> Any:
    teacher_x, teacher_w = _teacher_layer(x, w)
    target = _target(31)
    return _divergence(x @ w.T, teacher_x @ teacher_w.T, kind) * (target != IGNORED)


def _linear_divergences() -> dict[str, Problem]:
    return {f"linear_divergence {kind}": Problem(
        lambda x, w, kind=kind: tigon.ops.linear_divergence(x, w, *_teacher_layer(x, w), _target(31), kind=kind),
        lambda x, w, kind=kind: _linear_divergence(x, w, kind), (ROWS, (31, 16))) for kind in ("forward_kl", "reverse_kl", "jsd")}


def _advantage() -> Any:
    return torch.linspace(-1, 2, 2 * 5).reshape(2, 5)


def _policy(x: Any, w: Any) -> Any:
    """A clipped loss of tokens that the policy itself drew: the ratio is 1, and moves."""
    target = _target(31)
    logp = _log_prob(x @ w.T, target, 1.0)[0]
    loss = -(logp - logp.detach()).exp() * _advantage() * (target != IGNORED)
    return loss.sum().reshape(1) / (target != IGNORED).sum()


def _losses(**options: Any) -> dict[str, Problem]:
    target, rows, head = _target(31), (2, 5, 16), (31, 16)
    name = " ".join(str(v) for v in options.values())
    return {
        f"cross_entropy {name}": Problem(lambda x: tigon.ops.cross_entropy(x, target, **options),
                                         lambda x: _loss(x, target, **options), ((2, 5, 31),)),
        f"linear_cross_entropy {name}": Problem(lambda x, w, b: tigon.ops.linear_cross_entropy(x, w, target, bias=b, **options),
                                                lambda x, w, b: _loss(x @ w.T + b, target, **options), (rows, head, (31,))),
    }


ANGLES = torch.linspace(0, 3, 2 * 5 * 4).reshape(2, 5, 4)
COS, SIN = ANGLES.cos(), ANGLES.sin()
ROWS = (2, 5, 16)

PROBLEMS: dict[str, Problem] = {
    "rms_norm": Problem(tigon.ops.rms_norm, _rms_norm, (ROWS, (16,))),
    "rms_norm offset": Problem(lambda x, w: tigon.ops.rms_norm(x, w, offset=1.0, casting="gemma"),
                               lambda x, w: _rms_norm(x, w, 1.0), (ROWS, (16,))),
    "add_rms_norm": Problem(tigon.ops.add_rms_norm, lambda x, r, w: (x + r, _rms_norm(x + r, w)), (ROWS, ROWS, (16,))),
    "add_rms_norm y": Problem(lambda *a: tigon.ops.add_rms_norm(*a)[1], lambda x, r, w: _rms_norm(x + r, w), (ROWS, ROWS, (16,))),
    "add_rms_norm h": Problem(lambda *a: tigon.ops.add_rms_norm(*a)[0], lambda x, r, w: x + r + 0 * w, (ROWS, ROWS, (16,))),
    "layer_norm": Problem(tigon.ops.layer_norm, lambda x, w, b: F.layer_norm(x, (16,), w, b), (ROWS, (16,), (16,))),
    "swiglu": Problem(tigon.ops.swiglu, lambda a, b: F.silu(a) * b, (ROWS, ROWS)),
    "swiglu packed": Problem(lambda a: tigon.ops.swiglu(a, layout="up_first"), lambda a: F.silu(a[..., 8:]) * a[..., :8], (ROWS,)),
    "geglu": Problem(tigon.ops.geglu, lambda a, b: F.gelu(a, approximate="tanh") * b, (ROWS, ROWS)),
    "gated gelu": Problem(lambda a, b: tigon.ops.gated(a, b, "gelu"), lambda a, b: F.gelu(a) * b, (ROWS, ROWS)),
    "softmax": Problem(tigon.ops.softmax, lambda x: x.softmax(-1), (ROWS,)),
    "rope": Problem(lambda q, k: tigon.ops.rope(q, k, COS, SIN),
                    lambda q, k: (_turn(q, COS, SIN), _turn(k, COS, SIN)), ((2, 5, 4, 8), (2, 5, 2, 8))),
    "rope_heads_first partial": Problem(lambda q, k: tigon.ops.rope_heads_first(q, k, COS[:1], SIN[:1]),
                                        lambda q, k: tuple(_turn(x.transpose(1, 2), COS[:1], SIN[:1]).transpose(1, 2) for x in (q, k)),
                                        ((2, 4, 5, 12), (2, 2, 5, 12))),
    "log_prob": Problem(lambda x: tigon.ops.log_prob(x, _target(31)), lambda x: _log_prob(x, _target(31), 1.0)[0], ((2, 5, 31),)),
    "log_prob entropy": Problem(lambda x: tigon.ops.log_prob(x, _target(31), temperature=0.7, entropy=True),
                                lambda x: _log_prob(x, _target(31), 0.7), ((2, 5, 31),)),
    "log_prob entropy alone": Problem(lambda x: tigon.ops.log_prob(x, _target(31), entropy=True)[1],
                                      lambda x: _log_prob(x, _target(31), 1.0)[1], ((2, 5, 31),)),
    "linear_log_prob": Problem(lambda x, w: tigon.ops.linear_log_prob(x, w, _target(31)),
                               lambda x, w: _log_prob(x @ w.T, _target(31), 1.0)[0], (ROWS, (31, 16))),
    "linear_log_prob entropy": Problem(lambda x, w, b: tigon.ops.linear_log_prob(x, w, _target(31), bias=b, temperature=4.0, entropy=True),
                                       lambda x, w, b: _log_prob(x @ w.T + b, _target(31), 4.0), (ROWS, (31, 16), (31,))),
    "linear_policy": Problem(lambda x, w: tigon.ops.linear_policy(x, w, _target(31), _advantage()), _policy, (ROWS, (31, 16))),
    **_divergences(), **_linear_divergences(),
    **_losses(), **_losses(reduction="sum"), **_losses(reduction="none"), **_losses(label_smoothing=0.1),
}
