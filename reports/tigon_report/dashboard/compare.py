# SPDX-License-Identifier: Apache-2.0
"""The comparison page: the two newest commits as a table for everybody, all runs as data for the script."""

import json
import math

from . import history, state

BAND_OF_TWO = math.sqrt(2)  # a ratio of two runs is noisier than one run by this factor


def _says(before, after, anchored, band):
    if not (before and after):
        return "missing after" if before else "missing before"
    return "within noise" if abs(anchored) <= band else "slower" if anchored > 0 else "faster"


def _short(value, digits):
    """A number as the script has it: both tables are made of the same numbers, so that they round alike."""
    return float(f"{value:.{digits}g}")


def _time(series, run):
    """Median seconds of a case in a run, or None."""
    point = series.cell.points.get(run.id)
    return _short(point.median_s, 6) if point else None


def _rate(rate):
    return _short(rate, 6)


def _band(series):
    return _short(BAND_OF_TWO * float(series.half[-1]), 4)


def _anchor(series):
    """The name of the ceiling that a case is measured by."""
    record = series.cell.record
    name = history.ANCHORS.get(record.get("bound"), history.ANCHORS["memory"])[0]
    return name.format(dtype=record["dtype"])


def _row(series, before, after):
    times = [_time(series, run) for run in (before, after)]
    row = {"series": series, "before": times[0], "after": times[1], "change": None, "anchored": None, "band": _band(series)}
    if None not in times:
        rates = [run.ceilings.get(_anchor(series)) for run in (before, after)]
        row["change"] = row["anchored"] = times[1] / times[0] - 1
        if all(rates):
            row["anchored"] = times[1] * _rate(rates[1]) / (times[0] * _rate(rates[0])) - 1
    row["says"] = _says(*times, row["anchored"], row["band"])
    return row


def newest_pair(store, every):
    """{before, after, rows} of the newest complete GPU run and the one before it of its device and another commit."""
    timed = [run for run in store.runs if run.timed and state.counts(run)]
    for after in reversed(timed):
        earlier = [run for run in timed if run.device == after.device and run.started < after.started]
        if earlier:
            before = next((run for run in reversed(earlier) if run.commit != after.commit), earlier[-1])
            rows = [
                _row(series, before, after)
                for series in every
                if series.cell.device == after.device
                and (before.id in series.cell.points or after.id in series.cell.points)
            ]
            rows.sort(key=lambda row: (row["change"] is not None, -(row["anchored"] or 0.0), row["series"].name))
            return {"before": before, "after": after, "rows": rows}
    return None


def script(store, every, pair):
    """data/compare.js: all runs' medians, as a call of the page's own function: pages from files cannot fetch."""
    timed = [run for run in store.runs if run.timed]
    number = {run.id: index for index, run in enumerate(timed)}
    times = [[None] * len(every) for _ in timed]
    for column, series in enumerate(every):
        for run in timed:
            times[number[run.id]][column] = _time(series, run)
    runs = [
        {
            "id": run.id,
            "device": run.device,
            "ceilings": {name: _rate(rate) for name, rate in run.ceilings.items()},
            "text": f"{run.started[:16]} {run.commit[:10]} {run.device}" + (f" ({run.origin})" if run.origin else ""),
        }
        for run in timed
    ]
    cases = [
        [
            s.slug,
            s.name,
            s.cell.basis,
            s.cell.device,
            _anchor(s),
            _band(s),
        ]
        for s in every
    ]
    data = {
        "before": number[pair["before"].id],
        "after": number[pair["after"].id],
        "runs": runs,
        "cases": cases,
        "times": times,
    }
    return "tigonCompare(" + json.dumps(data, separators=(",", ":")) + ");\n"
