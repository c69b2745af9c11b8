# SPDX-License-Identifier: Apache-2.0
"""The report's page of one op: is it right, how fast, beside what, how much memory, what it moves, are its faults caught."""
import collections
import dataclasses

from . import failed, grid, peers, tables
from . import figures as draw
from .load import Run

KINDS = ("check", "bench", "memory", "trace", "mutant")  # what a page shows of an op


@dataclasses.dataclass
class Source:
    """What one run has of the op, and where its figures go."""

    run: Run
    is_own: bool
    figures: draw.Figures


def names(run, recorded):
    """The ops that have a page: those of the run, then those that were recorded."""
    return list(dict.fromkeys(record["op"] for source in (run, *recorded.measured) for kind in KINDS
                              for record in source.of(kind) if record.get("op")))


def page(op, run, recorded, targets, folder, host_times):
    own = Source(run.only(op), True, draw.Figures(folder))
    others = [Source(other.only(op), False, draw.Figures(folder, f"recorded{index}-")) for index, other in enumerate(recorded.measured)]
    judged = [Source(other.only(op), False, None) for other in recorded.judged]
    timed = _chosen("bench", own, others)
    if not run.on_gpu and not host_times:
        timed = [source for source in timed if not source.is_own]
    return {
        "op": op, "targets": [row for row in targets if row["case"].split()[0] == op], "host_times": host_times,
        "failures": failed.judged(own.run),
        "checks": [{"source": source, "rows": tables.correctness(source.run)} for source in _own_first(_chosen("check", own, others))],
        "headroom": own.run.of("headroom"),
        "peers": [_peers(source) for source in _beside(own, others)],
        "grid": _grid(timed), "roofline": _roofline(timed), "speed": _speed(timed), "memory": _memory(_chosen("memory", own, others)),
        "traffic": tables.traffic(own.run),
        "coverage": [record for record in run.of("coverage") if record["file"].startswith(f"kernels/{op}/")],
        "mutants": [{"source": source, "mutants": tables.mutants(source.run)} for source in _own_first(_chosen("mutant", own, judged))],
    }


def _chosen(kind, own, others):
    """The sources of a kind: the run alone where it ran on a GPU, else what was recorded, newest first, and behind it the run."""
    return _those(lambda source: source.run.of(kind), own, others)


def _beside(own, others):
    """The same of measurements beside peers."""
    return _those(lambda source: peers.cells_of(source.run), own, others)


def _those(have, own, others):
    mine = [own] if have(own) else []
    return mine if mine and own.run.on_gpu else [source for source in others if have(source)] + mine


def _own_first(sources):
    return sorted(sources, key=lambda source: not source.is_own)


def _peers(source):
    (entry,) = peers.entries_of(source.run)
    return {"source": source, **entry, "ceilings": tables.ceilings(source.run), "missing": peers.missing_of(source.run),
            "figure": peers.figure(source.figures, entry["op"], entry["rows"])}


def _grid(sources):
    found = [{"source": source, "parts": grid.sections(source.run, source.figures)} for source in sources]
    return [entry for entry in found if entry["parts"]]


def _roofline(sources):
    """The one of the source that timed the most."""
    source = max(sources, key=lambda source: len(source.run.of("bench")), default=None)
    return source and {"source": source, "figure": draw.roofline_figure(source.figures, source.run)}


def _speed(sources):
    """Per source its passes; cells that peers ran in, and the ceilings of their run, stand beside these."""
    tables_of = [tables.speed(source.run) for source in sources]
    figures = _figures(sources, tables_of, lambda source, key, rows, axis: draw.speed_figure(source.figures, *key, rows, axis, source.run.on_gpu))
    shown = []
    for index, (source, table) in enumerate(zip(sources, tables_of)):
        beside = peers.cells_of(source.run)
        passes = [{"pass": key[1], "figures": figures[index, key], "rows": [row for row in rows if tables.of_cell(row) not in beside]}
                  for key, rows in table.items()]
        passes = [part for part in passes if part["rows"] or part["figures"]]
        if passes:
            shown.append({"source": source, "ceilings": [] if beside else tables.ceilings(source.run), "passes": passes})
    return shown


def _memory(sources):
    tables_of = [tables.memory(source.run) for source in sources]
    figures = _figures(sources, tables_of, lambda source, key, rows, axis: draw.memory_figure(source.figures, *key, rows, axis))
    return [{"source": source, "passes": [{"pass": key[1], "figures": figures[index, key], "rows": rows} for key, rows in table.items()]}
            for index, (source, table) in enumerate(zip(sources, tables_of))]


def _figures(sources, tables_of, draw_one):
    """{(index of a source, pass): figures}. A pass over an axis is drawn once: of the source with the most implementations
    in it, of these the newest."""
    best = {}
    for index, table in enumerate(tables_of):
        for key, rows in table.items():
            rows = draw.preferred(rows)
            for axis in draw.sweep_axes(rows)[:2]:
                impls = len({line[1] for line, _ in draw.series(rows, axis)})
                if impls > best.get((key, axis), (0,))[0]:
                    best[key, axis] = (impls, index)
    found = collections.defaultdict(list)
    for (key, axis), (_, index) in best.items():
        figure = draw_one(sources[index], key, tables_of[index][key], axis)
        if figure:
            found[index, key].append(figure)
    return found
