# SPDX-License-Identifier: Apache-2.0
"""The chart of the landing: the time of each peer over that of our kernel, the largest cell of each pass."""
from . import cited_chart
from . import figures as draw
from .cited_tables import NAMES, beside_peers


def of(run, recorded, figures):
    """{figure, narrow: the same for a phone, is_own, places}: of the run, or of what was recorded; None where no peer was timed on a GPU."""
    for runs, is_own in (([run], True), (recorded.measured, False)):
        cells = _largest(_newest(runs))
        if cells:
            rows = cited_chart.rows_of(cells, _in_order)
            cited = {other.header["run_id"]: other for cell in cells for other in cell["runs"].values()}
            return {"figure": cited_chart.figure(figures, "headline", rows),
                    "narrow": cited_chart.narrow_figure(figures, "headline-narrow", rows), "is_own": is_own,
                    "places": _places([cited[name] for name in sorted(cited)])}
    return None


def _places(runs):
    """Where and when runs measured, each device and day with its commits."""
    commits = {}
    for run in runs:
        commits.setdefault(f"{run.device}, {run.date}", {})[run.commit[:7]] = None
    return [f"{place}, commit {', '.join(found)}" for place, found in commits.items()]


def _newest(runs):
    """Cells beside peers; a peer that several runs timed in a cell counts as in the newest, over ours in that run."""
    merged = {}
    for cell in beside_peers(sorted(runs, key=lambda run: run.header["run_id"])):
        entry = merged.setdefault((cell["ours"]["cell"], cell["ours"]["basis"]), {"peers": {}, "runs": {}})
        entry["ours"] = cell["ours"]
        entry["peers"] |= cell["peers"]
        entry["runs"] |= dict.fromkeys(cell["peers"], cell["run"])
    return list(merged.values())


def _largest(cells):
    preferred = {id(row) for row in draw.preferred([cell["ours"] for cell in cells])}
    largest = {}
    for cell in cells:
        ours = cell["ours"]
        key, size = (ours["op"], ours["pass"]), (ours.get("bytes_min_bytes") or 0, ours.get("flop") or 0)
        if id(ours) in preferred and size > largest.get(key, ((-1, -1),))[0]:
            largest[key] = (size, cell)
    return [cell for _, cell in largest.values()]


def _in_order(cell):
    order = list(NAMES)
    return [cell["peers"][name] for name in sorted(cell["peers"], key=lambda name: (order.index(name) if name in order else len(order), name))]
