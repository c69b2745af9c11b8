# SPDX-License-Identifier: Apache-2.0
"""Which cells are slower, faster, the same or undecided, from log ratios of process pairs.

A cell's data are one number per pair: log(median of head / median of base). Processes of one program differ from each
other by more than the samples inside one, so the pair is the unit and samples are never pooled over processes.

1. Every cell is measured with `pairs` pairs. A cell is suspicious when its shift is above the margin (exact signed-rank
   test, Holm over the suite, half of alpha) and the estimate is at least `effect` margins; it is the same when its
   two-sided 95 % interval lies inside the margin.
2. Cells that are not the same are measured again with fresh pairs. A suspicious cell must be found again by the fresh
   pairs alone; an undecided one gets a second look at all its pairs with the other half of alpha.

By the two halves of alpha (Bonferroni) a suite whose shifts are all within their margins is blocked with probability
alpha at most. That a program is its own equal (shift 0, not the margin) makes false blocks rarer by far.
"""
import dataclasses
import enum

import numpy

from tigon_report import rank_statistics, statistics


class Outcome(str, enum.Enum):
    SLOWER = "slower"
    FASTER = "faster"
    SAME = "same"
    INCONCLUSIVE = "inconclusive"


@dataclasses.dataclass(frozen=True)
class Rule:
    """How a suite is judged. Ratios are relative changes (0.01 is 1 %), times seconds."""

    alpha: float = 0.01  # of a suite whose cells all changed by their margin
    pairs: int = 12  # the fewest whose signed-rank test can reject one of up to 20 cells: 20 / 2^12 < alpha / 2
    effect: float = 2.0  # a change counts from this many margins
    least_margin: float = 0.01
    floor_s: float = 1e-6  # no smaller change counts
    interval_alpha: float = 0.05

    def least_pairs(self, cells):
        """The fewest pairs with which any of so many cells can be found changed."""
        pairs = 1
        while cells * 0.5**pairs > self.alpha / 2:
            pairs += 1
        return pairs


@dataclasses.dataclass
class Judged:
    """One cell's result: the change head / base - 1 with its two-sided interval, and how it came about."""

    outcome: Outcome
    change: float
    lower: float
    upper: float
    p_slower: float  # adjusted over the suite, first look
    p_faster: float
    first: Outcome  # of the first look, before any pair was repeated
    remeasured: bool
    log_ratios: list


def floored(margins, base_s, rule):
    """Margins that hold the absolute floor, too: `effect` of them are at least floor_s."""
    return numpy.maximum(margins, rule.floor_s / (rule.effect * numpy.asarray(base_s)))


class _Look:
    """Tests of all cells of a family against their margins on one set of pairs."""

    def __init__(self, log_ratios, margins, rule, family):
        walsh = rank_statistics.walsh_averages(log_ratios)
        self.estimate = rank_statistics.shift(walsh)
        self.lower, self.upper = rank_statistics.bounds(walsh, rule.interval_alpha / 2)
        edge, effect = numpy.log1p(margins), numpy.log1p(rule.effect * margins)
        self.p_slower = self._adjusted(rank_statistics.p_above(walsh, edge), family)
        self.p_faster = self._adjusted(rank_statistics.p_below(walsh, -edge), family)
        slower = (self.p_slower <= rule.alpha / 2) & (self.estimate >= effect)
        faster = (self.p_faster <= rule.alpha / 2) & (self.estimate <= -effect)
        same = (self.lower > -edge) & (self.upper < edge)
        self.outcome = [Outcome.SLOWER if s else Outcome.FASTER if f else Outcome.SAME if e else Outcome.INCONCLUSIVE
                        for s, f, e in zip(slower, faster, same)]

    @staticmethod
    def _adjusted(p, family):
        """Holm over `family` cells, of which those that are not here count as p = 1."""
        return numpy.array(statistics.holm([*p, *[1.0] * (family - p.size)])[: p.size])


def decide(first, margins, rule, remeasure):
    """Judges a suite.

    first      log ratios, one row per cell, one column per pair
    margins    relative change per cell that is of no interest, floored()
    remeasure  called with the indices of the cells to repeat, gives their fresh log ratios in the same form; it may
               return None where no time is left
    Returns one Judged per cell.
    """
    first, margins = numpy.asarray(first, float), numpy.asarray(margins, float)
    if not numpy.all(numpy.isfinite(first)):
        raise ValueError("a log ratio is not finite")
    cells = len(first)
    look = _Look(first, margins, rule, cells)
    outcomes, estimate = list(look.outcome), look.estimate.copy()
    lower, upper = look.lower.copy(), look.upper.copy()
    ratios = [list(row) for row in first]
    again = [i for i in range(cells) if outcomes[i] != Outcome.SAME]
    fresh = remeasure(again) if again else None
    if fresh is not None:
        fresh = numpy.asarray(fresh, float)
        pooled = _Look(numpy.hstack([first[again], fresh]), margins[again], rule, cells)
        suspicious = [k for k, i in enumerate(again) if outcomes[i] in (Outcome.SLOWER, Outcome.FASTER)]
        confirming = _Look(fresh[suspicious], margins[again][suspicious], rule, len(suspicious)) if suspicious else None
        for k, i in enumerate(again):
            found = pooled.outcome[k]
            if k in suspicious and confirming.outcome[suspicious.index(k)] != outcomes[i]:
                found = Outcome.SAME if found == Outcome.SAME else Outcome.INCONCLUSIVE
            elif k in suspicious:
                found = outcomes[i]
            outcomes[i] = found
            estimate[i], lower[i], upper[i] = pooled.estimate[k], pooled.lower[k], pooled.upper[k]
            ratios[i] += list(fresh[k])
    elif again:  # nothing is found without its confirmation
        for i in again:
            outcomes[i] = Outcome.INCONCLUSIVE
    return [
        Judged(outcomes[i], *(float(numpy.expm1(v[i])) for v in (estimate, lower, upper)),
               float(look.p_slower[i]), float(look.p_faster[i]), look.outcome[i],
               fresh is not None and i in again, [float(v) for v in ratios[i]])
        for i in range(cells)
    ]


def exit_code(judged):
    """3 with a regression, 6 when a cell is undecided, else 0."""
    outcomes = {one.outcome for one in judged}
    return 3 if Outcome.SLOWER in outcomes else 6 if Outcome.INCONCLUSIVE in outcomes else 0
