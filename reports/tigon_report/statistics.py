# SPDX-License-Identifier: Apache-2.0
"""Statistics of timings: medians with exact intervals, Holm's correction, rates. rank_statistics has shifts.

Nothing is assumed about the shape of the noise, nothing is drawn at random, and only the standard library is used: scipy,
which has the interval of a rate, is no dependency of what reads records; a test compares both where scipy is there.
Samples taken within one process share that process's luck (address layout, clocks), so an interval over them says
nothing about the next process; the unit of analysis of a decision is the process pair. Non-finite values raise
ValueError: they must never pass as a number.

Sources: Holm, Scand. J. Statist. 6 (1979) 65; Clopper and Pearson, Biometrika 26 (1934) 404.
"""
import math
import statistics as standard
from typing import NamedTuple

INFINITE = math.inf
MAD_TO_SD = 1.4826  # median absolute deviation to standard deviation, of a normal distribution


class Interval(NamedTuple):
    """low <= truth <= high with at least the confidence that was asked for; infinite ends: too few values to say."""

    low: float
    high: float

    def exp(self):
        """The interval of a ratio from that of a difference of logarithms."""
        return Interval(math.exp(self.low), math.exp(self.high) if self.high < 700 else INFINITE)


def finite(values):
    """The values as a list of floats. Raises ValueError where there is none or one is not finite."""
    values = [float(value) for value in values]
    if not values or not all(map(math.isfinite, values)):
        raise ValueError("no values" if not values else "a value is not a finite number")
    return values


def median(values):
    return standard.median(finite(values))


def quantile(values, share):
    """Linear between order statistics, as numpy's default."""
    values = sorted(finite(values))
    at = share * (len(values) - 1)
    below = math.floor(at)
    above = min(below + 1, len(values) - 1)
    return values[below] + (at - below) * (values[above] - values[below])


def geometric_mean(values):
    """Of positive values."""
    return math.exp(math.fsum(map(math.log, finite(values))) / len(values))


def median_interval(values, confidence=0.99):
    """Exact interval of the median from order statistics; holds for any continuous distribution."""
    values = sorted(finite(values))
    n, tail, k = len(values), 0.0, 0
    while k < n // 2:
        tail += math.comb(n, k) / 2.0**n
        if not tail <= (1 - confidence) / 2:
            break
        k += 1
    return Interval(values[k - 1], values[n - k]) if k else Interval(-INFINITE, INFINITE)


def median_interval_of_quartiles(middle, q1, q3, n, confidence=0.99):
    """Approximate interval of a median of which the quartiles are kept: the notch of a box plot, for normal values."""
    middle, q1, q3 = finite((middle, q1, q3))
    if n < 2:
        return Interval(-INFINITE, INFINITE)
    half = standard.NormalDist().inv_cdf(0.5 + confidence / 2) * 1.2533 * (q3 - q1) / 1.349 / math.sqrt(n)
    return Interval(middle - half, middle + half)


def holm(p_values):
    """Holm's adjusted p-values, in the order given: reject those <= alpha for a family-wise error of alpha."""
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted, worst = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(order):
        worst = max(worst, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = worst
    return adjusted


def binomial_interval(events, trials, confidence=0.95):
    """Clopper and Pearson's exact interval of a rate, e.g. of false alarms."""
    if not 0 <= events <= trials or trials < 1:
        raise ValueError(f"{events} events in {trials} trials")

    def at_most(k, rate):
        logs = [math.lgamma(trials + 1) - math.lgamma(i + 1) - math.lgamma(trials - i + 1)  # a coefficient may have
                + i * math.log(rate) + (trials - i) * math.log1p(-rate) for i in range(k + 1)]  # a thousand digits
        return math.fsum(map(math.exp, logs))

    def root(rises, target):
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if rises(middle) < target else (low, middle)
        return (low + high) / 2

    tail = (1 - confidence) / 2
    low = 0.0 if events == 0 else root(lambda rate: 1 - at_most(events - 1, rate), tail)
    high = 1.0 if events == trials else root(lambda rate: 1 - at_most(events, rate), 1 - tail)
    return Interval(low, high)
