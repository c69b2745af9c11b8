# SPDX-License-Identifier: Apache-2.0
"""A file with a verdict a line, which a batch goes on with after it was ended. Needs no torch."""
import fcntl
import json
import os
import pathlib
from types import TracebackType
from typing import Any

from .entry import BadBatch

_BEGIN = b'{"record": "verdict"'


class Results:
    """What a file has so far, by key, and what is added to it, a line a write. `file` None: nothing is kept."""

    def __init__(self, file: pathlib.Path | None):
        """BadBatch: the file has something else, or another batch writes it. OSError: it cannot be written."""
        self.had: dict[str, dict[str, Any]] = {}
        self._out: int | None = None
        if file is not None:
            self._out = os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                self._go_on(file, self._out)
            except BaseException:
                os.close(self._out)
                raise

    def _go_on(self, file: pathlib.Path, out: int) -> None:
        if not file.is_file():
            return
        try:
            fcntl.flock(out, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BadBatch(f"{file} is written by another batch; name another file") from None
        text = file.read_bytes()
        whole, newline, torn = text.rpartition(b"\n")
        if not _BEGIN.startswith(torn[:len(_BEGIN)]):
            raise BadBatch(f"{file} ends with what is no verdict; name another file")
        for number, line in enumerate(whole.split(b"\n") if newline else [], 1):
            self.had.setdefault(*_verdict(line, f"{file}, line {number}"))
        os.ftruncate(out, len(text) - len(torn))  # the line that was not finished is judged again
        os.lseek(out, 0, os.SEEK_END)

    def __enter__(self) -> "Results":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._out is not None:
            os.close(self._out)

    def add(self, record: dict[str, Any]) -> None:
        """Writes a verdict. OSError: it cannot be written."""
        if self._out is not None:
            line = memoryview(json.dumps(record).encode() + b"\n")
            while line:
                line = line[os.write(self._out, line):]


def _verdict(line: bytes, where: str) -> tuple[str, dict[str, Any]]:
    try:
        record = json.loads(line)
        if record["record"] == "verdict":
            return str(record["key"]), record
    except (ValueError, KeyError, TypeError):
        pass
    raise BadBatch(f"{where}: this is no verdict of a batch; take it out, or name another file")
