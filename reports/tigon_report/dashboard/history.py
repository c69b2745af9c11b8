# SPDX-License-Identifier: Apache-2.0
"""Histories: each timed case as a series of ratios to an anchor of the same run, its change points, their causes."""

import dataclasses
import hashlib
import math
import os

import numpy

from . import causes, changepoints

RECENT_DAYS = 30
ANCHORS = {"memory": ("copy", "bytes_min_bytes"), "compute": ("gemm_{dtype}", "flop")}


@dataclasses.dataclass
class Series:
    """One case on one kind of device over time. `ratio` is log(time / anchor time), or log(time) without an anchor."""

    cell: object
    runs: list
    points: list
    ratio: numpy.ndarray
    anchor: str  # name of the anchor, or "" when some run lacks it and seconds are used
    changes: list = dataclasses.field(default_factory=list)
    centre: numpy.ndarray | None = None
    half: numpy.ndarray | None = None
    labels: list = dataclasses.field(default_factory=list)
    recent: float = 0.0  # relative change of the level over RECENT_DAYS, positive is slower

    @property
    def name(self):
        return self.cell.case_id

    @property
    def slug(self):
        """Stable across sites: a hash of what identifies the series."""
        text = "|".join((self.cell.case_id, self.cell.basis, self.cell.device))
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def last(self):
        return self.points[-1]

    @property
    def outside(self):
        """How far the newest point lies above (+) or below (-) its band, in half widths beyond it; 0 within."""
        away, half = float(self.ratio[-1] - self.centre[-1]), float(self.half[-1])
        return 0.0 if abs(away) <= half or half == 0 else away / half


def anchor_seconds(run, record):
    """Seconds that the anchor of `run` needs for the least bytes or operations of `record`, or None."""
    name, amount = ANCHORS.get(record.get("bound"), ANCHORS["memory"])
    rate = run.ceilings.get(name.format(dtype=record.get("dtype")))
    return record[amount] / rate if rate and record.get(amount) else None


def pinned_anchor(store, pattern):
    """{run_id: median seconds} of the one case whose id contains `pattern`; ValueError unless it is exactly one."""
    found = [cell for cell in store.cells.values() if pattern in f"{cell.case_id} {cell.basis}"]
    if len(found) != 1:
        names = ", ".join(sorted(f"{cell.case_id} {cell.basis}" for cell in found)[:3])
        raise ValueError(
            f"--anchor '{pattern}' matches {len(found)} timed cases{': ' + names if names else ''}; it must be one"
        )
    return {point.run_id: point.median_s for point in found[0].points.values()}


def make_series(store, cell, pinned=None):
    """The series of `cell`, in time order."""
    runs = sorted((store.run(run_id) for run_id in cell.points), key=lambda run: (run.started, run.id))
    points = [cell.points[run.id] for run in runs]
    median = numpy.array([point.median_s for point in points])
    anchors = [(pinned.get(run.id) if pinned else anchor_seconds(run, cell.record)) for run in runs]
    if pinned:
        name = "pinned case"
    else:
        name = ANCHORS.get(cell.record.get("bound"), ANCHORS["memory"])[0].format(dtype=cell.record.get("dtype"))
    if any(not anchor for anchor in anchors):
        return Series(cell, runs, points, numpy.log(median), "")
    return Series(cell, runs, points, numpy.log(median / numpy.array(anchors)), name)


def analyse(ratio):
    """The change points of a series, and the centre and half width of its noise band."""
    changes = changepoints.detect(ratio)
    return changes, *changepoints.band(ratio, changes)


def days(run):
    """Days since 1970 from an ISO time; NaN when there is none."""
    try:
        return numpy.datetime64(run.started[:19]).astype("datetime64[s]").astype(float) / 86400
    except ValueError:
        return math.nan


def recent_change(series, since_days):
    """Relative change from the level `since_days` before the newest point to the level now."""
    newest = days(series.runs[-1])
    then = 0
    for index, run in enumerate(series.runs):
        if days(run) <= newest - since_days:
            then = index
    return math.expm1(float(series.centre[-1] - series.centre[then]))


def build(store, pool, pinned=None):
    """All series, slowest-changing work in `pool` (anything with map), sorted by name; causes are labelled."""
    every = [make_series(store, cell, pinned) for cell in store.cells.values()]
    every.sort(key=lambda series: (series.cell.device, series.name, series.cell.basis))
    for series, (changes, centre, half) in zip(
        every, pool.map(analyse, [series.ratio for series in every], chunksize=16)
    ):
        series.changes, series.centre, series.half = changes, centre, half
        series.recent = recent_change(series, RECENT_DAYS)
    causes.label(every)
    return every


def workers():
    """Processes to use: the cores this process may run on, eight at most."""
    return min(8, len(os.sched_getaffinity(0)))
