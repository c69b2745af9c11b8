# SPDX-License-Identifier: Apache-2.0
"""Losses and log-probabilities whose classes lie in shards, one on each rank of a process group: all-gathers of a few numbers in forward,
and behind a linear layer an all-reduce of the gradient of x in backward."""
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from . import _dtensor
from ._torch import Operator, operator

NAME = "vocab_parallel_cross_entropy"
LINEAR = "vocab_parallel_linear_cross_entropy"
LOG_PROB = "vocab_parallel_log_prob"
_EXTRAS = ("z_part", "accuracy", "entropy")


def place_of(name: str, width: int, group: Any, first_class: int | None, classes: int | None) -> tuple[int, int]:
    """(first class, classes of all ranks) of this rank; shards are as wide as each other where the caller does not say.

    RuntimeError: there is no process group. TypeError: only one of both is given.
    """
    if not dist.is_available() or not dist.is_initialized():
        raise RuntimeError(f"{name} needs a process group; call torch.distributed.init_process_group() first")
    if (first_class is None) != (classes is None):
        raise TypeError("first_class and classes go together; without both, all ranks have as many classes")
    if first_class is None or classes is None:
        return dist.get_rank(group) * width, dist.get_world_size(group) * width
    return first_class, classes


def shards_of(name: str, tensors: dict[str, Any], axes: dict[str, int], group: Any, first_class: int | None,
              classes: int | None) -> tuple[dict[str, Any], Any, int, int]:
    """(this rank's tensors, group, first class, classes). axes: where the classes are, of those that are in shards, the first always given.

    A DTensor says where its classes are, and the others must agree. TypeError: group or place of a DTensor are given, too.
    Other errors as of place_of, and of _dtensor.
    """
    first = next(iter(axes))
    if not _dtensor.is_dtensor(tensors[first]):
        return tensors, group, *place_of(name, tensors[first].shape[axes[first]], group, first_class, classes)
    if group is not None or first_class is not None or classes is not None:
        raise TypeError(f"{name}: {first} is a DTensor, which says group, first_class and classes; leave them out")
    group, first_class, classes = _dtensor.place(tensors[first], axes[first])
    local = {what: _dtensor.shard(name, what, tensor, axes[what]) if what in axes and _dtensor.is_dtensor(tensor) else
             _dtensor.whole(name, what, tensor) for what, tensor in tensors.items()}
    return local, group, first_class, classes


def is_alone(group: Any) -> bool:
    """Whether no other rank has classes: one that has all of them must call with those that have none."""
    return dist.get_world_size(group) == 1


def smoothing_of(label_smoothing: float, formula: str, classes: int) -> float:
    """The share of smoothing in torch's formula. ValueError: another formula."""
    if formula == "pytorch":
        return label_smoothing
    if formula == "megatron":
        return label_smoothing * classes / max(classes - 1, 1)
    raise ValueError(f"smoothing_formula is {formula!r}, but must be pytorch or megatron")


def _arguments(pass_: Operator, tensors: dict[str, Any], options: dict[str, Any], extras: Sequence[str] = ()) -> list[Any]:
    """What an operator takes: tensors and options by their names."""
    said = pass_.said
    values = [o.number(options.get(o.name, o.default)) for o in said.options]
    return [*(tensors.get(t.name) for t in said.arguments), *values, *([sum(said.wanted[e] for e in extras)] if said.wanted else [])]


def _gathered(own: Tensor, group: Any) -> Tensor:
    """[R, ...] of all ranks."""
    gathered = own.new_empty((dist.get_world_size(group), *own.shape))
    dist.all_gather_into_tensor(gathered.view(-1), own.view(-1), group=group)
    return gathered


def _joined(statistics: Operator, join: Operator, tensors: dict[str, Any], group: Any, options: dict[str, Any], more: Sequence[str],
            extras: Sequence[str]) -> dict[str, Tensor]:
    """Results of join by their names, of all ranks' statistics and of what `more` is of those."""
    own = statistics(*_arguments(statistics, tensors, options, more))
    gathered = {name: _gathered(own[statistics.results[name]], group) for name in ("statistics", *more)}
    made = join(*_arguments(join, {**tensors, **gathered}, options, extras))
    return {name: made[place] for name, place in join.results.items()}


def _joined_loss(op: str, tensors: dict[str, Any], group: Any, options: dict[str, Any],
                 extras: Sequence[str]) -> tuple[tuple[Any, ...], Tensor]:
    """((loss, *extras), lse) of the ranks' classes, whose statistics are a pass of `op`."""
    more = ["further"] if options["label_smoothing"] or tensors["class_weight"] is not None or extras else []
    made = _joined(operator(f"{op}.statistics"), operator(f"{NAME}.join"), tensors, group, options, more, extras)
    return tuple(made[name] for name in ("loss", *extras)), made["lse"]


def _keep(ctx: Any, extras: tuple[Any, ...], tensors: Sequence[Any], **more: Any) -> None:
    """What backward needs; extras have no gradient."""
    ctx.save_for_backward(*tensors)
    ctx.mark_non_differentiable(*extras)
    ctx.set_materialize_grads(False)
    for name, value in more.items():
        setattr(ctx, name, value)


def _refuse_second_derivative(name: str) -> None:
    if torch.is_grad_enabled():  # torch would take the gradient for a constant
        raise RuntimeError(f"tigon::{name} has no second derivative: its backward cannot run with create_graph=True")


class _Loss(torch.autograd.Function):
    """Loss and extras; the gradient of this rank's logits in backward, for which no rank is asked."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, target: Tensor, class_weight: Tensor | None, normaliser: Tensor | None, group: Any,
                options: dict[str, Any], extras: tuple[str, ...]) -> Any:
        tensors = {"logits": logits, "target": target, "class_weight": class_weight, "normaliser": normaliser}
        results, lse = _joined_loss(NAME, tensors, group, options, extras)
        _keep(ctx, results[1:], (logits, target, lse, class_weight, normaliser), options=options)
        return results

    @staticmethod
    def backward(ctx: Any, *upstream: Any) -> Any:
        _refuse_second_derivative(NAME)
        if upstream[0] is None or not ctx.needs_input_grad[0]:
            return (None,) * 7
        logits, target, lse, class_weight, normaliser = ctx.saved_tensors
        backward = operator(f"{NAME}.backward")
        tensors = {"logits": logits, "target": target, "lse": lse, "dloss": upstream[0].contiguous(), "class_weight": class_weight,
                   "normaliser": normaliser}
        made = backward(*_arguments(backward, tensors, ctx.options))
        return (made[0], *(None,) * 6)


class _LinearLoss(torch.autograd.Function):
    """Loss and extras; in backward dw and dbias of this rank's classes, and dx of all, which the ranks add up."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor, bias: Tensor | None, target: Tensor, class_weight: Tensor | None,
                normaliser: Tensor | None, group: Any, options: dict[str, Any], extras: tuple[str, ...]) -> Any:
        tensors = {"x": x, "w": w, "bias": bias, "target": target, "class_weight": class_weight, "normaliser": normaliser}
        results, lse = _joined_loss(LINEAR, tensors, group, options, extras)
        _keep(ctx, results[1:], (x, w, bias, target, lse, class_weight, normaliser), options=options, group=group)
        return results

    @staticmethod
    def backward(ctx: Any, *upstream: Any) -> Any:
        _refuse_second_derivative(LINEAR)
        places = {"dx_fp32": 0, "dw": 1, "dbias": 2}  # among the arguments of forward
        wanted = [name for name, place in places.items() if ctx.needs_input_grad[place]]
        gradients: list[Any] = [None] * 9
        if upstream[0] is None or not wanted:
            return tuple(gradients)
        names = ("x", "w", "bias", "target", "lse", "class_weight", "normaliser")
        tensors = {**dict(zip(names, ctx.saved_tensors)), "dloss": upstream[0].contiguous()}
        backward = operator(f"{LINEAR}.backward")
        made = backward(*_arguments(backward, tensors, ctx.options, wanted))
        for name in wanted:
            gradient = made[backward.results[name]]
            if name == "dx_fp32":
                dist.all_reduce(gradient, group=ctx.group)
            gradients[places[name]] = gradient.to(ctx.saved_tensors[places[name]].dtype)
        return tuple(gradients)


class _LogProb(torch.autograd.Function):
    """Log-probabilities, and entropies where they are asked for; the gradient of this rank's logits in backward, for which no rank is asked."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, target: Tensor, group: Any, options: dict[str, Any], entropy: bool) -> Any:
        wanted = ["entropy"] if entropy else []
        made = _joined(operator(f"{LOG_PROB}.statistics"), operator(f"{LOG_PROB}.join"), {"logits": logits, "target": target}, group, options,
                       ["moment"] if entropy else [], wanted)
        results = tuple(made[name] for name in ("logp", *wanted))
        _keep(ctx, (), (logits, target, made["lse"], results[-1] if entropy else None), options=options)
        return results

    @staticmethod
    def backward(ctx: Any, dlogp: Tensor | None, dentropy: Tensor | None = None) -> Any:
        _refuse_second_derivative(LOG_PROB)
        if not ctx.needs_input_grad[0] or (dlogp is None and dentropy is None):
            return (None,) * 5
        logits, target, lse, entropy = ctx.saved_tensors
        tensors = {"logits": logits, "target": target, "lse": lse, "dlogp": torch.zeros_like(lse) if dlogp is None else dlogp.contiguous()}
        if dentropy is not None:
            tensors |= {"dentropy": dentropy.contiguous(), "entropy": entropy}
        backward = operator(f"{LOG_PROB}.backward")
        return (backward(*_arguments(backward, tensors, ctx.options))[0], *(None,) * 4)


def _check_extras(name: str, extras: Sequence[str]) -> None:
    for extra in extras:
        if extra not in _EXTRAS:
            raise TypeError(f"{name} has no extra {extra}; it has {', '.join(_EXTRAS)}")


def _rows(name: str, what: str, tensor: Tensor, target: Tensor) -> Tensor:
    """[targets, columns]; -1 could be any number for a shard without classes. ValueError: there is not a row for each target."""
    rows = tensor.shape[:-1]
    if rows.numel() != target.numel():
        raise ValueError(f"{name}: target has shape {list(target.shape)}, but {what} {list(tensor.shape)} needs {list(rows)}")
    return tensor.reshape(target.numel(), tensor.shape[-1])


def loss_of_shard(logits: Tensor, target: Tensor, class_weight: Tensor | None, normaliser: Tensor | None, group: Any,
                  options: dict[str, Any], extras: Sequence[str]) -> tuple[Tensor, ...]:
    """Loss and extras of rows of logits. TypeError: there is no such extra."""
    _check_extras(NAME, extras)
    rows = _rows(NAME, "logits", logits, target)
    made: tuple[Tensor, ...] = _Loss.apply(  # type: ignore[no-untyped-call]
        rows, target.reshape(-1), class_weight, normaliser, group, options, tuple(extras))
    return made


def log_prob_of_shard(logits: Tensor, target: Tensor, group: Any, options: dict[str, Any], entropy: bool) -> tuple[Tensor, ...]:
    """Log-probabilities of rows of logits, and their entropies where they are asked for."""
    rows = _rows(LOG_PROB, "logits", logits, target)
    made: tuple[Tensor, ...] = _LogProb.apply(rows, target.reshape(-1), group, options, entropy)  # type: ignore[no-untyped-call]
    return made


def loss_of_linear_shard(x: Tensor, w: Tensor, bias: Tensor | None, target: Tensor, class_weight: Tensor | None,
                         normaliser: Tensor | None, group: Any, options: dict[str, Any], extras: Sequence[str]) -> tuple[Tensor, ...]:
    """Loss and extras of rows of x. TypeError: there is no such extra."""
    _check_extras(LINEAR, extras)
    rows = _rows(LINEAR, "x", x, target)
    made: tuple[Tensor, ...] = _LinearLoss.apply(  # type: ignore[no-untyped-call]
        rows, w, bias, target.reshape(-1), class_weight, normaliser, group, options, tuple(extras))
    return made
