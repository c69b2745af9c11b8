# SPDX-License-Identifier: Apache-2.0
"""What identical programs teach: margins per cell, the gate's own false-alarm rate, the smallest effect it finds."""
import math

import numpy

from tigon_report import rank_statistics, statistics

from . import decide

SHIFT_TO_MEAN = math.sqrt(math.pi / 3)  # standard error of the Hodges-Lehmann estimate over that of the mean


def spread(log_ratios):
    """Robust standard deviation of one pair's log ratio: median absolute deviation about the shift, scaled."""
    d = numpy.asarray(log_ratios, float)
    centre = rank_statistics.shift(rank_statistics.walsh_averages(d))
    return float(statistics.MAD_TO_SD * numpy.median(numpy.abs(d - centre)))


def margin(log_ratios, rule):
    """Margin of a cell from log ratios of identical programs: least_margin, or three standard errors of a gate's
    estimate when that is more."""
    error = spread(log_ratios) * SHIFT_TO_MEAN / math.sqrt(rule.pairs)
    return max(rule.least_margin, float(numpy.expm1(3 * error)))


def centred(log_ratios):
    """Log ratios with the shift of each row taken away."""
    d = numpy.asarray(log_ratios, float)
    return d - rank_statistics.shift(rank_statistics.walsh_averages(d))[:, None]


def false_blocks(log_ratios, margins, rule, suites, random):
    """How many of `suites` suites block or stay undecided, made from measured pairs of identical programs.

    A suite takes 2 * rule.pairs pairs, each with all its cells, so that what cells have in common stays. Which of two
    identical programs is called base does not matter, so each pair's sign is drawn at random. Pairs are drawn without
    replacement while there are enough; a pair drawn twice makes chance look surer than it is.
    """
    d = numpy.asarray(log_ratios, float)
    need, have = 2 * rule.pairs, d.shape[1]
    blocked = undecided = 0
    for _ in range(suites):
        drawn = d[:, random.choice(have, need, replace=have < need)] * random.choice([-1.0, 1.0], need)
        fresh = drawn[:, rule.pairs:]
        code = decide.exit_code(decide.decide(drawn[:, : rule.pairs], margins, rule, lambda again: fresh[again]))
        blocked += code == 3
        undecided += code == 6
    return blocked, undecided


def upper_bound(count, trials):
    """The rate that `count` of `trials` stays below with 95 % confidence."""
    return statistics.binomial_interval(count, trials, 0.9).high


def power_curve(log_ratios, margin_of_cell, rule, family, changes, random, draws=400):
    """Probability that the gate finds each slow-down of `changes` in a cell with these pairs among `family` cells.

    The Hodges-Lehmann estimate and its bounds move with a shift of the data, so each draw of pairs is looked at once
    and every change asks whether what remains reaches the edge.
    """
    d = numpy.asarray(centred([log_ratios])[0])
    drawn = random.choice(d, (draws, 2 * rule.pairs)) * random.choice([-1.0, 1.0], (draws, 2 * rule.pairs))
    edge, effect = math.log1p(margin_of_cell), math.log1p(rule.effect * margin_of_cell)

    def needed(part, cells):  # the least shift that a look finds
        walsh = rank_statistics.walsh_averages(part)
        lower = rank_statistics.bounds(walsh, rule.alpha / 2 / cells)[0]
        return numpy.maximum(edge - lower, effect - rank_statistics.shift(walsh))

    first = needed(drawn[:, : rule.pairs], family)
    fresh, pooled = needed(drawn[:, rule.pairs:], 1), needed(drawn, family)
    shift = numpy.log1p(changes)[:, None]
    return numpy.where(shift > first, shift > fresh, shift > pooled).mean(axis=1)


def smallest_effects(log_ratios, margin_of_cell, rule, family, random, powers=(0.8, 0.95)):
    """The slow-downs that the gate finds with these probabilities; None beyond 50 %."""
    changes = numpy.arange(0.001, 0.5, 0.0005)
    power = power_curve(log_ratios, margin_of_cell, rule, family, changes, random)
    found = [numpy.flatnonzero(power >= wanted) for wanted in powers]
    return [float(changes[at[0]]) if at.size else None for at in found]
