"""The comparison page: the two newest commits as a table for everybody, all runs as data for the script."""

import json
import math

from . import history, state

BAND_OF_TWO = math.sqrt(2)  # a ratio of two runs is noisier than one run by this factor


def _says(before, after, anchored, band):
    if not (before and after):
        return "missing after" if before else "missing before"
    return "within noise" if abs(anchored) <= band else "slower" if anchored > 0 else "faster"


def _row(series, before, after):
    times = [series.cell.points[run.id].median_s if run.id in series.cell.points else None for run in (before, after)]
    band = BAND_OF_TWO * float(series.half[-1])
    if None in times:
        return {
            "series": series,
            "before": times[0],
            "after": times[1],
            "change": None,
            "anchored": None,
            "band": band,
            "says": _says(*times, None, band),
        }
    rates = [history.anchor_seconds(run, series.cell.record) for run in (before, after)]
    change = times[1] / times[0] - 1
    anchored = (1 + change) * rates[0] / rates[1] - 1 if all(rates) else change
    return {
        "series": series,
        "before": times[0],
        "after": times[1],
        "change": change,
        "anchored": anchored,
        "band": band,
        "says": _says(*times, anchored, band),
    }


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
        for run_id, point in series.cell.points.items():
            times[number[run_id]][column] = float(f"{point.median_s:.5g}")
    runs = [
        {
            "id": run.id,
            "device": run.device,
            "ceilings": {name: float(f"{rate:.6g}") for name, rate in run.ceilings.items()},
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
            history.ANCHORS.get(s.cell.record.get("bound"), history.ANCHORS["memory"])[0].format(
                dtype=s.cell.record["dtype"]
            ),
            float(f"{BAND_OF_TWO * float(s.half[-1]):.4g}"),
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
