# SPDX-License-Identifier: Apache-2.0
"""What a candidate hands in: files, and which function of which file is judged."""
import pathlib
from typing import NamedTuple


class Submission(NamedTuple):
    """files: text by path, relative to a folder of their own; entry: the file that is loaded; names: of what is judged in it, the first that is
    there; outputs: names of the results, where a dict of them may be returned; is_destination: results are written into tensors that
    come after the inputs; has_keywords: the last input is a dict of keyword arguments."""
    files: dict[str, bytes]
    entry: str
    names: list[str]
    outputs: tuple[str, ...] = ()
    is_destination: bool = False
    has_keywords: bool = False


def of_file(file: pathlib.Path, names: list[str]) -> Submission:
    """A Python file. OSError: it cannot be read."""
    return Submission({"candidate.py": file.read_bytes()}, "candidate.py", names)
