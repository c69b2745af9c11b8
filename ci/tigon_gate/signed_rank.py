"""Hodges-Lehmann shift and exact Wilcoxon signed-rank tests and bounds of many rows of paired differences at once.

tigon_report.statistics has the same for one row without numpy; thousands of simulated suites need this one.
Hodges and Lehmann 1963; Hollander and Wolfe, Nonparametric Statistical Methods, 3.1 to 3.3. All is exact for any
symmetric continuous distribution of the differences; nothing is approximated by a normal.
"""
import functools

import numpy


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
