# SPDX-License-Identifier: Apache-2.0
"""cross_entropy of logits whose classes lie in shards, one on each rank of a process group, and all-gathers of a few numbers in forward."""
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from ._torch import Operator, operator

NAME = "vocab_parallel_cross_entropy"
_EXTRAS = ("z_part", "accuracy", "entropy")


def place_of(width: int, group: Any, first_class: int | None, classes: int | None) -> tuple[int, int]:
    """(first class, classes of all ranks) of this rank; shards are as wide as each other where the caller does not say.

    RuntimeError: there is no process group. TypeError: only one of both is given.
    """
    if not dist.is_available() or not dist.is_initialized():
        raise RuntimeError(f"{NAME} needs a process group; call torch.distributed.init_process_group() first")
    if (first_class is None) != (classes is None):
        raise TypeError("first_class and classes go together; without both, all ranks have as many classes")
    if first_class is None or classes is None:
        return dist.get_rank(group) * width, dist.get_world_size(group) * width
    return first_class, classes


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


class _Loss(torch.autograd.Function):
    """Loss and extras; the gradient of this rank's logits in backward, for which no rank is asked."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, target: Tensor, class_weight: Tensor | None, normaliser: Tensor | None, group: Any,
                options: dict[str, Any], extras: tuple[str, ...]) -> Any:
        tensors: dict[str, Any] = {"target": target, "class_weight": class_weight, "normaliser": normaliser}
        statistics, join = operator(f"{NAME}.statistics"), operator(f"{NAME}.join")
        more = ["further"] if options["label_smoothing"] or class_weight is not None or extras else []
        own = statistics(*_arguments(statistics, {**tensors, "logits": logits}, options, more))
        for name in ("statistics", *more):
            tensors[name] = _gathered(own[statistics.results[name]], group)
        made = join(*_arguments(join, tensors, options, extras))
        lse = made[join.results["lse"]]
        results = tuple(made[join.results[name]] for name in ("loss", *extras))
        ctx.save_for_backward(logits, target, lse, class_weight, normaliser)
        ctx.mark_non_differentiable(*results[1:])
        ctx.set_materialize_grads(False)
        ctx.options = options
        return results

    @staticmethod
    def backward(ctx: Any, *upstream: Any) -> Any:
        if torch.is_grad_enabled():  # torch would take the gradient for a constant
            raise RuntimeError(f"tigon::{NAME} has no second derivative: its backward cannot run with create_graph=True")
        if upstream[0] is None or not ctx.needs_input_grad[0]:
            return (None,) * 7
        logits, target, lse, class_weight, normaliser = ctx.saved_tensors
        backward = operator(f"{NAME}.backward")
        tensors = {"logits": logits, "target": target, "lse": lse, "dloss": upstream[0].contiguous(), "class_weight": class_weight,
                   "normaliser": normaliser}
        made = backward(*_arguments(backward, tensors, ctx.options))
        return (made[0], *(None,) * 6)


def loss_of_shard(logits: Tensor, target: Tensor, class_weight: Tensor | None, normaliser: Tensor | None, group: Any,
                  options: dict[str, Any], extras: Sequence[str]) -> tuple[Tensor, ...]:
    """Loss and extras of rows of logits. TypeError: there is no such extra."""
    for name in extras:
        if name not in _EXTRAS:
            raise TypeError(f"{NAME} has no extra {name}; it has {', '.join(_EXTRAS)}")
    rows = logits.reshape(target.numel(), logits.shape[-1])  # of a shard without classes -1 could be any number
    made: tuple[Tensor, ...] = _Loss.apply(  # type: ignore[no-untyped-call]
        rows, target.reshape(-1), class_weight, normaliser, group, options, tuple(extras))
    return made
