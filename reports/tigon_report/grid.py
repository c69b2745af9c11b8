# SPDX-License-Identifier: Apache-2.0
"""The section of a report about a grid (tigon bench --grid): how even the speed is over widths and numbers of rows."""
import collections
import math

from . import peers, tables, units

LEAST_CELLS, LEAST_SIZES = 24, 6  # of a plane, of each of its axes; a sweep has fewer
SHOWN_BYTES = 32e6  # cells that move less are a matter of latency
OF_COPY, OF_PEER = "share of a copy of its bytes", "time of the fastest peer over ours"


def nearest_rank(values, part):
    """The value that `part` of the sorted values are below or at: the least for 0, the median for 0.5."""
    values = sorted(values)
    return values[max(0, math.ceil(part * len(values)) - 1)]


def _share(record):
    beside = record.get("share_of_yardstick")
    return beside if beside is not None else record.get("share_of_gemm" if record.get("bound") == "compute" else "share_of_copy")


def _timed(record):
    return record["verdict"] == "passed" and record.get("median_s") and record["executor"] == "cuda"


def _fastest_peers(run):
    """{(cell, basis): the least median of a peer}."""
    found = {}
    for record in run.of("bench"):
        if peers.is_peer(record["impl"]) and _timed(record):
            key = (tables.of_cell(record), record["basis"])
            found[key] = min(record["median_s"], found.get(key, record["median_s"]))
    return found


def _planes(run):
    """{(op, pass, dtype, basis): ours in it}, of those that have enough widths and numbers of rows."""
    planes = collections.OrderedDict()
    for record in run.of("bench"):
        if record["impl"] == tables.OURS and _timed(record) and _share(record) is not None:
            planes.setdefault((record["op"], record["pass"], record["dtype"], record["basis"]), []).append(record)
    return {key: records for key, records in planes.items() if len(records) >= LEAST_CELLS and all(
        len({size(record) for record in records}) >= LEAST_SIZES for size in (_rows, _width))}


def _rows(record):
    return record["axes"][units.axis_of_rows(record)]


def _width(record):
    """Elements of a row: the product of all other sizes."""
    return math.prod(size for axis, size in record["axes"].items() if axis != units.axis_of_rows(record))


def _row(measure, points):
    large = [value for record, value in points if (record.get("bytes_min_bytes") or 0) >= SHOWN_BYTES]
    if not large:
        return None
    worst, _ = min((point for point in points if (point[0].get("bytes_min_bytes") or 0) >= SHOWN_BYTES), key=lambda point: point[1])
    return {"measure": measure, "cells": len(large), "least": nearest_rank(large, 0), "low": nearest_rank(large, 0.05),
            "median": nearest_rank(large, 0.5), "where": worst["axes"]}


def figure(figures, key, maps):
    """Number of rows over width, a point per cell, coloured by each measure."""
    def drawing(panels, theme):
        for ax, (measure, points, (low, high)) in zip(panels if len(maps) > 1 else [panels], maps):
            drawn = ax.scatter([_width(record) for record, _ in points], [_rows(record) for record, _ in points],
                               c=[value for _, value in points], s=22, marker="s", vmin=low, vmax=high, cmap="viridis")
            ax.set_xscale("log", base=2)
            ax.set_yscale("log", base=2)
            ax.set_xlabel("elements of a row")
            ax.set_ylabel("rows")
            ax.set_title(measure, fontsize=9)
            ax.figure.colorbar(drawn, ax=ax)

    return figures.draw("grid-" + "-".join(key), f"{' '.join(key)}: {maps[0][0]} over widths and rows", drawing,
                        size=(6.4 * len(maps), 4.2), panels=len(maps))


def sections(run, figures):
    """One entry per pass that was measured over a plane: {pass, dtype, basis, figure, rows}."""
    fastest, found = _fastest_peers(run), []
    for key, records in _planes(run).items():
        shares = [(record, _share(record)) for record in records]
        beside = [(record, fastest[cell] / record["median_s"]) for record in records
                  if (cell := (tables.of_cell(record), record["basis"])) in fastest]
        maps = [(OF_COPY, shares, (0.5, 1.0))] + ([(OF_PEER, beside, (0.5, 2.0))] if beside else [])
        rows = [row for row in (_row(measure, points) for measure, points, _ in maps) if row]
        found.append({"pass": key[1], "dtype": key[2], "basis": key[3], "cells": len(records), "rows": rows,
                      "figure": figure(figures, key, maps)})
    return found
