"""Statistics of timings: medians with exact intervals, Hodges-Lehmann shifts with exact rank bounds, Holm's correction.

Nothing is assumed about the shape of the noise, nothing is drawn at random, and only the standard library is used.
Work on logarithms of times: a difference of logs is a ratio. Samples taken within one process share that process's
luck (address layout, clocks), so an interval over them says nothing about the next process; the unit of analysis of a
decision is the process pair. Non-finite values raise ValueError: they must never pass as a number.

Sources: Hollander, Wolfe, Chicken, Nonparametric Statistical Methods, 3rd ed., 3.1 to 3.3 (signed rank), 4.1 to 4.3
(rank sum); Holm, Scand. J. Statist. 6 (1979) 65; Clopper and Pearson, Biometrika 26 (1934) 404.
"""
import functools
import math
import statistics as standard
from typing import NamedTuple

INFINITE = math.inf


class Interval(NamedTuple):
    """low <= truth <= high with at least the confidence that was asked for; infinite ends: too few values to say."""

    low: float
    high: float

    def exp(self):
        """The interval of a ratio from that of a difference of logarithms."""
        return Interval(math.exp(self.low), math.exp(self.high) if self.high < 700 else INFINITE)


def _finite(values):
    values = [float(value) for value in values]
    if not values or not all(map(math.isfinite, values)):
        raise ValueError("no values" if not values else "a value is not a finite number")
    return values


def median(values):
    return standard.median(_finite(values))


def quantile(values, share):
    """Linear between order statistics, as numpy's default."""
    values = sorted(_finite(values))
    at = share * (len(values) - 1)
    below = math.floor(at)
    above = min(below + 1, len(values) - 1)
    return values[below] + (at - below) * (values[above] - values[below])


def mad_sd(values):
    """Standard deviation of normal values with outliers: 1.4826 times the median absolute deviation."""
    centre = median(values)
    return 1.4826 * median([abs(value - centre) for value in values])


def geometric_mean(values):
    """Of positive values."""
    return math.exp(math.fsum(map(math.log, _finite(values))) / len(values))


# ---- one sample ---------------------------------------------------------------------------------


def median_interval(values, confidence=0.99):
    """Exact interval of the median from order statistics; holds for any continuous distribution."""
    values = sorted(_finite(values))
    n, tail, k = len(values), 0.0, 0
    while k < n // 2:
        tail += math.comb(n, k) / 2.0**n
        if not tail <= (1 - confidence) / 2:
            break
        k += 1
    return Interval(values[k - 1], values[n - k]) if k else Interval(-INFINITE, INFINITE)


def median_interval_of_quartiles(middle, q1, q3, n, confidence=0.99):
    """Approximate interval of a median of which the quartiles are kept: the notch of a box plot, for normal values."""
    middle, q1, q3 = _finite((middle, q1, q3))
    if n < 2:
        return Interval(-INFINITE, INFINITE)
    half = standard.NormalDist().inv_cdf(0.5 + confidence / 2) * 1.2533 * (q3 - q1) / 1.349 / math.sqrt(n)
    return Interval(middle - half, middle + half)


def walsh_averages(differences):
    """(d[i] + d[j]) / 2 for i <= j, sorted."""
    d = _finite(differences)
    return sorted((d[i] + d[j]) / 2 for i in range(len(d)) for j in range(i, len(d)))


def hodges_lehmann(differences):
    """The shift of paired differences: the median of their Walsh averages."""
    return standard.median(walsh_averages(differences))


def _subset_sums(weights):
    """counts[s] = number of subsets of the positive integers `weights` with sum s."""
    counts = [1] + [0] * sum(weights)
    reached = 0
    for weight in weights:
        reached += weight
        for total in range(reached, weight - 1, -1):
            counts[total] += counts[total - weight]
    return counts


@functools.lru_cache(maxsize=None)
def _signed_rank_tail(n):
    """tail[k] = P(W+ <= k) for n pairs without ties."""
    total, tail = 0, []
    for count in _subset_sums(range(1, n + 1)):
        total += count
        tail.append(total / 2.0**n)
    return tail


def _order_for(tail, share):
    """How many of the lowest order statistics lie below a bound that is wrong with probability <= share at most."""
    k = 0
    while k < len(tail) and tail[k] <= share:
        k += 1
    return k


def signed_rank_bound(differences, confidence=0.999):
    """(lower, upper): two one-sided bounds of the shift, each exact at `confidence`. Wilcoxon's signed ranks.

    n pairs reach a confidence of 1 - 2**-n; below that the bounds are infinite.
    """
    walsh = walsh_averages(differences)
    k = _order_for(_signed_rank_tail(len(differences)), 1 - confidence)
    return Interval(walsh[k - 1], walsh[-k]) if k else Interval(-INFINITE, INFINITE)


def signed_rank_interval(differences, confidence=0.99):
    """The exact two-sided interval of the shift of paired differences."""
    return signed_rank_bound(differences, 0.5 + confidence / 2)


def signed_rank_p(differences, shift=0.0):
    """Exact one-sided p of 'the shift is at most `shift`': small when the differences lie above it.

    Differences equal to the shift are left out; equal sizes get their mean rank, and the distribution is that of the
    signs given these ranks.
    """
    moved = [d - shift for d in _finite(differences) if d != shift]
    if not moved:
        return 1.0
    sizes = sorted(abs(d) for d in moved)
    first, last = {}, {}
    for index, size in enumerate(sizes):
        first.setdefault(size, index)
        last[size] = index
    twice = [first[abs(d)] + last[abs(d)] + 2 for d in moved]  # twice the rank is whole
    positive = sum(rank for rank, d in zip(twice, moved) if d > 0)
    counts = _subset_sums(twice)
    return sum(counts[positive:]) / 2.0 ** len(moved)


# ---- two samples --------------------------------------------------------------------------------


@functools.lru_cache(maxsize=None)
def _rank_sum_tail(n, m):
    """tail[k] = P(U <= k) of Mann-Whitney's U for samples of n and m without ties."""
    counts = [1] + [0] * (n * m)
    for i in range(1, n + 1):  # Gaussian binomial: multiply by (1 - q^(m+i)), divide by (1 - q^i)
        for s in range(n * m, m + i - 1, -1):
            counts[s] -= counts[s - m - i]
        for s in range(i, n * m + 1):
            counts[s] += counts[s - i]
    total, tail, everything = 0, [], math.comb(n + m, n)
    for count in counts:
        total += count
        tail.append(total / everything)
    return tail


def shift(before, after):
    """Hodges-Lehmann shift of two samples: the median of all after[j] - before[i]."""
    before, after = _finite(before), _finite(after)
    return standard.median(b - a for a in before for b in after)


def shift_interval(before, after, confidence=0.99):
    """The exact two-sided interval of the shift of two independent samples (rank sums)."""
    before, after = _finite(before), _finite(after)
    differences = sorted(b - a for a in before for b in after)
    k = _order_for(_rank_sum_tail(len(before), len(after)), (1 - confidence) / 2)
    return Interval(differences[k - 1], differences[-k]) if k else Interval(-INFINITE, INFINITE)


# ---- many tests ---------------------------------------------------------------------------------


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
