# SPDX-License-Identifier: Apache-2.0
"""Margins of cells from the records of earlier A/A runs."""
import dataclasses
import pathlib

from tigon_report import records

from . import aa


@dataclasses.dataclass(frozen=True)
class Margin:
    change: float  # relative
    source: str  # where it comes from, for people


def load(paths):
    """A/A cell records below these files and folders. A file that is damaged is a DataError."""
    found = []
    for path in map(pathlib.Path, paths):
        files = sorted(path.rglob("*.jsonl")) if path.is_dir() else [path] if path.is_file() else []
        for file in files:
            with open(file, encoding="utf-8", errors="replace") as lines:
                if not any('"aa"' in line[:40] for line in lines):
                    continue
            found += [line.record for line in records.read_file(file)
                      if line.record["record"] == "aa" and line.record["scope"] == "cell"]
    return found


def margins(history, device, cells, rule, own=None):
    """A Margin for each cell from its A/A records of this GPU, else of its model, else from the run's own pairs.

    `own` maps a case id to this run's log ratios. Their spread about their shift is that of identical programs, so it
    stands in for a history: it lacks only what differs from one day to the next.
    """
    result = []
    for cell in cells:
        of_cell = [r for r in history if r["case_id"] == cell and r.get("device_name") == device.get("name")]
        same = [r for r in of_cell if r.get("device_uuid") == device.get("uuid")]
        used, where = (same, "this GPU") if same else (of_cell, "this model")
        if used:
            widest = max(aa.margin(r["log_ratios"], rule) for r in used[-5:])
            pairs = sum(len(r["log_ratios"]) for r in used[-5:])
            result.append(Margin(widest, f"A/A of {where}, {pairs} pairs, last {used[-1]['time'][:10]}"))
        elif own is not None:
            result.append(Margin(aa.margin(own[cell], rule), "no A/A history; spread of this run's pairs"))
        else:
            result.append(Margin(rule.least_margin, "no A/A history; least margin"))
    return result
