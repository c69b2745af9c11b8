# SPDX-License-Identifier: Apache-2.0
"""Gradients written over what forward kept for them, where nobody else can see that memory any more. Knows no op.

A gate's backward then needs no memory beside its inputs. Who else holds a tensor is counted: Python's references, C++'s, and
the tensors in its storage. The counts of a tensor that nothing but autograd holds are taken from a small backward, once.
"""
import functools
import sys
from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor

from ._torch import Operator

_Counts = tuple[int, ...]


class InPlace:
    """The form in place of a pass for gradients, which may be called where are_free() says so."""

    def __init__(self, backward: Operator, kept: Sequence[int]):
        """kept: the arguments of the pass that forward keeps, by their place."""
        said = backward.said
        free = list(backward.arguments)
        self._over: dict[int, int] = {}  # a result by its place: the argument that it is written over, as pass.cpp decides it
        for k, result in enumerate(said.results):
            for name in () if result.is_copy or result.wanted_bit is not None else said.tensors[result.tensor].may_alias:
                if name in free and k not in self._over:
                    self._over[k] = backward.arguments[name]
                    free.remove(name)
        self._count = len(said.results)
        self._places = [list(kept).index(i) for i in self._over.values() if i in kept]
        self.is_there = bool(self._over) and len(self._places) == len(self._over) and hasattr(torch._C._autograd, "_get_current_graph_task_keep_graph")
        self._overload: Any = getattr(torch.ops.tigon, backward.name.replace(".", "_") + "_").default if self.is_there else None

    def are_free(self, kept: list[Any]) -> bool:
        """Whether nothing but the backward that runs now holds the tensors that would be written over, of those that were kept."""
        if not self.is_there or torch.compiler.is_compiling() or torch._C._autograd._get_current_graph_task_keep_graph():
            return False
        most = _alone()
        return most is not None and all(_is_plain(kept[i]) and all(c <= m for c, m in zip(_holders(kept, i), most)) for i in self._places)

    def __call__(self, *arguments: Any) -> tuple[Tensor, ...]:
        """What the pass gives; the results that lie in arguments are these."""
        with torch._C._AutoDispatchBelowAutograd():
            made = self._overload(*arguments)
        others = iter(made if isinstance(made, tuple) else () if made is None else (made,))
        written = [arguments[i] for i in self._over.values()]
        torch.autograd.graph.increment_version(written)  # should somebody hold it after all, autograd says so
        return tuple(arguments[self._over[k]].detach() if k in self._over else next(others) for k in range(self._count))


def _is_plain(t: Tensor) -> bool:
    return type(t) is Tensor and t.is_contiguous() and t._base is None


def _holders(tensors: list[Tensor], i: int) -> _Counts:
    """How many hold one of some tensors: in Python, in C++, and of its storage."""
    t: Any = tensors[i]
    return sys.getrefcount(t), t._use_count(), torch._C._storage_Use_Count(t.untyped_storage()._cdata)  # type: ignore[attr-defined]


@functools.cache
def _alone() -> _Counts | None:
    """The counts of a tensor that only autograd keeps; None where torch does not tell them."""
    found: list[_Counts] = []

    class Probe(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return x.clone()

        @staticmethod
        def backward(ctx: Any, *upstream: Any) -> Any:
            kept = list(ctx.saved_tensors)
            found.append(_holders(kept, 0))
            return upstream[0]

    try:
        with torch.enable_grad():
            probe = cast(Any, Probe).apply(torch.ones(2, requires_grad=True) * 2.0)
        torch.autograd.backward(probe, torch.ones(2))
    except (AttributeError, RuntimeError):
        return None
    return found[0]
