# SPDX-License-Identifier: Apache-2.0
"""Change points of a noisy series: e-divisive proposes them, a t-test on the points around each keeps or drops them.

E-divisive (Matteson and James 2014) splits where the energy distance between both sides is largest. As in Hunter
(Fleming et al. 2023) candidates are proposed generously and pruned by a t-test, which needs no permutations and so no
random numbers. The test looks at no more than WINDOW points on each side: a slow drift is not a step, however many
points are averaged.
"""

import dataclasses
import math

import numpy

from ..statistics import MAD_TO_SD

WINDOW = 30  # points on each side of a candidate that its test looks at
MINIMUM = 3  # points a step needs on each side
LEAST_STEP = 0.012  # smallest change of the log ratio worth a mark: a step of 2 % measured with 0.3 % of error
P_VALUE = 1e-3  # after multiplying by the number of places where the series could have changed
CANDIDATE_P = 1e-2


@dataclasses.dataclass
class ChangePoint:
    """`index` is the first point after the step; `change` the relative change of the value, +0.02 is 2 % more."""

    index: int
    change: float
    p_value: float


def noise(values):
    """Standard deviation of point-to-point noise, from the median absolute first difference: steps hardly move it."""
    if len(values) < 2:
        return 0.0
    return MAD_TO_SD * float(numpy.median(numpy.abs(numpy.diff(values)))) / math.sqrt(2)


def _median_filter(values, width):
    padded = numpy.pad(values, width // 2, mode="reflect")
    return numpy.median(numpy.lib.stride_tricks.sliding_window_view(padded, width), axis=1)


def without_spikes(values):
    """Copy with lone outliers pulled back to the median of their five neighbours; a step keeps its place."""
    values = numpy.asarray(values, dtype=float)
    if len(values) < 7:
        return values.copy()
    smooth = _median_filter(values, 5)
    away = values - smooth
    limit = 4 * max(MAD_TO_SD * float(numpy.median(numpy.abs(away))), noise(values))
    return numpy.where(numpy.abs(away) > limit, smooth, values)


def energy(values):
    """Energy statistic of each split: element k is values[:k] against values[k:], NaN where a side is too short."""
    count = len(values)
    statistic = numpy.full(count, numpy.nan)
    if count < 2 * MINIMUM:
        return statistic
    distance = numpy.abs(values[:, None] - values[None, :])
    corner = numpy.concatenate([[0.0], numpy.cumsum([distance[k, :k].sum() for k in range(count)])])  # pairs before k
    total = corner[count]
    rows = numpy.cumsum(distance.sum(axis=1))  # sum over i < k+1 and all j
    k = numpy.arange(MINIMUM, count - MINIMUM + 1)
    left = corner[k]
    across = rows[k - 1] - 2 * left
    right = total - left - across
    m, n = k.astype(float), (count - k).astype(float)
    between = 2 * across / (m * n)
    statistic[k] = m * n / (m + n) * (between - 2 * left / (m * (m - 1)) - 2 * right / (n * (n - 1)))
    return statistic


def t_test_p(difference, sigma, before, after, freedom):
    """Two-sided p-value of a difference of means of `before` and `after` points; `sigma` was estimated with `freedom`.

    Student's t through Wallace's normal approximation, which holds far into the tails where the tests here live.
    """
    if sigma == 0:
        return 0.0 if difference else 1.0
    t = abs(difference) / (sigma * math.sqrt(1 / before + 1 / after))
    z = (8 * freedom + 1) / (8 * freedom + 3) * math.sqrt(freedom * math.log1p(t * t / freedom))
    return math.erfc(z / math.sqrt(2))


def _split(values, start, end, floor, found):
    """Proposes splits of values[start:end] in all depth."""
    if end - start < 2 * MINIMUM:
        return
    statistic = energy(values[start:end])
    if numpy.all(numpy.isnan(statistic)):
        return
    middle = start + int(numpy.nanargmax(statistic))
    left, right = values[start:middle], values[middle:end]
    # Against point-to-point noise, not the spread of both sides: a plateau would hide in its own side's spread.
    if t_test_p(left.mean() - right.mean(), floor, len(left), len(right), end - start - 2) > CANDIDATE_P:
        return
    found.append(middle)
    _split(values, start, middle, floor, found)
    _split(values, middle, end, floor, found)


def _candidates(values, floor):
    """Sorted places of possible steps, looked for in short stretches that overlap: there a short plateau stands out."""
    found = []
    for start in range(0, max(1, len(values) - WINDOW), WINDOW):
        _split(values, start, min(len(values), start + 2 * WINDOW), floor, found)
    return sorted(set(found))


def _correlation(residuals):
    """Lag-one correlation of residuals, between 0 and 0.9: what makes neighbours worth less than independent points."""
    power = float((residuals * residuals).sum())
    return min(0.9, max(0.0, float((residuals[1:] * residuals[:-1]).sum()) / power)) if power else 0.0


def _local_residuals(values, edges):
    """Deviations from the median of at most WINDOW neighbours within the same stretch: a drift is not noise."""
    parts = []
    for start, end in zip(edges, edges[1:]):
        pieces = max(1, round((end - start) / WINDOW))
        for part in numpy.array_split(values[start:end], pieces):
            parts.append(part - numpy.median(part))
    return numpy.concatenate(parts), len(parts)


def _judge(values, edges, floor):
    """(p, change) of every inner edge, each from the points between its neighbours, WINDOW at most."""
    flat, parts = _local_residuals(values, edges)
    sigma = max(floor, math.sqrt(float((flat * flat).sum()) / max(1, len(flat) - parts)))
    correlation = _correlation(flat)
    sigma *= math.sqrt((1 + correlation) / (1 - correlation))
    verdicts = []
    for before, edge, after in zip(edges, edges[1:], edges[2:]):
        left, right = values[max(before, edge - WINDOW) : edge], values[edge : min(after, edge + WINDOW)]
        change = float(numpy.median(right) - numpy.median(left))
        mean = float(right.mean() - left.mean())
        shift = min(abs(change), abs(mean)) if change * mean > 0 else 0.0
        freedom = max(1, len(flat) - parts)
        verdicts.append((min(1.0, t_test_p(shift, sigma, len(left), len(right), freedom) * len(values)), change))
    return verdicts


def _place(values, edge, before, after):
    """The index within two of `edge` at which `values`, spikes and all, change best from level `before` to `after`."""
    low, high = max(0, edge - 5), min(len(values), edge + 5)

    def cost(k):
        away = numpy.abs(values[low:k] - before).sum() + numpy.abs(values[k:high] - after).sum()
        return float(away), abs(k - edge), k

    return min(range(max(low, edge - 2), min(high, edge + 2) + 1), key=cost)


def detect(values, least_step=LEAST_STEP, p_value=P_VALUE):
    """Change points of `values`, logarithms of a positive quantity in time order; at least MINIMUM points a side.

    The weakest candidate is dropped while any fails; what is left passes the test beside its neighbours.
    """
    raw, values = numpy.asarray(values, dtype=float), without_spikes(values)
    if len(values) < 2 * MINIMUM:
        return []
    floor = max(noise(values), 1e-6)
    edges = [0, *_candidates(values, floor), len(values)]
    while len(edges) > 2:
        verdicts = _judge(values, edges, floor)
        failing = [
            (p if abs(change) >= least_step else 1 + least_step - abs(change), i)
            for i, (p, change) in enumerate(verdicts)
            if p > p_value or abs(change) < least_step
        ]
        if not failing:
            break
        del edges[max(failing)[1] + 1]
    points = []
    for start, edge, end, (p, change) in zip(edges, edges[1:], edges[2:], verdicts if len(edges) > 2 else ()):
        place = _place(raw, edge, numpy.median(values[start:edge]), numpy.median(values[edge:end]))
        if MINIMUM <= place <= len(values) - MINIMUM:
            points.append(ChangePoint(place, math.expm1(change), p))
    return points


def segments(count, points):
    """[(start, end)] of the stretches between change points."""
    edges = [0, *[point.index for point in points], count]
    return list(zip(edges, edges[1:]))


def band(values, points):
    """(centre, half width) of the noise band for every point: the median of its stretch and three robust deviations."""
    values = numpy.asarray(values, dtype=float)
    centre, half = numpy.empty(len(values)), numpy.empty(len(values))
    residuals = []
    for start, end in segments(len(values), points):
        centre[start:end] = numpy.median(values[start:end])
        residuals.append(values[start:end] - centre[start])
    sigma = MAD_TO_SD * float(numpy.median(numpy.abs(numpy.concatenate(residuals)))) if len(values) else 0.0
    half[:] = 3 * max(sigma, noise(values))
    return centre, half
