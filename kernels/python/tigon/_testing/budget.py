# SPDX-License-Identifier: Apache-2.0
"""The right result and what rounding may do to it: the oracle and, for each element, a budget.

The spread of an element is the root mean square of what random rounding did to it in some tens of runs; its budget is six
of them. Where no run differs, as in integers, masks and copies, there is none: equality is asked.
"""
import dataclasses
from collections.abc import Sequence

import torch
from torch import Tensor

from .rounding import Rounding, exactly
from .tape import Ref, Tape

SPREADS = 6.0  # an element's budget
WORST_MEAN = 2.0  # the root mean square over all elements, in that of the worst run
_ENOUGH = 64  # different values, so that a mean says something


@dataclasses.dataclass(frozen=True)
class Budget:
    """What a tensor must be.

    exact: the oracle, in float64 or in the tensor's own dtype where that is none of floats.
    spread: of each element; 0 where equality is asked, infinite where rounding decides between a number and none.
    mean: what the root mean square of error over spread may be; infinite where there are too few values.
    choices: what other runs had, of integers.
    room: what was added to each element's budget.
    """
    exact: Tensor
    spread: Tensor | None
    mean: float
    choices: tuple[Tensor, ...] = ()
    room: float = 0.0

    def for_errors_of(self, own: Tensor) -> "Budget":
        """With room for twice the largest error of the reference in its own dtype, if that is beyond this; unless it is as large as
        the values themselves."""
        if self.spread is None:
            return self
        off, counts = (own.detach().double() - self.exact).abs(), (self.spread > 0) & self.spread.isfinite()
        beyond = counts & (off > SPREADS * self.spread) & off.isfinite()
        if not bool(beyond.any()):
            return self
        room = 2 * float(off[beyond].max())
        if room > float(self.exact[counts].square().mean().sqrt()):
            return self
        return dataclasses.replace(self, spread=self.spread + counts * room / SPREADS, room=room)


class _Runs:
    """What the runs did to one tensor."""

    def __init__(self, exact: Tensor):
        self.exact, self.count = exact, 0
        self.squares = torch.zeros_like(exact)
        self.unsure = torch.zeros_like(exact, dtype=torch.bool)
        self.choices: list[Tensor] = []
        self.means: list[float] = []

    def add(self, run: Tensor, is_late: bool) -> None:
        """One more run. The late ones tell, by the spread of those before, how far a whole tensor may be off."""
        if not self.exact.is_floating_point():
            if not torch.equal(run, self.exact):
                self.choices.append(run)
            return
        same = (run == self.exact) | (run.isnan() & self.exact.isnan())
        self.unsure |= ~same & ~(run.isfinite() & self.exact.isfinite())
        apart = torch.where(same | self.unsure, 0.0, run - self.exact)
        if is_late:
            self.means.append(root_mean_square(apart, (self.squares / self.count).sqrt()))
        self.squares += apart.square()
        self.count += 1

    def budget(self) -> Budget:
        if not self.exact.is_floating_point():
            return Budget(self.exact, None, float("inf"), tuple(self.choices))
        spread = (self.squares / max(1, self.count)).sqrt()
        moves = self.exact[spread > 0]
        mean = WORST_MEAN * max(self.means, default=1.0) if moves.numel() >= _ENOUGH and len(torch.unique(moves)) >= _ENOUGH else float("inf")
        return Budget(self.exact, torch.where(self.unsure, float("inf"), spread), max(mean, WORST_MEAN))


def root_mean_square(apart: Tensor, spread: Tensor) -> float:
    """Of errors over their spreads, where there is a spread."""
    counts = (spread > 0) & spread.isfinite()
    return float((apart[counts] / spread[counts]).square().mean().sqrt()) if bool(counts.any()) else 0.0


def budgets(tape: Tape, wanted: Sequence[Ref], runs: int, seed: int, device: torch.device) -> list[Budget]:
    """The oracle and the budget of each wanted tensor of a tape.

    Errors: Unjudgeable: torch cannot do an operation of the tape in float64.
    """
    with torch.no_grad():
        found = [_Runs(exact) for exact in tape.play(wanted, exactly)]
        for run in range(runs):
            for tensor, moved in zip(found, tape.play(wanted, Rounding(seed + run, device))):
                tensor.add(moved, run >= runs // 2)
    return [tensor.budget() for tensor in found]
