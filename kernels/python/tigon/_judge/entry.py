# SPDX-License-Identifier: Apache-2.0
"""What is to be judged by what: a line of a batch, or the words of a command. Needs no torch."""
import dataclasses
import functools
import hashlib
import json
import pathlib
from typing import Any

from .failures import BadProblem
from .workload import workload, workloads

DTYPES = ("", "float32", "bfloat16", "float16")
OPTIONS: dict[str, tuple[type, ...]] = {"backward": (bool,), "dtype": (str,), "device": (str,), "seed": (int, type(None)), "timeout": (int, float),
                                         "workload": (str,)}
DEFAULTS: dict[str, Any] = {"backward": False, "dtype": "", "device": "cpu", "seed": None, "timeout": 60.0, "workload": ""}


EXIT = {"right": 0, "wrong": 1, "bad problem": 2, "not judged": 5, "too slow": 5}  # codes of verdicts


class BadBatch(ValueError):
    """A batch cannot be run as it stands: why, in one line."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """A candidate and a reference. `folder` is what their paths are relative to, `options` has the names of DEFAULTS."""
    candidate: str
    reference: str
    options: dict[str, Any]
    folder: pathlib.Path = pathlib.Path()

    def files(self) -> tuple[pathlib.Path, pathlib.Path]:
        """Candidate and reference as paths."""
        return self.folder / self.candidate, self.folder / self.reference

    @functools.cached_property
    def key(self) -> str:
        """What names its verdict: another content of a file, another name or another option is another key."""
        digest = hashlib.sha256(json.dumps([self.candidate, self.reference, self.options], sort_keys=True).encode())
        for file in self.files():
            digest.update(hashlib.sha256(file.read_bytes() if file.is_file() else b"").digest())
        if self.options["workload"]:
            digest.update(json.dumps(workload(str(self.folder / self.options["workload"]))[0], sort_keys=True).encode())
        return digest.hexdigest()[:16]

    def by_workload(self) -> list["Entry"]:
        """An entry for each workload of its file; itself where it names one, or none. BadProblem: the file has none."""
        place = self.options["workload"]
        if not place or "#" in place:
            return [self]
        return [dataclasses.replace(self, options={**self.options, "workload": f"{place}#{uuid}"}) for uuid in workloads(self.folder / place)]

    def record(self, verdict: dict[str, Any]) -> dict[str, Any]:
        """A verdict as a line of JSON has it (verdict.schema.json)."""
        return {**verdict, "candidate": self.candidate, "reference": self.reference, "options": self.options, "key": self.key}


def entries(file: pathlib.Path, options: dict[str, Any]) -> list[Entry]:
    """The lines of a batch, each once; `options` are those that a line does not have. BadBatch: the first line that is none."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadBatch(f"{file}: {getattr(error, 'strerror', None) or 'it is no text'}") from error
    found: dict[str, Entry] = {}
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                entry = _entry(json.loads(line), options, file.parent)
                for each in entry.by_workload():
                    found.setdefault(each.key, each)
            except (BadBatch, BadProblem, json.JSONDecodeError) as error:
                said = "it is no JSON" if isinstance(error, json.JSONDecodeError) else str(error)
                raise BadBatch(f"{file}, line {number}: {said}") from None
    return list(found.values())


def _entry(line: Any, options: dict[str, Any], folder: pathlib.Path) -> Entry:
    if not isinstance(line, dict):
        raise BadBatch("it is no JSON object")
    given = {**options, **line}
    for name in ("candidate", "reference"):
        if not isinstance(given.get(name), str):
            raise BadBatch(f'it has no "{name}"')
    candidate, reference = given.pop("candidate"), given.pop("reference")
    for name, value in given.items():
        if name not in OPTIONS:
            raise BadBatch(f'"{name}" is no option; it may have {", ".join(OPTIONS)}')
        if type(value) not in OPTIONS[name] or name == "dtype" and value not in DTYPES:
            raise BadBatch(f'"{name}" cannot be {json.dumps(value)}')
    return Entry(candidate, reference, given, folder)


def shard_of(text: str) -> tuple[int, int]:
    """I/N as two numbers. BadBatch: it is not."""
    index, slash, count = text.partition("/")
    if not (slash and index.isdecimal() and count.isdecimal() and int(index) < int(count)):
        raise BadBatch(f"--shard {text}: it takes I/N, the I-th of N parts, I from 0 on")
    return int(index), int(count)


def part(found: list[Entry], shard: tuple[int, int]) -> list[Entry]:
    """The entries of one of several parts, which together have each entry once."""
    return [entry for entry in found if int(entry.key, 16) % shard[1] == shard[0]]
