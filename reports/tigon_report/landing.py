# SPDX-License-Identifier: Apache-2.0
"""The report's first page: the verdict, the chart beside peers, targets, what failed, and a line for each op."""
from . import addresses, failed, headline, load, tables
from . import figures as draw
from .recorded import by_file

MOST = 3  # failures; the pages have the others


def page(run, recorded, targets, ops, folder):
    failures, lines = failed.of(run), [_line(name, run, recorded) for name in ops]
    return {"headline": headline.of(run, recorded, draw.Figures(folder)), "failures": failures, "most": MOST,
            "verdict": tables.verdict(run), "counts": tables.totals(run),
            "missed": [row for row in targets if not row["reached"]], "targets": targets,
            "planted": tables.mutants(run), "recorded_planted": _recorded_faults(recorded), "ops": lines,
            "timed": _timed(lines),
            "has_traffic": any(line["traffic"] is not None for line in lines)}


def _timed(lines):
    """Who timed the kernels of the table: 'this run', or where and when it was recorded."""
    found = {"timed by this run" if line["is_own"] else f"recorded {line['timed_by'].date} on {line['timed_by'].device}" for line in lines if line["timed_by"]}
    return ", ".join(sorted(found, reverse=True)) or "timed on a GPU"


def _recorded_faults(recorded):
    """{run, caught, planted} of the recorded runs that planted the most."""
    scores = [{"run": runs[0], **tables.mutants(load.joined(runs))} for runs in by_file(recorded.judged)]
    return max((score for score in scores if score["planted"]), key=lambda score: score["planted"], default=None)


def _line(name, run, recorded):
    own = run.only(name)
    rows = tables.correctness(own)
    worst = [row["worst"] for row in rows if row["worst"] is not None and not row["impl"].startswith(("naive", "cudnn"))]
    traffic = [row["traffic_ratio"] for row in tables.traffic(own) if row["traffic_ratio"] is not None]
    return {"op": name, "file": addresses.of_op(name), "checks": tables.verdict_counts(own), "is_checked": bool(rows), "worst": max(worst, default=None),
            "planted": tables.mutants(own), "traffic": max(traffic, default=None), **_fastest(name, run, recorded)}


def _fastest(name, run, recorded):
    """The largest cell of the op and the run that timed it: this one, or the newest that was recorded."""
    for source in (run, *recorded.measured):
        rows = [row for rows in tables.speed(source.only(name)).values() for row in rows] if source.on_gpu else []
        row = tables.largest([row for row in rows if row["impl"] == tables.OURS])
        if row:
            return {"row": row, "timed_by": source, "is_own": source is run}
    return {"row": None, "timed_by": None, "is_own": False}
