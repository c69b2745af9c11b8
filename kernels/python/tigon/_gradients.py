# SPDX-License-Identifier: Apache-2.0
"""Where an op's gradients come from, derived from what its passes say their tensors are the gradients of.

Knows no op, and no framework.
"""
import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

from . import _native
from ._describe import Pass
from ._sizes import sizes_of


@dataclasses.dataclass(frozen=True)
class Source:
    """Where an argument of the gradients' pass comes from: "argument" or "result" of forward, or "upstream" gradient of one."""
    kind: str
    index: int


@dataclasses.dataclass(frozen=True)
class Plan:
    """How the gradients of an op come about."""
    forward: Pass
    backward: Pass
    makes_loss: bool  # backward is a forward_backward pass: it gives forward's results, too
    sources: tuple[Source, ...]  # of backward's arguments
    gradients: dict[int, int]  # forward's argument: backward's result
    differentiable: tuple[int, ...]  # forward's results that have an upstream gradient

    @functools.cached_property
    def _option_places(self) -> list[tuple[int | None, Any]]:
        """Of each option of backward its place among forward's, or what is taken in its stead."""
        places = {o.name: i for i, o in enumerate(self.forward.options)}
        return [(places.get(o.name), o.number(o.default)) for o in self.backward.options]

    def options(self, given: Sequence[Any]) -> list[Any]:
        """Backward's options from those of forward."""
        return [default if place is None else given[place] for place, default in self._option_places]

    def want_with_results(self, forward_want: int, needed: tuple[bool, ...]) -> int:
        """The bits of a pass that makes loss and gradients: for what forward was asked for, and for gradients."""
        asked = [name for name, bit in self.forward.wanted.items() if forward_want & bit]
        return sum(self.backward.wanted[name] for name in asked) | self.want(needed)

    def want(self, needed: tuple[bool, ...]) -> int:
        """The bits of backward's `want` for the gradients of the arguments that need one."""
        results = self.backward.results
        wanted = {self.gradients[i] for i in self.gradients if needed[i]}
        return sum(1 << bit for k in wanted if (bit := results[k].wanted_bit) is not None)

    def has_one_loss(self, options: tuple[float, ...]) -> bool:
        """Whether all that has an upstream gradient is one number, with these options of forward."""
        if len(self.differentiable) != 1:
            return False
        said = self.forward
        tensor = said.results[self.differentiable[0]].tensor
        sums = [sizes_of(_native.host(), said, options).sum(tensor, axis) for axis in range(len(said.tensors[tensor].shape))]
        return all(size.constant == 1 and not size.factors for size in sums)


def _source(forward: Pass, backward: Pass, name: str) -> Source:
    tensor = backward.tensors[backward.index[name]]
    if name in forward.argument_places:
        return Source("argument", forward.argument_places[name])
    for result in (tensor.gradient_of, f"{tensor.gradient_of}_out"):
        if result in forward.result_places:
            return Source("upstream", forward.result_places[result])
    if name in forward.result_places:
        return Source("result", forward.result_places[name])
    raise RuntimeError(f"{backward.name}: nothing of forward is {name}, so it has no gradients")


def _gradients(forward: Pass, backward: Pass) -> dict[int, int]:
    """For each of forward's arguments the result that is its gradient; of several the first."""
    found: dict[int, int] = {}
    for k, result in enumerate(backward.results):
        of = backward.tensors[result.tensor].gradient_of
        if of in forward.argument_places:
            found.setdefault(forward.argument_places[of], k)
    for tensor in forward.arguments:
        if tensor.same_gradient_as is not None:
            found[forward.argument_places[tensor.name]] = found[forward.argument_places[tensor.same_gradient_as]]
    return found


def plan_of(op: str) -> Plan:
    """RuntimeError: the descriptions do not say where an argument of the backward pass comes from."""
    names = _native.host().names
    makes_loss = f"{op}.backward" not in names
    forward, backward = (_native.host().describe(f"{op}.{name}", "f32") for name in ("forward", "forward_backward" if makes_loss else "backward"))
    sources = tuple(_source(forward, backward, t.name) for t in backward.arguments)
    upstream = tuple(dict.fromkeys(s.index for s in sources if s.kind == "upstream"))
    return Plan(forward, backward, makes_loss, sources, _gradients(forward, backward), upstream)


def ops_with_gradients() -> list[str]:
    """The ops that have a pass for gradients."""
    names = _native.host().names
    return [name.removesuffix(".forward") for name in names if name.endswith(".forward")
            and {name.replace(".forward", ".backward"), name.replace(".forward", ".forward_backward")} & set(names)]
