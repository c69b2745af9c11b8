# SPDX-License-Identifier: Apache-2.0
"""Verdicts as Traces of FlashInfer-Bench, a line of JSON each. Needs no torch, but its version."""
import datetime
import importlib.metadata
import json
import pathlib
import platform
import re
from collections.abc import Sequence
from typing import Any

from .entry import Entry
from .workload import workload

_UNTIMED = {"latency_ms": 0.0, "reference_latency_ms": 0.0, "speedup_factor": 0.0}  # the format asks for them where a Solution passed


def status(record: dict[str, Any]) -> str | None:
    """EvaluationStatus of a verdict; None where nothing was evaluated."""
    if record["verdict"] in ("bad problem", "not judged"):
        return None
    if record["verdict"] in ("right", "too slow"):
        return {"right": "PASSED", "too slow": "TIMEOUT"}[record["verdict"]]
    wrong = next((case for case in record["cases"] if case["verdict"] not in ("passed", "skipped")), None)
    if wrong is None:
        return "RUNTIME_ERROR" if record["seed"] is not None else "COMPILE_ERROR"  # a seed is drawn when it is loaded
    misfit = re.match("its (shape|dtype) is", wrong["reason"])
    return f"INCORRECT_{misfit[1].upper()}" if misfit else "INCORRECT_NUMERICAL"


def _name(file: pathlib.Path) -> str | None:
    """What a Solution or a Definition is called, if it is one."""
    try:
        return str(json.loads(file.read_text(encoding="utf-8"))["name"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def trace(entry: Entry, record: dict[str, Any]) -> dict[str, Any] | None:
    """The Trace of a verdict; None where nothing was evaluated."""
    found = status(record)
    solution, definition = (_name(file) for file in entry.files())
    if not (found and solution and definition):
        return None
    evaluation: dict[str, Any] = {
        "status": found, "log": f"tigon judge: {record['verdict']}: {record['reason']}; nothing was timed", "correctness": None, "performance": None,
        "environment": {"hardware": f"{entry.options['device']} of {platform.machine()}", "libs": {"torch": importlib.metadata.version("torch")}},
        "timestamp": datetime.datetime.now(datetime.UTC).isoformat()}
    if found in ("PASSED", "INCORRECT_NUMERICAL"):
        errors = {name: record["errors"][name] for name in ("max_relative_error", "max_absolute_error")}
        evaluation["correctness"] = {name: "NaN" if error is None else error for name, error in errors.items()}
    if found == "PASSED":
        evaluation["performance"] = _UNTIMED
    return {"definition": definition, "workload": workload(str(entry.folder / entry.options["workload"]))[0], "solution": solution, "evaluation": evaluation}


def write_traces(file: pathlib.Path, judged: Sequence[tuple[Entry, dict[str, Any]]]) -> None:
    """Writes those of verdicts by workloads. OSError: it cannot be written."""
    traces = [trace(entry, record) for entry, record in judged if entry.options["workload"]]
    file.write_text("".join(json.dumps(line) + "\n" for line in traces if line), encoding="utf-8")
