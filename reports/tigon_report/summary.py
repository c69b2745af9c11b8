# SPDX-License-Identifier: Apache-2.0
"""What summary.md shows: the report on one screen of a terminal or of a pull request."""
from . import failed, gates, next_action, peers, step_parts, tables

MOST_BYTES = 8000
REST = "\n- and more, in index.html\n"


def of(run, recorded):
    return {"own": section(run), "recorded": [section(other) for other in ([] if run.on_gpu else recorded.runs)],
            "gates": gates.in_short(recorded.gates)}


def section(run):
    speed = tables.speed(run).items() if run.on_gpu else ()
    return {"run": run, "verdict": tables.verdict(run), "failures": failed.of(run),
            "speed": [{"op": key[0], "pass": key[1], "row": row} for key, rows in speed if (row := tables.largest(rows))],
            "traffic": tables.traffic(run), "peers": peers.entries_of(run), "missing": peers.missing_of(run), "claims": run.of("claim"),
            "next_action": next_action.of(run), "convergence": convergence(run), "step_parts": step_parts.tables(run), "gates": gates.of(run)}


def convergence(run):
    return [{"config": config, "dtype": dtype, **entry} for (config, dtype), entry in tables.convergence(run).items()]


def short(text):
    """As many whole lines of `text` as fit."""
    if len(text.encode()) <= MOST_BYTES:
        return text
    kept, left = [], MOST_BYTES - len(REST)
    for line in text.splitlines(keepends=True):
        left -= len(line.encode())
        if left < 0:
            break
        kept.append(line)
    return "".join(kept) + REST
