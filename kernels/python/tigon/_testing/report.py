# SPDX-License-Identifier: Apache-2.0
"""What came of judging."""
import dataclasses

SKIPS = ("unsupported", "skipped", "not_run")


@dataclasses.dataclass(frozen=True)
class Case:
    """One comparison: its name repeats it. `verdict` is "passed", one of SKIPS, or says what is wrong; `reason` tells more."""
    name: str
    verdict: str
    reason: str

    @property
    def is_failure(self) -> bool:
        """Whether it is wrong."""
        return self.verdict != "passed" and self.verdict not in SKIPS


@dataclasses.dataclass(frozen=True)
class Report:
    """What was compared, and what was found; print() shows `text`."""
    text: str
    cases: tuple[Case, ...]

    @property
    def passed(self) -> int:
        """How many cases are right."""
        return sum(case.verdict == "passed" for case in self.cases)

    @property
    def skipped(self) -> int:
        """How many cases need what there is not."""
        return sum(case.verdict in SKIPS for case in self.cases)

    @property
    def failed(self) -> int:
        """How many cases are wrong."""
        return sum(case.is_failure for case in self.cases)

    def __str__(self) -> str:
        return self.text


class Wrong(AssertionError):
    """Something is wrong; the message says what and where, `report` has all of it."""

    def __init__(self, report: Report):
        super().__init__(str(report))
        self.report = report
