# SPDX-License-Identifier: Apache-2.0
"""The landing page's answer: did main get worse, what, by how much; what failed and what is missing come first."""

import collections
import math
import re

from .. import records, units
from . import changepoints, draw, history, state
from .scan import stable_id

HISTORY_OF_MISSING = 5  # a cell is missing when most of so many earlier runs of the same kind timed it
WATCH = 0.012  # newest points closer to their level than this are not worth a look, however narrow the band


def repro(record):
    """The command that repeats what a record says."""
    if record.get("repro"):
        return record["repro"]
    return f"./tigon {'bench' if 'basis' in record else 'check'} --case '{record['case_id']}'"


def newest_runs(store):
    """The newest run of each device, one that says how main is where there is any, GPUs first."""
    newest = {run.device: run for run in sorted(store.runs, key=state.counts)}
    return sorted(newest.values(), key=lambda run: (not run.on_gpu, run.device))


def newest_checked(store):
    """{device: its newest run that checked anything and says how main is}."""
    return {run.device: run for run in store.runs if run.checks.cases and state.counts(run)}


def missing(store, every):
    """[(series, run)] of cells that a run of the state of main lacks although earlier ones of its kind had them."""
    found = []
    for newest in state.newest(store):
        earlier = [
            run
            for run in store.runs
            if run.timed and run is not newest and state.counts(run) and state.scope(run) == state.scope(newest)
        ][-HISTORY_OF_MISSING:]
        for series in every if newest.timed or newest.bad_cells else ():
            is_mine = series.cell.counts and series.cell.device == newest.device
            if is_mine and newest.id not in series.cell.points and earlier:
                if 2 * sum(run.id in series.cell.points for run in earlier) > len(earlier):
                    found.append((series, newest))
    return found


def failures(store, every):
    """Rows of everything that failed or is missing in the state of main; what a peer cannot do is not among it."""
    slugs = {(series.name, series.cell.basis, series.cell.device): series.slug for series in every}
    rows, told = [], set()
    for run in state.newest(store):
        for record in [*run.checks.failures, *run.bad_cells]:
            slug = slugs.get((stable_id(record["case_id"]), record.get("basis"), run.device))
            rows.append(
                {
                    "verdict": record["verdict"],
                    "case_id": record["case_id"],
                    "run": run,
                    "slug": slug,
                    "reason": record.get("reason") or "",
                    "repro": repro(record),
                }
            )
            told.add((stable_id(record["case_id"]), record.get("basis"), run.device))
        for record in run.records["converge_verdict"]:
            if records.outcome_of(record["verdict"]) == "failed":
                rows.append(
                    {
                        "verdict": record["verdict"],
                        "case_id": f"training {record['config']} {record['dtype']}",
                        "run": run,
                        "slug": None,
                        "reason": record.get("reason") or "",
                        "repro": f"./tigon converge --config {record['config']} --dtype {record['dtype']}",
                    }
                )
    gone = [
        {
            "verdict": "missing",
            "case_id": f"{series.name} {series.cell.basis}",
            "run": run,
            "slug": series.slug,
            "reason": f"last timed {series.runs[-1].started[:10]}",
            "repro": repro(series.cell.record),
        }
        for series, run in missing(store, every)
        if (series.name, series.cell.basis, run.device) not in told
    ]
    return gone + rows


def steps(every, days):
    """(worse, moved): steps to slower that code explains and that are still there, however old; others of `days` days."""
    worse, moved = [], []
    for series in every:
        newest = history.days(series.runs[-1])
        for change, label in zip(series.changes, series.labels):
            before = series.centre[change.index - 1]
            stays = series.centre[-1] - before > changepoints.LEAST_STEP / 2
            if series.cell.counts and label.cause == "code" and change.change > 0 and stays:
                worse.append((series, change, label))
            elif history.days(label.after) > newest - days:
                moved.append((series, change, label))
    return (sorted(worse, key=lambda step: -step[1].change), sorted(moved, key=lambda step: -abs(step[1].change)))


def latest_steps(every, count):
    """The newest `count` steps that code explains, whenever they were: for a page after quiet days."""
    steps = [
        (series, change, label)
        for series in every
        for change, label in zip(series.changes, series.labels)
        if label.cause == "code"
    ]
    return sorted(steps, key=lambda step: (step[2].after.started, abs(step[1].change)), reverse=True)[:count]


def watch(every):
    """Series whose newest point lies above its band, too new for a step; each gets `above`, its relative distance."""
    found = []
    for series in every:
        series.above = math.expm1(float(series.ratio[-1] - series.centre[-1]))
        if series.cell.counts and series.outside > 0 and series.above > WATCH and len(series.runs) >= 2 * changepoints.MINIMUM:
            found.append(series)
    return sorted(found, key=lambda series: -series.above)


def summary(store, every, failed, worse):
    """{bad, sentence, detail}: the answer in one sentence."""
    parts = []
    counts = collections.Counter("missing" if row["verdict"] == "missing" else "failed" for row in failed)
    if counts["failed"]:
        parts.append(f"{counts['failed']} failed")
    if counts["missing"]:
        parts.append(f"{counts['missing']} cells are missing")
    every = [series for series in every if series.cell.counts]
    cases = {series.slug for series, _, _ in worse}
    if worse:
        top, change, label = worse[0]
        parts.append(
            f"{len(cases)} of {len(every)} cases are slower by code, "
            f"most of all {top.name} by {100 * change.change:.1f} % since {label.after.started[:10]}"
        )
    long_enough = [series for series in every if len(series.runs) >= 2 * changepoints.MINIMUM]
    if parts:
        return {"bad": True, "sentence": "Yes: " + "; ".join(parts) + ".", "detail": _history_note(every, long_enough)}
    if not state.newest(store):
        return {
            "bad": False,
            "sentence": "Nobody knows: no complete run of a committed tree is among the records.",
            "detail": f"The newest run: {newest_runs(store)[0].why_not}.",
        }
    if not every:
        return {
            "bad": False,
            "sentence": "Nothing failed; no GPU run is among the records, so nothing is known about speed.",
            "detail": "",
        }
    if not long_enough:
        return {
            "bad": False,
            "sentence": "Nothing failed or is missing; there are too few runs to see steps.",
            "detail": _history_note(every, long_enough),
        }
    return {
        "bad": False,
        "sentence": f"No: nothing failed or is missing, and none of {len(long_enough)} cases is slower by code.",
        "detail": _history_note(every, long_enough),
    }


def _history_note(every, long_enough):
    short = len(every) - len(long_enough)
    return (
        f"{short} of {len(every)} cases have fewer than {2 * changepoints.MINIMUM} runs: no step can be seen in them."
        if short
        else ""
    )


def share(series):
    """Share of the ceiling that the newest record reaches, or None where the run measured no ceiling."""
    record = series.cell.record
    return record.get("share_of_gemm" if record.get("bound") == "compute" else "share_of_copy")


def _natural(text):
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", text)]


def map_cells(every, value, worst):
    """{device: (rows, columns, {(row, column): value}, {(row, column): link})} of value(series) of the fused kernels.

    A row is an op and pass with the axes other than that of its rows, a column a number of rows; over dtypes and bases the one with the largest
    worst(value) counts. Series without a value are left out.
    """
    devices = collections.defaultdict(dict)
    for series in every:
        record = series.cell.record
        if not (series.cell.counts and record["impl"].startswith("fused")) or value(series) is None:
            continue
        axes = dict(record["axes"])
        axis = units.axis_of_rows(record)
        column = f"{axis}={axes.pop(axis)}" if axis in axes else "other"
        row = f"{record['op']} {record['pass']} {units.axes_text(axes)}".strip()
        best = devices[series.cell.device].setdefault((row, column), series)
        if worst(value(series)) > worst(value(best)):
            devices[series.cell.device][row, column] = series
    maps = {}
    for device, cells in devices.items():
        rows = sorted({row for row, _ in cells}, key=_natural)
        columns = sorted({column for _, column in cells}, key=lambda text: (text == "other", _natural(text)))
        place = {key: (rows.index(key[0]), columns.index(key[1])) for key in cells}
        maps[device] = (
            rows,
            columns,
            {place[key]: value(series) for key, series in cells.items()},
            {place[key]: f"case/{series.slug}.html" for key, series in cells.items()},
        )
    return maps


def maps(inline, every, days):
    """[(heading, text, [figures])]: where the fused kernels changed, and how near the machine's ceiling they are."""
    changes = map_cells(every, lambda series: series.recent if len(series.runs) > 1 else None, abs)
    shares = map_cells(every, share, lambda value: -value)
    return [
        part
        for part in (
            (
                "Where it changed",
                f"Change of the level over the last {days} days, in percent, the largest over dtypes and bases; "
                "positive is slower.",
                [
                    draw.heat_map(
                        inline,
                        cells,
                        f"change{number}",
                        f"{device}: change of the level of the fused kernels",
                        draw.heat_level,
                        lambda value: f"{100 * value:+.1f}",
                    )
                    for number, (device, cells) in enumerate(sorted(changes.items()))
                ],
            ),
            (
                "How near the ceiling",
                "Newest time of the fused kernels as a share of what the copy bandwidth or the GEMM rate of "
                "the same run allows, in percent, the least over dtypes and bases. Above 100 a cache helps.",
                [
                    draw.heat_map(
                        inline,
                        cells,
                        f"share{number}",
                        f"{device}: share of the ceiling that the fused kernels reach",
                        draw.share_level,
                        lambda value: f"{100 * value:.0f}",
                    )
                    for number, (device, cells) in enumerate(sorted(shares.items()))
                ],
            ),
        )
        if part[2]
    ]
