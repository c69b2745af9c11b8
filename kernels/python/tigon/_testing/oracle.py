# SPDX-License-Identifier: Apache-2.0
"""What a reference says of inputs: the right results, their budgets, and whether somebody's results are within."""
import copy
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from .budget import SPREADS, Budget, budgets, root_mean_square
from .made import Made, call, copies, fact
from .report import Case
from .tape import Ref, Tape, Unjudgeable

_RUNS = 24


class Oracle:
    """What a reference says of inputs."""

    def __init__(self, reference: Callable[..., Any], inputs: Any, *, backward: bool = False, seed: int = 0):
        """Unjudgeable: the reference is random, or torch cannot do it in float64, or fails its own budget."""
        self.backward, self.upstream = backward, None
        with torch.set_grad_enabled(backward):
            if backward:
                self.upstream = self.upstream_of(reference, copies(inputs, False), seed)
            own = call(reference, copies(inputs, backward), self.upstream)
            tape, noted = self._note(reference, copies(inputs, backward))
        self.facts, self.values = own.facts, own.values
        names = [name for name, value in noted.values.items() if isinstance(value, Tensor)]
        refs = [_ref(tape, noted.values[name]) for name in names]
        device = next((leaf.device for leaf in pytree.tree_leaves(inputs) if isinstance(leaf, Tensor)), torch.device("cpu"))
        self.budgets: dict[str, Budget] = dict(zip(names, budgets(tape, refs, _RUNS, seed, device)))
        self._trust(own)

    def of_layout(self, reference: Callable[..., Any], inputs: Any) -> "Oracle":
        """The same for inputs of the same values that are laid out otherwise. Unjudgeable: the reference gives something else for them."""
        other = copy.copy(self)
        other.budgets = dict(self.budgets)
        with torch.set_grad_enabled(self.backward):
            own = call(reference, copies(inputs, self.backward), self.upstream)
        other.facts, other.values = own.facts, own.values
        if missing := [name for name, value in own.values.items() if isinstance(value, Tensor) and name not in self.budgets]:
            raise Unjudgeable(f"the reference makes or changes its {missing[0]} there alone")
        other._trust(own)
        return other

    @staticmethod
    def upstream_of(reference: Callable[..., Any], inputs: Any, seed: int) -> list[Tensor]:
        """A random gradient for each floating result of a reference."""
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            results = [r for r in pytree.tree_leaves(reference(*inputs)) if isinstance(r, Tensor) and r.is_floating_point()]
        return [torch.randn(r.shape, generator=generator).to(r.device, r.dtype) for r in results]

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
