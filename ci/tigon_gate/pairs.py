# SPDX-License-Identifier: Apache-2.0
"""Process pairs: who runs when, and the runner that starts real programs."""
import math
import os
import pathlib
import signal
import subprocess
import tempfile
import time

import numpy

from tigon_report import records
from tigon_report.errors import DataError

SAMPLES = 25  # per cell and process: graph replays, each of many calls, whose median is taken
PROCESS_TIMEOUT_S = 300
PROBE = "rms_norm/forward/fused/bf16/T=1,H=8,inputs=normal,seed=42"  # what any build can time at once


class RunnerError(Exception):
    """A program that did not deliver; says which, what and why."""


class ProgramRunner:
    """Measures cells with `tigon bench` of two built programs, one process per call, on one GPU."""

    def __init__(self, programs, samples=SAMPLES, folder=None):
        self.programs = {side: pathlib.Path(path).resolve() for side, path in programs.items()}
        for side, path in self.programs.items():
            if not os.access(path, os.X_OK):
                raise RunnerError(f"{side}: {path} is no program")
        self.samples, self.folder = samples, folder
        self.headers = {}  # side -> run record of its first process

    def probe(self):
        """Fails early for what would fail late: no GPU, a host build, two GPUs, a program that is older than the gate."""
        for side in self.programs:
            try:
                self.measure(side, [PROBE])
            except RunnerError as error:
                old = " (a program that is older than this gate)" if "unknown option" in str(error) else ""
                raise RunnerError(f"{error}{old}") from error

    def measure(self, side, cells):
        """{case id: median seconds} of one process of `side`."""
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            file = pathlib.Path(folder) / "records.jsonl"
            words = [str(self.programs[side]), "bench", "--basis", "graph", "--samples", str(self.samples),
                     "--no-ceilings", "--json", str(file)]
            for cell in cells:
                words += ["--case", cell]
            code, output = _run(words, folder)
            if code in (130, -signal.SIGINT):
                raise KeyboardInterrupt
            if not file.is_file():
                raise RunnerError(f"{side}: {_last_line(output) or f'exit code {code} and no records'}")
            try:
                lines = [line.record for line in records.read_file(file)]
            except DataError as error:
                raise RunnerError(f"{side}: {error}; exit code {code}: {_last_line(output)}") from error
            return self._medians(side, cells, lines, code, output)

    def _medians(self, side, cells, lines, code, output):
        header = next((r for r in lines if r["record"] == "run"), None)
        if header is None:
            raise RunnerError(f"{side}: no run record; exit code {code}: {_last_line(output)}")
        if header["device"].get("kind") != "cuda":
            raise RunnerError(f"{side}: {self.programs[side]} is a host build; its times are never kernel speed")
        self.headers.setdefault(side, header)
        for other in self.headers.values():
            if other["device"].get("uuid") != header["device"].get("uuid"):
                raise RunnerError("base and head ran on different GPUs "
                                  f"({other['device'].get('uuid')}, {header['device'].get('uuid')})")
        found = {}
        for record in lines:
            if record["record"] != "bench" or record["case_id"] not in cells:
                continue
            if record["verdict"] != "passed":
                raise RunnerError(f"{side}: {record['case_id']}: {record['verdict']}: {record['reason']}")
            if record["basis"] == "graph":
                found[record["case_id"]] = record["median_s"]
        for cell in cells:
            if cell not in found:
                raise RunnerError(f"{side}: no time of {cell}; exit code {code}: {_last_line(output)}")
        return found


def _run(words, folder):
    """(exit code, output) of a process that is killed with its children when it takes too long."""
    with open(pathlib.Path(folder) / "log", "w+", encoding="utf-8", errors="replace") as log:
        process = subprocess.Popen(words, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=folder,
                                   start_new_session=True)
        try:
            code = process.wait(PROCESS_TIMEOUT_S)
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if isinstance(error, subprocess.TimeoutExpired):
                raise RunnerError(f"{words[0]} took longer than {PROCESS_TIMEOUT_S} s") from error
            raise
        log.seek(0)
        return code, log.read()


def _last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    told = [line for line in lines if line.startswith("tigon:")]
    return (told or lines or [""])[-1]


class OutOfTime(Exception):
    """The next pairs would not be done before the budget is spent."""


class PairedRun:
    """Runs pairs AB, BA, AB, ... and keeps the seconds of every process."""

    def __init__(self, runner, deadline=None, on_pair=None):
        self.runner, self.deadline, self.on_pair = runner, deadline, on_pair or (lambda done, pairs, seconds: None)
        self.done = 0
        self.seconds = []  # of whole pairs, for what the next ones will take
        self.base, self.head = {}, {}  # case id -> seconds of every process

    def pairs(self, cells, count):
        """Log ratios head / base, one row per cell, of `count` fresh pairs.

        Raises OutOfTime as soon as the time that a pair takes shows that the others do not fit.
        """
        rows = numpy.empty((len(cells), count))
        for k in range(count):
            begun = time.monotonic()
            order = ("base", "head") if self.done % 2 == 0 else ("head", "base")
            times = {side: self.runner.measure(side, cells) for side in order}
            for i, cell in enumerate(cells):
                self.base.setdefault(cell, []).append(times["base"][cell])
                self.head.setdefault(cell, []).append(times["head"][cell])
                rows[i, k] = math.log(times["head"][cell] / times["base"][cell])
            self.done += 1
            self.seconds.append(time.monotonic() - begun)
            self.on_pair(k + 1, count, self.seconds[-1])
            quickest, left = min(self.seconds[-3:]), count - k - 1
            if self.deadline is None or not left:
                continue
            remains = self.deadline - time.monotonic()
            if quickest * left > remains:
                raise OutOfTime(f"{left} more pairs of {len(cells)} cells take about {quickest * left:.0f} s, and of the budget, "
                                f"builds included, {max(remains, 0):.0f} s remain")
        return rows

    def base_s(self, cells):
        return numpy.array([float(numpy.median(self.base[cell])) for cell in cells])

    def head_s(self, cells):
        return numpy.array([float(numpy.median(self.head[cell])) for cell in cells])

