# SPDX-License-Identifier: Apache-2.0
"""What the commands of a first use take, from the text records in reports/recorded/first_use.

A record has lines 'NAME: VALUE' (machine, date, commit, state), which hold until the next of that name, and for each command
a line '$ COMMAND' with what `time` printed below it: real, user and sys, or cpu as their sum; 'disk N bytes' is of what it left.
"""
import collections
import re
from typing import NamedTuple

from . import units
from .errors import DataError

STATES = ("first", "again")
NOT_NOTED = "not noted"  # a commit
NAMES = ("machine", "date", "commit", "state")
GIVEN = re.compile(rf"({'|'.join(NAMES)}): (.+)")
TIME = re.compile(r"(real|user|sys|cpu)\s+(\d+)m(\d+(?:\.\d+)?)s")
DISK = re.compile(r"disk\s+(\d+) bytes")


class Measured(NamedTuple):
    """A command that was timed once."""

    machine: str
    date: str
    commit: str
    state: str
    command: str
    seconds: dict
    disk_bytes: int | None

    @property
    def cpu_s(self):
        return sum(self.seconds.get(name, 0) for name in ("user", "sys", "cpu")) or None


def read(path):
    """The commands that the text record at `path` timed. DataError: no such file; ValueError: it is no such record."""
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    given, found = {}, []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if match := GIVEN.fullmatch(line):
            given[match[1]] = match[2]
        elif line.startswith("$ "):
            if set(given) != set(NAMES) or given["state"] not in STATES:
                raise ValueError(f"{path.name}:{number}: before a command stand {', '.join(NAMES)}; a state is {' or '.join(STATES)}")
            found.append(Measured(*(given[name] for name in NAMES), line[2:], {}, None))
        elif found and (match := TIME.fullmatch(line)):
            found[-1].seconds[match[1]] = 60 * int(match[2]) + float(match[3])
        elif found and (match := DISK.fullmatch(line)):
            found[-1] = found[-1]._replace(disk_bytes=int(match[1]))
    if not found or not all("real" in one.seconds for one in found):
        raise ValueError(f"{path.name} times no command, or one without 'real'")
    return found


def duration(seconds):
    """'40 s' or '16 min': as exact as a first use repeats itself."""
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def table(measured):
    """[head, rows] of a table: for each machine and command what it takes at first and again."""
    groups = collections.defaultdict(list)
    for one in measured:
        groups[one.machine, one.command].append(one)
    rows = []
    for (machine, command), ones in groups.items():
        cpu = [one.cpu_s for one in ones if one.state == "first" and one.cpu_s]
        disk = [one.disk_bytes for one in ones if one.disk_bytes is not None]
        rows.append([machine, f"`{command}`", *(_range([one.seconds["real"] for one in ones if one.state == state]) for state in STATES),
                     _range(cpu), units.binary_bytes(max(disk)) if disk else "–"])
    heads = ["on", "command", "first time:", "again:", "processor time, first:", "disk:"]
    kept = [at for at in range(len(heads)) if any(row[at] != "–" for row in rows)]
    return [heads[at] for at in kept], [[row[at] for at in kept] for row in rows]


def _range(seconds):
    """'8 min'; of several measurements the least and the most."""
    texts = list(dict.fromkeys(duration(value) for value in sorted(seconds)))
    return "–" if not texts else texts[0] if len(texts) == 1 else f"{texts[0]} to {texts[-1]}"
