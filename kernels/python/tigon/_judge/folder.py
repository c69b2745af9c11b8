# SPDX-License-Identifier: Apache-2.0
"""A folder of candidates for a folder of problems, as KernelBench lays both out. Needs no torch."""
import pathlib
import re
from typing import Any

from .entry import BadBatch, Entry

# What KernelBench calls the files that it generates; its problems are level1/1_Square_matrix_multiplication_.py.
_GENERATED = re.compile(r"level_(\d+)_problem_(\d+)_sample_\d+_kernel\.py")


def entries_of(candidates: pathlib.Path, problems: pathlib.Path, options: dict[str, Any]) -> list[Entry]:
    """Each Python file of `candidates` with its problem. BadBatch: one of them is no folder, or a candidate has no problem or several."""
    for folder in (candidates, problems):
        if not folder.is_dir():
            raise BadBatch(f"{folder} is no folder")
    return [Entry(str(file), str(_problem_of(file.relative_to(candidates), problems)), options) for file in sorted(candidates.rglob("*.py"))]


def _problem_of(candidate: pathlib.Path, problems: pathlib.Path) -> pathlib.Path:
    if (problems / candidate).is_file():
        return problems / candidate
    if generated := _GENERATED.fullmatch(candidate.name):
        found = sorted(problems.glob(f"level{generated[1]}/{generated[2]}_*.py"))
    else:
        found = sorted(problems.rglob(candidate.name))
    if len(found) != 1:
        what = f"{len(found)} problems" if found else "no problem"
        raise BadBatch(f"{candidate} has {what} in {problems}: name it as its problem, or as level_1_problem_1_sample_0_kernel.py")
    return found[0]
