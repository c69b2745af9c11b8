# SPDX-License-Identifier: Apache-2.0
"""Workloads of FlashInfer-Bench: files with one a line, alone or in a Trace. Needs no torch."""
import json
import pathlib
from typing import Any

from .failures import BadProblem


def workloads(file: pathlib.Path) -> dict[str, dict[str, Any]]:
    """Those of a file by their uuid. BadProblem: it has none."""
    try:
        lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
        found = {str(one["uuid"]): {**one, "axes": dict(one["axes"])} for one in (line.get("workload", line) for line in lines)}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadProblem(f"{file}: {getattr(error, 'strerror', None) or 'a line is no Workload of FlashInfer-Bench'}") from None
    if not found:
        raise BadProblem(f"{file} has no workload")
    return found


def workload(place: str) -> tuple[dict[str, Any], pathlib.Path]:
    """FILE#UUID as the workload and the folder of its file. BadProblem: there is none."""
    name, _, uuid = place.rpartition("#")
    found = workloads(pathlib.Path(name))
    if uuid not in found:
        raise BadProblem(f"{name} has no workload {uuid}")
    return found[uuid], pathlib.Path(name).parent
