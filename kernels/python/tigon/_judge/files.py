# SPDX-License-Identifier: Apache-2.0
"""Files of verdicts for others. Needs no torch."""
import os
import pathlib
import re

_CONTROL = re.compile("[^\t\n\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # what neither XML 1.0 nor HTML has


def printable(text: str) -> str:
    """A text without characters that a page cannot have."""
    return _CONTROL.sub("", text)


def try_to_write(file: pathlib.Path) -> None:
    """Leaves it as it is. OSError: it cannot be written."""
    if file.exists() and not file.is_file():
        return  # a pipe has a reader when it is written
    was_there = file.exists()
    open(file, "a", encoding="utf-8").close()
    if not was_there:
        file.unlink()


def write_whole(file: pathlib.Path, text: str) -> None:
    """Writes the file whole or not at all. OSError: it cannot be written."""
    if file.exists() and not file.is_file():
        file.write_text(text, encoding="utf-8")
        return
    unfinished = file.with_name(file.name + ".part")
    unfinished.write_text(text, encoding="utf-8")
    os.replace(unfinished, file)
