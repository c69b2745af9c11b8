# SPDX-License-Identifier: Apache-2.0
"""What a reference says of inputs: the right results, their budgets, and whether somebody's results are within."""
import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from .budget import SPREADS, Budget, budgets, root_mean_square
from .report import Case
from .tape import Ref, Tape, Unjudgeable

_RUNS = 24


@dataclasses.dataclass(frozen=True)
class Fact:
    """What can be said of a result without its values. `inputs`: those whose memory it lies in."""
    type: str
    dtype: str
    shape: tuple[int, ...]
    device: str
    layout: str
    inputs: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True)
class Made:
    """What a call made: results, gradients and changed inputs by name, and facts of those that are tensors."""
    values: dict[str, Any]
    facts: dict[str, Fact]


def fact(value: Tensor, inputs: Sequence[Any]) -> Fact:
    """The fact of a tensor that a function of these inputs returned."""
    memory = [_memory(leaf) if isinstance(leaf, Tensor) else None for leaf in inputs]
    own = _memory(value)
    return Fact(f"{type(value).__module__}.{type(value).__qualname__}", str(value.dtype), tuple(value.shape), value.device.type,
                str(value.layout), tuple(i for i, place in enumerate(memory) if own is not None and own == place))


def _memory(tensor: Tensor) -> int | None:
    """Where its storage begins; None where it has none."""
    try:
        return tensor.untyped_storage().data_ptr() or None
    except (RuntimeError, NotImplementedError):
        return None


def same_bits(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors of one shape and dtype have the same bytes."""
    flat = [tensor.detach().contiguous().reshape(-1).view(torch.uint8) for tensor in (one, other)]
    return torch.equal(*flat)


def call(function: Callable[..., Any], inputs: Any, upstream: Sequence[Tensor] | None) -> Made:
    """Calls a function on inputs, a sequence, and with upstream gradients asks autograd for those of inputs and parameters."""
    leaves, tree = pytree.tree_flatten(tuple(inputs))
    before = [leaf.detach().clone() if isinstance(leaf, Tensor) else None for leaf in leaves]
    made = function(*pytree.tree_unflatten(leaves, tree))
    results = pytree.tree_leaves(made)
    values = {("result" if len(results) == 1 else f"result {i}"): value for i, value in enumerate(results)}
    facts = {name: fact(value, leaves) for name, value in values.items() if isinstance(value, Tensor)}
    if upstream is not None:
        values |= _gradients(function, results, leaves, upstream)
    for i, (leaf, old) in enumerate(zip(leaves, before)):
        if old is not None and not same_bits(leaf, old):
            values[f"input {i}"] = leaf.detach()
    return Made(values, facts)


def _gradients(function: Callable[..., Any], results: list[Any], leaves: list[Any], upstream: Sequence[Tensor]) -> dict[str, Any]:
    named = {f"input {i}": leaf for i, leaf in enumerate(leaves) if isinstance(leaf, Tensor) and leaf.requires_grad}
    if isinstance(function, nn.Module):
        named |= {f"parameter {n}": p for n, p in function.named_parameters() if p.requires_grad}
    pairs = [(r, u) for r, u in zip([r for r in results if isinstance(r, Tensor) and r.is_floating_point()], upstream) if r.requires_grad]
    if not pairs or not named:
        return {}
    gradients = torch.autograd.grad([r for r, _ in pairs], list(named.values()), [u for _, u in pairs], allow_unused=True)
    return {f"gradient of {name}": gradient for name, gradient in zip(named, gradients)}


def copies(inputs: Any, backward: bool) -> tuple[Any, ...]:
    """Inputs in memory of their own; with backward floating ones ask for gradients."""
    def copied(leaf: Any) -> Any:
        if not isinstance(leaf, Tensor):
            return leaf
        own = leaf.detach().clone()
        return own.requires_grad_() if backward and own.is_floating_point() else own
    return tuple(pytree.tree_map(copied, tuple(inputs)))


class Oracle:
    """What a reference says of inputs."""

    def __init__(self, reference: Callable[..., Any], inputs: Any, *, backward: bool = False, seed: int = 0):
        """Unjudgeable: the reference is random, or torch cannot do it in float64, or fails its own budget."""
        self.backward, self.upstream = backward, None
        with torch.set_grad_enabled(backward):
            if backward:
                self.upstream = upstream(reference, copies(inputs, False), seed)
            own = call(reference, copies(inputs, backward), self.upstream)
            tape, noted = self._note(reference, copies(inputs, backward))
        self.facts, self.values = own.facts, own.values
        names = [name for name, value in noted.values.items() if isinstance(value, Tensor)]
        refs = [_ref(tape, noted.values[name]) for name in names]
        device = next((leaf.device for leaf in pytree.tree_leaves(inputs) if isinstance(leaf, Tensor)), torch.device("cpu"))
        self.budgets: dict[str, Budget] = dict(zip(names, budgets(tape, refs, _RUNS, seed, device)))
        self._trust(own)

    def _note(self, reference: Callable[..., Any], given: Any) -> tuple[Tape, Made]:
        tape = Tape()
        with tape.recording():
            for leaf in pytree.tree_leaves(given):
                if isinstance(leaf, Tensor):
                    tape.constant(leaf)
            return tape, call(reference, given, self.upstream)

    def _trust(self, own: Made) -> None:
        """A reference that in its own dtype rounds more than its operations say, as torch does in some places, gets more room."""
        for name, budget in self.budgets.items():
            if budget.spread is None or own.values.get(name) is None:
                continue
            if budget.spread.numel() and bool(budget.spread.isinf().all()):
                raise Unjudgeable(f"rounding alone decides whether the reference's {name} is a number, so nothing can be judged")
            self.budgets[name] = budget = budget.for_errors_of(own.values[name])
        for case in self.cases(own):
            if case.is_failure:
                raise Unjudgeable(f"the reference in its own dtype is not what its operations are in float64, so nobody can be: {case.name}: {case.reason}")

    def cases(self, made: Made) -> tuple[Case, ...]:
        """A case for each tensor that the reference made, or that somebody made and the reference did not."""
        names = dict.fromkeys([*self.values, *made.values])
        return tuple(Case(name, *self._verdict(name, made)) for name in names)

    def _verdict(self, name: str, made: Made) -> tuple[str, str]:
        if name not in self.values:
            return ("input_modified", "it was changed, and the reference leaves it as it is") if name.startswith("input") else \
                ("different", "the reference makes no such thing")
        if name not in made.values:
            return ("different", "it must be changed, as the reference changes it") if name.startswith("input") else ("different", "it is missing")
        want, got = self.values[name], made.values[name]
        if not isinstance(want, Tensor):
            return ("passed", "equal") if type(want) is type(got) and bool(want == got) else ("different", f"got {got!r:.80}, want {want!r:.80}")
        misfit = self._misfit(name, made)
        return ("different", misfit) if misfit else within(got, self.budgets[name])

    def _misfit(self, name: str, made: Made) -> str | None:
        """What is wrong with a tensor before its values are looked at."""
        want, got = self.values[name], made.values[name]
        if not isinstance(got, Tensor):
            zero = got is None and name.startswith("gradient") and not bool(want.count_nonzero())
            return None if zero else f"got {type(got).__name__}, want a tensor" if not name.startswith("gradient") else "no gradient reaches it"
        has, wanted = (made.facts.get(name) or fact(got, ())), (self.facts.get(name) or fact(want, ()))
        if has.type not in ("torch.Tensor", wanted.type):
            return f"it is a {has.type}, not a plain torch.Tensor"
        for what in ("dtype", "shape", "device", "layout"):
            if getattr(has, what) != getattr(wanted, what):
                return f"its {what} is {_shown(getattr(has, what))}, and must be {_shown(getattr(wanted, what))}"
        shared = [i for i in has.inputs if i not in wanted.inputs]
        return f"it lies in the memory of input {shared[0]}" if shared else None


def _ref(tape: Tape, tensor: Tensor) -> Ref:
    """A result on the tape; one that no operation made is a constant."""
    known = tape.ref(tensor)
    return known if tape.has(known) else tape.constant(tensor)


def upstream(reference: Callable[..., Any], inputs: Any, seed: int) -> list[Tensor]:
    """A random gradient for each floating result of a reference."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        results = [r for r in pytree.tree_leaves(reference(*inputs)) if isinstance(r, Tensor) and r.is_floating_point()]
    return [torch.randn(r.shape, generator=generator).to(r.device, r.dtype) for r in results]


def within(got: Any, budget: Budget) -> tuple[str, str]:
    """The verdict on a tensor's values, and how near they came or what is wrong where."""
    if got is None:
        return "passed", "no gradient, and it is 0"
    if budget.spread is None:
        right = torch.stack([got == choice for choice in (budget.exact, *budget.choices)]).any(0)
        return ("passed", "equal") if bool(right.all()) else ("different", _worst(got, budget.exact, torch.zeros_like(budget.exact), right))
    value, exact, allowed = got.detach().to(budget.exact.device).double(), budget.exact, SPREADS * budget.spread
    off = (value - exact).abs()
    right = (off <= allowed) | (value == exact) | (value.isnan() & exact.isnan()) | allowed.isinf()
    if not bool(right.all()):
        verdict = "nonfinite" if bool((~right & ~value.isfinite()).any()) else "different"
        return verdict, _worst(value, exact, allowed, right)
    together = root_mean_square(off, budget.spread)
    if not together <= budget.mean:
        return "different", (f"each element is within its budget, but all together are off by {together:.2f} of what rounding does, "
                             f"and may be {budget.mean:.2f}: something is rounded too often, or leans to one side")
    counts = (allowed > 0) & allowed.isfinite()
    worst = float((off[counts] / allowed[counts]).max()) if bool(counts.any()) else 0.0
    room = f", which has {budget.room:.2g} more for the reference's own errors" if budget.room else ""
    return "passed", f"at most {worst:.2f} of its budget{room}"


def _worst(got: Tensor, want: Tensor, allowed: Tensor, right: Tensor) -> str:
    """The element that is most wrong, and how many are."""
    ratio = torch.where(right, -1.0, ((got.double() - want.double()).abs() / allowed.double()).nan_to_num(math.inf, math.inf))
    flat = int(ratio.argmax())
    place = ",".join(str(int(i)) for i in torch.unravel_index(torch.tensor(flat), got.shape)) if got.dim() else ""
    values = [tensor.reshape(-1)[flat].item() for tensor in (got, want, allowed)]
    off = abs(values[0] - values[1])
    return f"{int((~right).sum())} of {right.numel()} elements wrong; [{place}]: got {_number(values[0])}, want {_number(values[1])}, " \
           f"off by {_number(off)}, budget {_number(values[2])}"


def _number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _shown(value: Any) -> str:
    return str(list(value)) if isinstance(value, tuple) else str(value)
