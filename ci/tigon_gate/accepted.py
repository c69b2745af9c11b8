# SPDX-License-Identifier: Apache-2.0
"""Rises of static numbers that commits take knowingly, said in a trailer of the commit's message:

    Static-accept: rope sectors 8% two heads a thread read the angles more often, which L1 serves; 10% faster

names op, number, the most it may rise and why. It counts while the gate compares across that commit, so nothing is left
behind once it is merged. What is wrong with a kernel by itself is never accepted.
"""
import dataclasses
import re

from tigon_report.errors import UsageError
from tigon_trees import build

from . import static_compare

TRAILER = "Static-accept"
VALUE = re.compile(r"(\w+)\s+(\w+)\s+([0-9.]+)%\s+(\S.*)")


@dataclasses.dataclass(frozen=True)
class Accepted:
    """One trailer: `number` of the kernels and cases of `op` may rise by the part `rise` of the base's."""

    commit: str
    op: str
    number: str
    rise: float
    reason: str

    def holds(self, op, change):
        return (self.op, self.number) == (op, change.number) and bool(change.base) and \
            change.head <= change.base * (1 + self.rise)


def between(root, base):
    """What the commits from `base` to HEAD accept. Raises UsageError for a trailer that cannot be read."""
    found = []
    for commit, values in build.trailers(root, base, TRAILER):
        for value in values:
            match = VALUE.fullmatch(value)
            if not match or match[2] not in static_compare.BLOCKING:
                raise UsageError(f"commit {commit}: '{TRAILER}: {value}' is not 'OP NUMBER PERCENT% WHY', NUMBER of "
                                 f"{', '.join(sorted(static_compare.BLOCKING))}")
            found.append(Accepted(commit, match[1], match[2], float(match[3]) / 100, match[4]))
    return found


def marked(op, changes, accepted):
    """The changes of a kernel or case of `op`, those that would block and are accepted marked so."""
    return [_marked(op, change, accepted) if change.effect == "blocks" else change for change in changes]


def _marked(op, change, accepted):
    for one in accepted:
        if one.holds(op, change):
            return dataclasses.replace(change, effect="accepted",
                                       cause=f"{change.cause}; {one.commit} accepts up to {100 * one.rise:.3g}%: {one.reason}")
    return change
