# SPDX-License-Identifier: Apache-2.0
"""Where an op's gradients come from, derived from what its passes say their tensors are the gradients of. Knows no op."""
import dataclasses

from . import _native
from ._sizes import sizes_of
from ._torch import Operator, operator


@dataclasses.dataclass(frozen=True)
class Source:
    """Where an argument of the gradients' pass comes from: "argument" or "result" of forward, or "upstream" gradient of one."""
    kind: str
    index: int


@dataclasses.dataclass(frozen=True)
class Plan:
    """How the gradients of an op come about."""
    forward: Operator
    backward: Operator
    makes_loss: bool  # backward is a forward_backward pass: it gives forward's results, too
    sources: tuple[Source, ...]  # of backward's arguments
    gradients: dict[int, int]  # forward's argument: backward's result
    differentiable: tuple[int, ...]  # forward's results that have an upstream gradient

    def want(self, needed: tuple[bool, ...]) -> int:
        """The bits of backward's `want` for the gradients of the arguments that need one."""
        results = self.backward.said.results
        wanted = {self.gradients[i] for i in self.gradients if needed[i]}
        return sum(1 << bit for k in wanted if (bit := results[k].wanted_bit) is not None)

    def has_one_loss(self, options: tuple[float, ...]) -> bool:
        """Whether all that has an upstream gradient is one number, with these options of forward."""
        if len(self.differentiable) != 1:
            return False
        said = self.forward.said
        tensor = said.results[self.differentiable[0]].tensor
        sums = [sizes_of(_native.host(), said, options).sum(tensor, axis) for axis in range(len(said.tensors[tensor].shape))]
        return all(size.constant == 1 and not size.factors for size in sums)


def _source(forward: Operator, backward: Operator, name: str) -> Source:
    tensor = backward.said.tensors[backward.said.index[name]]
    if name in forward.arguments:
        return Source("argument", forward.arguments[name])
    for result in (tensor.gradient_of, f"{tensor.gradient_of}_out"):
        if result in forward.results:
            return Source("upstream", forward.results[result])
    if name in forward.results:
        return Source("result", forward.results[name])
    raise RuntimeError(f"{backward.name}: nothing of forward is {name}, so it has no gradients in torch")


def _gradients(forward: Operator, backward: Operator) -> dict[int, int]:
    """For each of forward's arguments the result that is its gradient; of several the first."""
    found: dict[int, int] = {}
    for k, result in enumerate(backward.said.results):
        of = backward.said.tensors[result.tensor].gradient_of
        if of in forward.arguments:
            found.setdefault(forward.arguments[of], k)
    for tensor in forward.said.arguments:
        if tensor.same_gradient_as is not None:
            found[forward.arguments[tensor.name]] = found[forward.arguments[tensor.same_gradient_as]]
    return found


def plan_of(op: str) -> Plan:
    """RuntimeError: the descriptions do not say where an argument of the backward pass comes from."""
    names = _native.host().names
    makes_loss = f"{op}.backward" not in names
    forward, backward = operator(f"{op}.forward"), operator(f"{op}.forward_backward" if makes_loss else f"{op}.backward")
    sources = tuple(_source(forward, backward, t.name) for t in backward.said.arguments)
    upstream = tuple(dict.fromkeys(s.index for s in sources if s.kind == "upstream"))
    return Plan(forward, backward, makes_loss, sources, _gradients(forward, backward), upstream)


def ops_with_gradients() -> list[str]:
    """The ops that have a pass for gradients."""
    names = _native.host().names
    return [name.removesuffix(".forward") for name in names if name.endswith(".forward")
            and {name.replace(".forward", ".backward"), name.replace(".forward", ".forward_backward")} & set(names)]
