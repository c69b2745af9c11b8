# SPDX-License-Identifier: Apache-2.0
"""Tigon's ops on torch tensors, with gradients: CPU tensors by the host library, CUDA tensors on the current stream.

Any leading axes are rows. Every op of the library is here: those that have a function below under the names that
frameworks use, all others as the library describes them. help(tigon.ops.NAME) tells shapes, dtypes, options and errors.
"""
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar

from torch import Tensor

from . import _function
from ._ranks import errors_name_their_rank

Casting = Literal["llama", "gemma", "none"]
Reduction = Literal["mean", "sum", "none"]
Layout = Literal["separate", "gate_first", "up_first"]
_F = TypeVar("_F", bound=Callable[..., Any])


def _of(op: str) -> Callable[[_F], _F]:
    """Adds to a function's docstring what the library says of the op."""
    def add(f: _F) -> _F:
        f.__doc__ = f"{(f.__doc__ or '').strip()}\n\n{_function.described(op)}"
        return f
    return add


@_of("rms_norm")
def rms_norm(x: Tensor, w: Tensor | None = None, eps: float = 1e-6, *, offset: float = 0.0, casting: Casting = "llama") -> Tensor:
    """The root-mean-square norm of the last axis."""
    return _function.OPS["rms_norm"]((x, w), {"eps": eps, "offset": offset, "casting": casting})[0]


@_of("add_rms_norm")
def add_rms_norm(x: Tensor, residual: Tensor, w: Tensor | None = None, eps: float = 1e-6, *, offset: float = 0.0,
                 casting: Casting = "llama") -> tuple[Tensor, Tensor]:
    """(h, y): the new residual stream and its norm."""
    h, y = _function.OPS["add_rms_norm"]((x, residual, w), {"eps": eps, "offset": offset, "casting": casting})
    return h, y


@_of("layer_norm")
def layer_norm(x: Tensor, w: Tensor | None = None, b: Tensor | None = None, eps: float = 1e-5) -> Tensor:
    """The layer norm of the last axis."""
    return _function.OPS["layer_norm"]((x, w, b), {"eps": eps})[0]


def _gate_and_up(gate: Tensor, up: Tensor | None, layout: Layout) -> tuple[Tensor, Tensor]:
    if up is None and layout == "separate":
        raise TypeError("up is missing; without it gate holds both halves, and layout must be gate_first or up_first")
    if up is not None and layout != "separate":
        raise TypeError(f"with layout={layout!r} gate holds both halves, and up must be left out")
    return gate, gate.new_empty((*gate.shape[:-1], 0)) if up is None else up


@_of("swiglu")
def swiglu(gate: Tensor, up: Tensor | None = None, *, layout: Layout = "separate", gate_multiplier: float = 1.0,
           down_multiplier: float = 1.0) -> Tensor:
    """silu(gate) * up. gate and up are a and b below; without up, gate has both as halves of its last axis, as layout says."""
    options = {"layout": layout, "gate_multiplier": gate_multiplier, "down_multiplier": down_multiplier}
    return _function.OPS["swiglu"](_gate_and_up(gate, up, layout), options)[0]


@_of("geglu")
def geglu(gate: Tensor, up: Tensor | None = None, *, approximate: Literal["tanh", "none"] = "tanh", layout: Layout = "separate",
          gate_multiplier: float = 1.0, down_multiplier: float = 1.0) -> Tensor:
    """gelu(gate) * up. gate and up are a and b below; without up, gate has both as halves of its last axis, as layout says."""
    options = {"approximate": approximate, "layout": layout, "gate_multiplier": gate_multiplier, "down_multiplier": down_multiplier}
    return _function.OPS["geglu"](_gate_and_up(gate, up, layout), options)[0]


def gated(gate: Tensor, up: Tensor | None = None, activation: Literal["silu", "gelu", "gelu_tanh"] = "silu",
          layout: Layout = "separate") -> Tensor:
    """activation(gate) * up: swiglu or geglu, whose docstrings say more. ValueError: another activation."""
    if activation == "silu":
        return swiglu(gate, up, layout=layout)
    if activation == "gelu":
        return geglu(gate, up, approximate="none", layout=layout)
    if activation == "gelu_tanh":
        return geglu(gate, up, approximate="tanh", layout=layout)
    raise ValueError(f"activation is {activation!r}, but must be one of silu, gelu, gelu_tanh")


@_of("rope")
def rope(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, positions: Tensor | None = None, *, interleaved: bool = False,
         rotary: int = 0, height: int = 0, width: int = 0,
         sections: Literal["chunked", "interleaved"] = "chunked") -> tuple[Tensor, Tensor]:
    """q [..., heads, D] and k, turned by the angles of their row; cos and sin [..., R/2] have one row for each row of q.

    With positions, cos and sin are tables, of which positions chooses rows. interleaved: columns 2j and 2j + 1 are a pair.
    """
    options = {"rotary": rotary, "pairing": "interleaved" if interleaved else "half", "height": height, "width": width,
               "sections": sections}
    angles = [angle.reshape(-1, angle.shape[-1]) for angle in (cos, sin)]
    q_out, k_out = _function.OPS["rope"]((q, k, *angles, positions), options)
    return q_out, k_out


def rope_heads_first(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, *, interleaved: bool = False) -> tuple[Tensor, Tensor]:
    """rope for q [B, heads, T, D] and k, with cos and sin [B or 1, T, R/2], of which the first R columns of a head are turned."""
    rotary = 0 if 2 * cos.shape[-1] == q.shape[-1] else 2 * cos.shape[-1]
    angles = [angle.float().expand(q.shape[0], q.shape[2], angle.shape[-1]) for angle in (cos, sin)]
    q_out, k_out = rope(q.transpose(1, 2), k.transpose(1, 2), *angles, interleaved=interleaved, rotary=rotary)
    return q_out.transpose(1, 2), k_out.transpose(1, 2)


@_of("softmax")
def softmax(x: Tensor) -> Tensor:
    """The softmax of the last axis."""
    return _function.OPS["softmax"]((x,), {})[0]


def _losses(results: tuple[Tensor, ...], reduction: str, target: Tensor) -> Any:
    """A number, or one for each target; a tuple with extras."""
    shaped = tuple(r.reshape(target.shape if reduction == "none" else ()) for r in results)
    return shaped if len(shaped) > 1 else shaped[0]


@_of("log_prob")
def log_prob(logits: Tensor, target: Tensor, *, temperature: float = 1.0, ignore_index: int = -100, entropy: bool = False) -> Any:
    """The log-probability of each target [...] under logits [..., V]; with entropy=True, a tuple of these and of the entropies."""
    options = {"ignore_index": ignore_index, "temperature": temperature}
    results = _function.OPS["log_prob"]((logits, target), options, ("entropy",) if entropy else ())
    return _losses(results, "none", target)


@_of("linear_log_prob")
def linear_log_prob(x: Tensor, w: Tensor, target: Tensor, *, bias: Tensor | None = None, temperature: float = 1.0,
                    ignore_index: int = -100, entropy: bool = False, logits_bytes: int = 1 << 30,
                    split: Literal["rows", "vocabulary"] = "rows", max_valid_rows: int = -1) -> Any:
    """log_prob of x w^T + bias without ever holding all logits; the products are done again in backward."""
    options = {"ignore_index": ignore_index, "temperature": temperature, "logits_bytes": logits_bytes, "split": split,
               "max_valid_rows": max_valid_rows}
    results = _function.OPS["linear_log_prob"]((x, w, target, bias), options, ("entropy",) if entropy else ())
    return _losses(results, "none", target)


@_of("divergence")
def divergence(logits: Tensor, teacher: Tensor, *, target: Tensor | None = None,
               kind: Literal["forward_kl", "reverse_kl", "jsd"] = "forward_kl", beta: float = 0.5, temperature: float = 1.0,
               ignore_index: int = -100) -> Tensor:
    """How far a student's softmax(logits / temperature) [..., V] is from a teacher's: a number for each row [...].

    beta: the teacher's share in the mixture of jsd. target [...]: a row whose target is ignore_index gives 0. The teacher has no
    gradient.
    """
    options = {"kind": kind, "beta": beta, "temperature": temperature, "ignore_index": ignore_index}
    loss: Tensor = _function.OPS["divergence"]((logits, teacher, target), options)[0]
    return loss.reshape(logits.shape[:-1])


@_of("linear_divergence")
def linear_divergence(x: Tensor, w: Tensor, teacher_x: Tensor, teacher_w: Tensor, target: Tensor, *, bias: Tensor | None = None,
                      teacher_bias: Tensor | None = None, kind: Literal["forward_kl", "reverse_kl", "jsd"] = "forward_kl",
                      beta: float = 0.5, temperature: float = 1.0, ignore_index: int = -100, logits_bytes: int = 1 << 30,
                      split: Literal["rows", "vocabulary"] = "rows", max_valid_rows: int = -1) -> Tensor:
    """divergence of x w^T + bias from teacher_x teacher_w^T + teacher_bias without ever holding all logits of either.

    x [..., H], w [V, H], teacher_x [..., G], teacher_w [V, G]; the result has a number for each row [...]. The products are done
    again in backward. target [...] says which rows are ignored, and nothing else.
    """
    options = {"kind": kind, "beta": beta, "temperature": temperature, "ignore_index": ignore_index, "logits_bytes": logits_bytes,
               "split": split, "max_valid_rows": max_valid_rows}
    tensors = (x, w, teacher_x, teacher_w, target, bias, teacher_bias)
    loss: Tensor = _losses(_function.OPS["linear_divergence"](tensors, options), "none", target)
    return loss


@_of("cross_entropy")
def cross_entropy(logits: Tensor, target: Tensor, *, class_weight: Tensor | None = None, normaliser: Tensor | None = None,
                  ignore_index: int = -100, label_smoothing: float = 0.0, z_loss: float = 0.0, softcap: float = 0.0,
                  reduction: Reduction = "mean", extras: Sequence[str] = ()) -> Any:
    """The loss of logits [..., V] against target [...]: a number, or with reduction="none" one for each target.

    normaliser: a float32 tensor [1] by which a mean divides instead of the number of targets that count. With extras, a
    tuple of the loss and these.
    """
    options = {"ignore_index": ignore_index, "label_smoothing": label_smoothing, "z_loss": z_loss, "softcap": softcap,
               "reduction": reduction}
    results = _function.OPS["cross_entropy"]((logits, target, class_weight, normaliser), options, extras)
    return _losses(results, reduction, target)


@_of("linear_cross_entropy")
def linear_cross_entropy(x: Tensor, w: Tensor, target: Tensor, *, bias: Tensor | None = None, class_weight: Tensor | None = None,
                         normaliser: Tensor | None = None, ignore_index: int = -100, label_smoothing: float = 0.0,
                         z_loss: float = 0.0, softcap: float = 0.0, reduction: Reduction = "mean", logits_bytes: int = 1 << 30,
                         split: Literal["rows", "vocabulary"] = "rows", max_valid_rows: int = -1, extras: Sequence[str] = ()) -> Any:
    """cross_entropy of x w^T + bias without ever holding all logits. The other arguments are those of cross_entropy.

    Gradients are made with the loss. With reduction="none" they are made in backward, and the products are done again.
    """
    options = {"ignore_index": ignore_index, "label_smoothing": label_smoothing, "z_loss": z_loss, "softcap": softcap,
               "reduction": reduction, "logits_bytes": logits_bytes, "split": split, "max_valid_rows": max_valid_rows}
    results = _function.OPS["linear_cross_entropy"]((x, w, target, bias, class_weight, normaliser), options, extras)
    return _losses(results, reduction, target)


@errors_name_their_rank
def vocab_parallel_log_prob(logits: Tensor, target: Tensor, group: Any = None, *, first_class: int | None = None,
                            classes: int | None = None, temperature: float = 1.0, ignore_index: int = -100,
                            entropy: bool = False) -> Any:
    """log_prob of logits whose classes lie in shards, one on each rank of a process group: the same results on every rank.

    logits [..., V], float32, bfloat16 or float16: the classes [first_class, first_class + V) of `classes` in all, in the order of
    ranks. Where neither is given, every rank has as many. target [...], int64: of all classes. group: of torch.distributed, None for
    all processes; every rank of it must call. Log-probabilities [...], and with entropy=True entropies [...], are float32.

    Forward tells the other ranks three numbers of each target, and another one with entropies; backward tells nothing. In a group of
    one rank it is log_prob, with the same bits. RuntimeError: there is no process group; there is no such shard, or a second
    derivative is asked for. TypeError: only one of first_class and classes is given. ValueError: there is not a row for each target.

    Of tensor parallelism logits are a DTensor with Shard(-1), which says group and classes; target may be a replicated DTensor. The
    results are tensors, the same on every rank.
    """
    from . import _vocab_parallel as ranks

    tensors: dict[str, Any] = {"logits": logits, "target": target}
    tensors, group, first_class, classes = ranks.shards_of(ranks.LOG_PROB, tensors, {"logits": -1}, group, first_class, classes)
    logits, target = tensors.values()
    if ranks.is_alone(group) and classes == logits.shape[-1]:
        return log_prob(logits, target, temperature=temperature, ignore_index=ignore_index, entropy=entropy)
    options = {"ignore_index": ignore_index, "temperature": temperature, "first_class": first_class, "classes": classes}
    return _losses(ranks.log_prob_of_shard(logits, target, group, options, entropy), "none", target)


@errors_name_their_rank
def vocab_parallel_cross_entropy(logits: Tensor, target: Tensor, group: Any = None, *, first_class: int | None = None,
                                 classes: int | None = None, class_weight: Tensor | None = None, normaliser: Tensor | None = None,
                                 ignore_index: int = -100, label_smoothing: float = 0.0,
                                 smoothing_formula: Literal["pytorch", "megatron"] = "pytorch", z_loss: float = 0.0,
                                 softcap: float = 0.0, reduction: Reduction = "mean", extras: Sequence[str] = ()) -> Any:
    """cross_entropy of logits whose classes lie in shards, one on each rank of a process group: the same loss on every rank.

    logits [..., V]: the classes [first_class, first_class + V) of `classes` in all, in the order of ranks. Where neither is
    given, every rank has as many. target [...] and class_weight [classes] are of all classes. group: of torch.distributed,
    None for all processes; every rank of it must call. smoothing_formula: "megatron" smooths as Megatron-LM does, by
    label_smoothing * classes / (classes - 1). The other arguments are those of cross_entropy.

    Forward tells the other ranks three numbers of each target, and four more with smoothing, class weights or extras; backward
    tells nothing. In a group of one rank it is cross_entropy, with the same bits. RuntimeError: there is no process group.

    Of tensor parallelism logits are a DTensor with Shard(-1), which says group and classes; target and class_weight may be
    replicated DTensors. The result is a tensor, the same on every rank, as within torch's loss_parallel().
    """
    from . import _vocab_parallel as ranks

    tensors: dict[str, Any] = {"logits": logits, "target": target, "class_weight": class_weight, "normaliser": normaliser}
    tensors, group, first_class, classes = ranks.shards_of(ranks.NAME, tensors, {"logits": -1}, group, first_class, classes)
    logits, target, class_weight, normaliser = tensors.values()
    smoothing = ranks.smoothing_of(label_smoothing, smoothing_formula, classes)
    if ranks.is_alone(group) and classes == logits.shape[-1]:
        return cross_entropy(logits, target, class_weight=class_weight, normaliser=normaliser, ignore_index=ignore_index,
                             label_smoothing=smoothing, z_loss=z_loss, softcap=softcap, reduction=reduction, extras=extras)
    options = {"ignore_index": ignore_index, "label_smoothing": smoothing, "z_loss": z_loss, "softcap": softcap, "reduction": reduction,
               "first_class": first_class, "classes": classes}
    return _losses(ranks.loss_of_shard(logits, target, class_weight, normaliser, group, options, extras), reduction, target)


@errors_name_their_rank
def vocab_parallel_linear_cross_entropy(x: Tensor, w: Tensor, target: Tensor, group: Any = None, *, first_class: int | None = None,
                                        classes: int | None = None, bias: Tensor | None = None, class_weight: Tensor | None = None,
                                        normaliser: Tensor | None = None, ignore_index: int = -100, label_smoothing: float = 0.0,
                                        smoothing_formula: Literal["pytorch", "megatron"] = "pytorch", z_loss: float = 0.0,
                                        softcap: float = 0.0, reduction: Reduction = "mean", logits_bytes: int = 1 << 30,
                                        split: Literal["rows", "vocabulary"] = "rows", extras: Sequence[str] = ()) -> Any:
    """vocab_parallel_cross_entropy of x w^T + bias where each rank has the rows of w for its classes, without ever holding all logits.

    x [..., H] and target [...]: the same on every rank. w [V, H] and bias [V]: of the classes [first_class, first_class + V), at
    least one. class_weight [classes]: of all. The gradients of w and bias are of this rank's classes; that of x is added over
    ranks in float32, so it is the same on every rank. logits_bytes: most bytes of logits that are held at once, as of
    linear_cross_entropy; split: what backward cuts into chunks. The other arguments are those of vocab_parallel_cross_entropy.

    Products are done again in backward. In a group of one rank it is linear_cross_entropy. RuntimeError: there is no process group.

    Of tensor parallelism w and bias are DTensors with Shard(0), as ColwiseParallel makes them; x, target and class_weight may be
    replicated DTensors.
    """
    from . import _vocab_parallel as ranks

    tensors: dict[str, Any] = {"x": x, "w": w, "target": target, "bias": bias, "class_weight": class_weight, "normaliser": normaliser}
    tensors, group, first_class, classes = ranks.shards_of(ranks.LINEAR, tensors, {"w": 0, "bias": 0}, group, first_class, classes)
    x, w, target, bias, class_weight, normaliser = tensors.values()
    smoothing = ranks.smoothing_of(label_smoothing, smoothing_formula, classes)
    if ranks.is_alone(group) and classes == w.shape[0]:
        return linear_cross_entropy(x, w, target, bias=bias, class_weight=class_weight, normaliser=normaliser,
                                    ignore_index=ignore_index, label_smoothing=smoothing, z_loss=z_loss, softcap=softcap,
                                    reduction=reduction, logits_bytes=logits_bytes, split=split, extras=extras)
    options = {"ignore_index": ignore_index, "label_smoothing": smoothing, "z_loss": z_loss, "softcap": softcap, "reduction": reduction,
               "first_class": first_class, "classes": classes, "logits_bytes": logits_bytes, "split": split}
    results = ranks.loss_of_linear_shard(x, w, bias, target, class_weight, normaliser, group, options, extras)
    return _losses(results, reduction, target)


@errors_name_their_rank
def normaliser(target: Tensor, group: Any = None, *, ignore_index: int = -100, class_weight: Tensor | None = None) -> Tensor:
    """What the mean over the targets of all ranks divides by: a float32 tensor [1] on target's device, the same on every rank.

    For sequence and context parallelism, where each rank has some tokens: with cross_entropy(..., normaliser=normaliser(target))
    the losses of the ranks add up to the mean over all tokens, and so do gradients that are added over ranks. Where gradients
    are averaged (DDP, FSDP), multiply the loss by the number of ranks.

    target [...]: this rank's, and any number of them. class_weight [V]: as of the loss. group: of torch.distributed, None for
    all processes; every rank of it must call. Without a process group it is of these targets alone.
    """
    import torch.distributed as dist

    counts = target != ignore_index
    if class_weight is not None:
        of_target = class_weight[target.clamp(0, class_weight.numel() - 1)]  # where no class is meant, the loss is NaN
        total = of_target.where(counts, 0.0).sum()
    else:
        total = counts.sum()
    total = total.float().reshape(1)
    if dist.is_available() and dist.is_initialized():
        dist.all_reduce(total, group=group)
    return total


def __getattr__(name: str) -> Callable[..., Any]:
    """An op that has no function above, as the library describes it."""
    try:
        return _function.generic(name, __name__)
    except KeyError:
        raise AttributeError(f"module 'tigon.ops' has no attribute {name!r}") from None
