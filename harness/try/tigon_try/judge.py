# SPDX-License-Identifier: Apache-2.0
"""Runs Tigon over a library and reads its records."""
import collections
import dataclasses
import json
import math
import pathlib
import re
import signal
import subprocess
import tempfile

from tigon_report.errors import InfrastructureError


class Refused(Exception):
    """Tigon does not take the library: one line."""


@dataclasses.dataclass
class Outcome:
    """What one call of Tigon recorded."""

    run_id: str = ""
    run: dict = dataclasses.field(default_factory=dict)
    records: list = dataclasses.field(default_factory=list)
    said: str = ""
    stopped: bool = False  # before its end, see tigon()
    left_out: list = dataclasses.field(default_factory=list)  # sizes of which only some cases ran, see limits.run_check()

    def diagnoses(self):
        """{case id: lines} of the failures that `tigon check` looked at again."""
        blocks = [(case, text.splitlines()) for case, text in re.findall(r"^FAIL (\S+): (.*(?:\n  .*)+)", self.said, re.M)]
        return {case: lines for case, lines in blocks if len(lines) > 2}  # the others: reason and repro

    def patterns(self):
        """'forward: H is no multiple of 4 (...)' for each pass of which `tigon check` says what fails."""
        found = re.findall(r"^\w+ (\w+) plugin:.*(?:\n  \d+ more fail alike.*)*\n  what fails: (.*)", self.said, re.M)
        return [f"{one_pass}: {what}" for one_pass, what in found]

    def of(self, kind):
        return [r for r in self.records if r["record"] == kind]


def _run(words, records, most_slow):
    """(exit code, stdout, stderr, was it stopped?)"""
    stopped = False
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err, \
            subprocess.Popen(words, stdout=out, stderr=err, stdin=subprocess.DEVNULL, text=True) as process:
        try:
            while process.poll() is None:
                try:
                    process.wait(0.2 if most_slow else None)
                except subprocess.TimeoutExpired:
                    slow = records.read_text().count(f'"verdict":"{TOO_SLOW}"') if records.exists() else 0
                    if slow >= (most_slow or math.inf) and not stopped:
                        stopped = True
                        process.send_signal(signal.SIGINT)
        except BaseException:
            process.kill()
            raise
        said = []
        for file in (out, err):
            file.seek(0)
            said.append(file.read())
        return process.returncode, *said, stopped


def tigon(build, words, records, most_slow=None):
    """The records of `tigon WORDS`; they go to the file `records`. It is stopped when `most_slow` cases were killed for their time."""
    records = pathlib.Path(records)
    records.unlink(missing_ok=True)
    code, out, err, stopped = _run([build.program, *words, "--json", str(records)], records, most_slow)
    lines = [json.loads(line) for line in records.read_text().splitlines()] if records.exists() else []
    last = (err.strip() or out.strip() or "it said nothing").splitlines()[-1]
    if code == 2:
        raise Refused(last)
    if not lines or lines[-1]["record"] != "end":
        raise InfrastructureError(f"tigon {words[0]}: {last}")
    if code == 130 and not stopped:
        raise KeyboardInterrupt
    run = next(r for r in lines if r["record"] == "run")
    return Outcome(run["run_id"], run, lines, out, stopped and code == 130)


@dataclasses.dataclass
class Tally:
    """Verdicts of check records."""

    passed: int = 0
    failed: list = dataclasses.field(default_factory=list)
    slow: list = dataclasses.field(default_factory=list)  # killed for their time, which says nothing about their results
    skipped: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    worst: float = 0.0
    worst_output: str = ""

    @property
    def ok(self):
        return self.passed > 0 and not self.failed and not self.slow

    def text(self):
        skipped = sum(self.skipped.values())
        line = f"{self.passed} passed, {len(self.failed)} failed" + (f", {skipped} skipped" if skipped else "")
        line += f", {len(self.slow)} too slow" if self.slow else ""
        if self.worst_output and not self.failed:
            line += f"; worst error {self.worst:.2f} of the budget ({self.worst_output})"
        return line


TOO_SLOW = "timeout"
SKIPS = ("unsupported", "skipped", "not_run")


def tally(records):
    found = Tally()
    for r in records:
        if r["verdict"] == "passed":
            found.passed += 1
        elif r["verdict"] in SKIPS:
            found.skipped[r["reason"]] += 1
        elif r["verdict"] == TOO_SLOW:
            found.slow.append(r)
        else:
            found.failed.append(r)
        for output in r["outputs"]:
            error = output["error_over_budget"]
            if isinstance(error, (int, float)) and error > found.worst:
                found.worst, found.worst_output = error, output["name"]
    return found


def is_property(record):
    return ",prop=" in record["case_id"]
