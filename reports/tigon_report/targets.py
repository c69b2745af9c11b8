# SPDX-License-Identifier: Apache-2.0
"""What the kernels were set out to reach (targets.json), beside the newest measurement of every case."""
import json
import pathlib

from . import units

FILE = pathlib.Path(__file__).with_name("targets.json")


def of(runs, own=None):
    """Rows of the table: one for each target and kernel that one of `runs` measured in bf16 on a GPU, fused.

    A row has the share of the worst and the best case, and `why` where the worst is below what was set out; `beside` is
    the least share of a copy of as many bytes, or of the products alone, timed in turns with the kernel (None where a
    cell has none). A case that several runs measured counts as the newest did. Where a target allows so many bytes,
    the fastest case of a shape within these is the one that counts. Runs but `own` are named as recorded.
    """
    newest = {}
    for run in sorted((run for run in runs if run.on_gpu), key=lambda run: run.header["run_id"]):
        arena = {record["case_id"]: record["arena_bytes"] for record in run.of("memory")}
        for record in run.of("bench"):
            if record["impl"] == "fused" and record["dtype"] == "bf16":
                newest[record["case_id"], record["basis"]] = {**record, "where": _where(run, own), "arena": arena.get(record["case_id"])}
    return [row for target in json.loads(FILE.read_text(encoding="utf-8")) for case in target["cases"]
            if (row := _row(target, case, newest.values()))]


def _where(run, own):
    return "this run" if run is own else f"{run.device}, recorded {run.date}"


def _row(target, case, records):
    allowed = target.get("arena_bytes")
    cells = [record for record in records if f"{record['op']} {record['pass']}" == case and _is_meant(target, record)]
    if allowed:
        cells = _fastest_of_shapes(cells, target["share"], allowed)
    if not cells:
        return None
    cells.sort(key=lambda record: record[target["share"]])
    worst, best = cells[0], cells[-1]
    arena = max((cell["arena"] for cell in cells if cell["arena"] is not None), default=None) if allowed else None
    beside = [cell.get("share_of_yardstick") for cell in cells]
    reached = worst[target["share"]] >= target["at_least"] and (not allowed or arena is not None and arena <= allowed)
    return {"case": case, "what": target["what"], "of": target["of"], "basis": target["basis"], "at_least": target["at_least"],
            "cells": len(cells), "worst": worst[target["share"]], "worst_at": units.axes_text(worst["axes"]),
            "best": best[target["share"]], "best_at": units.axes_text(best["axes"]), "reached": reached,
            "beside": None if None in beside else min(beside), "arena": arena, "allowed": allowed,
            "why": "" if reached else target.get("why", {}).get(case, "cause not measured"),
            "where": worst["where"]}


def _fastest_of_shapes(cells, share, allowed):
    shapes = {}
    for cell in cells:
        shapes.setdefault(units.axes_text(cell["axes"]), []).append(cell)
    within = [[cell for cell in shape if cell["arena"] is not None and cell["arena"] <= allowed] or shape for shape in shapes.values()]
    return [max(shape, key=lambda cell: cell[share]) for shape in within]


def _is_meant(target, record):
    options = {name: value for name, value in record["options"].items() if name != "logits_bytes"}
    moved = target["cases"][f"{record['op']} {record['pass']}"]  # whole tensors
    axes = record["axes"]
    return (record["basis"] == target["basis"] and record.get(target["share"]) is not None
            and record["bytes_min_bytes"] >= moved * target["tensor_bytes"] and options in target.get("options", [{}])
            and all(low <= axes.get(axis, low - 1) <= high for axis, (low, high) in target.get("axes", {}).items())
            and all(axes[axis] % n == 0 for axis, n in target.get("multiple_of", {}).items())
            and all(axes[axis] % n for axis, n in target.get("not_multiple_of", {}).items()))
