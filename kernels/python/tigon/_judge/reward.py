# SPDX-License-Identifier: Apache-2.0
"""The verdict on a candidate as a number, for those who train what writes kernels."""
import os
import pathlib
import tempfile

from .verdict import Settings, judge


def reward(candidate: str | os.PathLike[str], problem: str | os.PathLike[str], *, backward: bool = False, dtype: str = "", device: str = "cpu",
           seconds: float = 60.0) -> float:
    """1.0 for a candidate that is right in all that was compared, 0.0 for one that is wrong or too slow to be judged.

    That is all it will ever say: there are no parts of it for candidates that compile, run or are nearly right, and none for
    speed. JUDGE.md says what a candidate is judged by, and what is not caught.

    Arguments:
        candidate: the path of its file, or its source as text of more than one line.
        problem: the same of the reference.
        backward, dtype, device, seconds: as `python -m tigon.judge` has them.

    Errors:
        ValueError: the problem is none. RuntimeError: something that the candidate imports is not installed, or the
        reference cannot be judged by.
    """
    with tempfile.TemporaryDirectory(prefix="tigon-") as folder:
        place = pathlib.Path(folder)
        verdict = judge(_file(candidate, place / "candidate.py"), _file(problem, place / "problem.py"), Settings(backward, dtype, device, None, seconds))
    if verdict.verdict == "bad problem":
        raise ValueError(verdict.reason)
    if verdict.verdict == "not judged":
        raise RuntimeError(verdict.reason)
    return 1.0 if verdict.verdict == "right" else 0.0


def _file(given: str | os.PathLike[str], place: pathlib.Path) -> pathlib.Path:
    """A path as it is; source is written."""
    if isinstance(given, str) and "\n" in given:
        place.write_text(given, encoding="utf-8")
        return place
    return pathlib.Path(given)
