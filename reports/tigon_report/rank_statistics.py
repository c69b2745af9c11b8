# SPDX-License-Identifier: Apache-2.0
"""Hodges-Lehmann shifts with exact rank tests and bounds: Wilcoxon's signed ranks of pairs, rank sums of two samples.

Work on logarithms of times: a difference of logs is a ratio. Pairs come as rows of differences, of which there may be
many at once: thousands of simulated suites need that. scipy has the tests, but no bounds of the shifts and no public tables
of their tails, and is no dependency of the gate; a test compares both where scipy is there. All is exact for any continuous distribution, of pairs for any
symmetric one; nothing is approximated by a normal. Sources: Hodges and Lehmann 1963; Hollander, Wolfe, Chicken,
Nonparametric Statistical Methods, 3rd ed., 3.1 to 3.3 (signed ranks), 4.1 to 4.3 (rank sums).
"""
import functools
import math

import numpy

from .statistics import INFINITE, Interval, finite

# ---- pairs --------------------------------------------------------------------------------------



@functools.lru_cache(maxsize=None)
def upper_tail(n):
    """P(T+ >= t) for t = 0 .. n(n+1)/2 + 1, where T+ is the signed-rank statistic of n symmetric differences."""
    counts = numpy.zeros(n * (n + 1) // 2 + 1)
    counts[0] = 1
    for rank in range(1, n + 1):
        counts[rank:] = counts[rank:] + counts[: counts.size - rank].copy()
    return numpy.append(numpy.cumsum(counts[::-1])[::-1] / 2.0**n, 0.0)


def walsh_averages(differences):
    """Sorted averages of every two differences and of each with itself, along the last axis."""
    d = numpy.asarray(differences, float)
    i, j = numpy.triu_indices(d.shape[-1])
    return numpy.sort((d[..., i] + d[..., j]) / 2, axis=-1)


def shift(walsh):
    """Hodges-Lehmann estimate from sorted Walsh averages."""
    return numpy.median(walsh, axis=-1)


def pairs_of(walsh):
    """The number of differences behind a set of Walsh averages."""
    return int((numpy.sqrt(8 * numpy.asarray(walsh).shape[-1] + 1) - 1) / 2)


def p_above(walsh, value):
    """One-sided p value of "the shift is at most `value`": the number of Walsh averages above it is T+."""
    above = (walsh > numpy.asarray(value)[..., None]).sum(axis=-1)
    return upper_tail(pairs_of(walsh))[above]


def p_below(walsh, value):
    """One-sided p value of "the shift is at least `value`"."""
    return p_above(-walsh, -numpy.asarray(value))


def bounds(walsh, alpha):
    """(lower, upper) bound of the shift, each with error probability at most alpha; infinite where n is too small."""
    tail = upper_tail(pairs_of(walsh))
    outside = int(numpy.count_nonzero(tail[:-1] <= alpha))  # values of T+ so rare that they are rejected
    if outside == 0:
        infinite = numpy.full(walsh.shape[:-1], numpy.inf)
        return -infinite, infinite
    return walsh[..., outside - 1], walsh[..., walsh.shape[-1] - outside]


# ---- two samples --------------------------------------------------------------------------------


@functools.lru_cache(maxsize=None)
def rank_sum_tail(n, m):
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


def _differences(before, after):
    """All after[j] - before[i], sorted."""
    return numpy.sort(numpy.subtract.outer(finite(after), finite(before)), axis=None)


def sample_shift(before, after):
    """Hodges-Lehmann shift of two samples: the median of all after[j] - before[i]."""
    return float(numpy.median(_differences(before, after)))


def sample_shift_interval(before, after, confidence=0.99):
    """The exact two-sided interval of the shift of two independent samples (rank sums)."""
    differences = _differences(before, after)
    tail = rank_sum_tail(len(before), len(after))
    below = sum(share <= (1 - confidence) / 2 for share in tail)  # order statistics below the bound
    return Interval(*map(float, (differences[below - 1], differences[-below]))) if below else Interval(-INFINITE, INFINITE)
