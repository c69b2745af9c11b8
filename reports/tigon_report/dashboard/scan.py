# SPDX-License-Identifier: Apache-2.0
"""Reads the records of many runs once and keeps what the pages show; timings shrink to tuples: years fit in memory."""

import collections
import dataclasses
import pathlib
import re

from .. import records
from ..errors import DataError
from ..peers import is_peer
from . import state

# Kinds with few records: kept whole, by run. Timings (bench) are kept as Point, checks as counts (see Checks).
WHOLE = {"memory", "trace", "converge", "converge_verdict", "static", "aa", "gate", "mutant", "soak", "fault"}
ENVIRONMENT = {
    "machine": ("uuid", "host"),
    "driver": ("driver", "runtime", "cudnn", "cublas"),
    "build": ("compiler", "cuda_compiler", "flags"),
}
_SEED = re.compile(r",?(seed=\d+|inputs=normal)(?=,|$)")


class Point(tuple):
    """(run_id, median_s, q1_s, q3_s, file, line): one timing and where its record stands."""

    __slots__ = ()
    run_id, median_s, q1_s, q3_s, file, line = (property(lambda self, i=i: self[i]) for i in range(6))


@dataclasses.dataclass
class Cell:
    """A case that is timed again and again: what stays the same over runs, and its points by run."""

    case_id: str
    record: dict  # the newest record, for axes, bytes, flop and bound
    device: str
    points: dict = dataclasses.field(default_factory=dict)
    counts: bool = False  # whether it is a case of main: what a peer takes, or only a part of a run timed, is not

    @property
    def basis(self):
        return self.record["basis"]

    def keep_state(self, runs):
        """Leaves the points of `runs`, the ids of those that say how main is, where there are any."""
        kept = {run_id: point for run_id, point in self.points.items() if run_id in runs}
        self.points = kept or self.points
        self.counts = bool(kept) and not is_peer(self.record["impl"])


@dataclasses.dataclass
class Checks:
    """Checks of a run: counts, failures, worst error with its record per op, pass, implementation, dtype, executor."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    failures: list = dataclasses.field(default_factory=list)
    worst: dict = dataclasses.field(default_factory=dict)
    cases: collections.Counter = dataclasses.field(default_factory=collections.Counter)


@dataclasses.dataclass
class RunInfo:
    """One run: its header record, where it came from and what it holds besides timings."""

    header: dict
    file: pathlib.Path
    origin: str  # "", "recorded" or "simulated": said wherever the run is shown
    checks: Checks = dataclasses.field(default_factory=Checks)
    ceilings: dict = dataclasses.field(default_factory=dict)
    records: dict = dataclasses.field(default_factory=lambda: collections.defaultdict(list))
    bad_cells: list = dataclasses.field(default_factory=list)  # timings without a number: crashed, out of memory, wrong
    timed: int = 0
    end: dict | None = None

    @property
    def id(self):
        return self.header["run_id"]

    @property
    def started(self):
        return str(self.header.get("started") or self.header.get("time") or "")

    @property
    def commit(self):
        return (self.header.get("tool") or {}).get("commit") or "unknown"

    @property
    def dirty(self):
        return bool((self.header.get("tool") or {}).get("dirty"))

    @property
    def on_gpu(self):
        return (self.header.get("device") or {}).get("kind") == "cuda"

    @property
    def device(self):
        return (self.header.get("device") or {}).get("name") or "host"

    @property
    def why_not(self):
        return state.why_not(self)

    def environment(self):
        """{machine, driver, build: {name: value}} of what can move a number without a change of the code."""
        header = self.header
        device, libraries, build = (header.get(key) or {} for key in ("device", "libraries", "build"))
        have = {
            "host": (header.get("host") or {}).get("name"),
            "uuid": device.get("uuid"),
            **build,
            "driver": device.get("driver"),
            "runtime": device.get("runtime"),
            "cudnn": libraries.get("cudnn"),
            "cublas": libraries.get("cublas"),
        }
        return {kind: {key: have.get(key) for key in keys} for kind, keys in ENVIRONMENT.items()}


@dataclasses.dataclass
class Store:
    """Everything that was read: runs in time order and timed cells."""

    runs: list
    cells: dict
    records: int
    left_out: list  # sentences about what is damaged

    def run(self, run_id):
        return self._by_id[run_id]

    def __post_init__(self):
        self._by_id = {run.id: run for run in self.runs}


def stable_id(case_id):
    """A case id without what does not change the work: the seed, and the usual inputs."""
    return _SEED.sub("", case_id)


def _origin(file, header):
    tags = header.get("tags") or {}
    if header.get("simulated") or "simulated" in tags or tags.get("origin") == "simulated":
        return "simulated"
    return "recorded" if "recorded" in file.parts[-3:-1] or header.get("slim") else ""


def _take_check(checks, record):
    outcome = records.outcome_of(record["verdict"])
    setattr(checks, outcome, getattr(checks, outcome) + 1)
    if outcome == "failed" and not is_peer(record["impl"]):
        checks.failures.append(record)
    key = tuple(record.get(name) for name in ("op", "pass", "impl", "dtype", "executor"))
    checks.cases[key] += 1
    errors = [value for output in record.get("outputs") or [] if (value := output.get("error_over_budget")) is not None]
    if errors:
        if key not in checks.worst or max(errors) > checks.worst[key][0]:
            checks.worst[key] = (max(errors), record)


class _Reader:
    def __init__(self):
        self.runs, self.cells, self.records, self._checked = {}, {}, 0, set()
        self.homeless = collections.Counter()  # records by file and run, of runs whose own record is not there

    def take(self, line, number):
        """Files one record away; `number` is that of its file."""
        record, kind = line.record, line.record["record"]
        self.records += 1
        if kind == "run":
            file = pathlib.Path(line.file)
            self.runs.setdefault(record["run_id"], RunInfo(record, file, _origin(file, record)))
            return
        run = self.runs.get(record["run_id"])
        if run is None:
            self.homeless[line.file, record["run_id"]] += 1
        elif kind == "bench":
            self._bench(run, record, number, line)
        elif kind == "check":
            self._check(run, record)
        elif kind == "ceiling":
            run.ceilings[record["name"]] = record["value"]
        elif kind in WHOLE and record not in run.records[kind]:
            run.records[kind].append(record)
        elif kind == "end":
            run.end = record

    def _check(self, run, record):
        name = hash((run.id, record["case_key"], record["executor"], record.get("block")))
        if name not in self._checked:  # the same run in two files counts once
            self._checked.add(name)
            _take_check(run.checks, record)

    def _bench(self, run, record, number, line):
        if not run.on_gpu or record["executor"] != "cuda" or record["basis"] == "wall":
            return  # times of the host executor are no kernel speed and appear nowhere
        if record["verdict"] != "passed" or not record["median_s"]:
            is_failed = records.outcome_of(record["verdict"]) != "skipped"
            if is_failed and record not in run.bad_cells and not is_peer(record["impl"]):
                run.bad_cells.append(record)
            return
        key = (stable_id(record["case_id"]), record["basis"], run.device)
        cell = self.cells.get(key)
        if cell is None:
            cell = self.cells[key] = Cell(key[0], record, run.device)
        point = Point((run.id, record["median_s"], record.get("q1_s"), record.get("q3_s"), number, line.number))
        known = cell.points.get(run.id)
        if known and known.file != number and known.median_s != point.median_s:
            raise DataError(
                f"{line.where}: {record['case_id']} ({record['basis']}) took {known.median_s:g} s in another file "
                "of the same run; one run has one result, so one of the two files is wrong"
            )
        run.timed += known is None
        cell.points[run.id] = point  # of a resumed run the last counts
        if self._rank(record) >= self._rank(cell.record):
            cell.record = record

    def _rank(self, record):
        """What the newest record of a case is chosen by; whether its run ended is not known yet."""
        return not state.partial(self.runs[record["run_id"]]), record.get("time", "")


def scan(files, notice):
    """Reads `files` into a Store. Damage is left out and said. Raises DataError for contradictions, or without a run."""
    reader, left_out = _Reader(), []

    def leave_out(text):
        notice(text)
        left_out.append(text)

    for number, path in enumerate(files):
        for line in records.read_file(path, leave_out, skip_damaged=True):
            reader.take(line, number)
    for (file, run_id), count in reader.homeless.items():
        leave_out(f"{file}: {count} records of {run_id} have no run record, which says where they were measured; left out")
    if not reader.runs:
        raise DataError("no run in " + ", ".join(map(str, files[:3])) + "; give results folders or records.jsonl files")
    runs = sorted(reader.runs.values(), key=lambda run: (run.started, run.id))
    counting = {run.id for run in runs if state.counts(run)}
    for cell in reader.cells.values():
        cell.keep_state(counting)
        cell.record.pop("samples_s", None)
        cell.record.setdefault("axes", records.axes_of(cell.record))
    return Store(runs, reader.cells, reader.records, left_out)


def raw_lines(files, wanted):
    """{(file number, line number): the record's own line} for the pairs in `wanted`, each file read once."""
    by_file = collections.defaultdict(set)
    for file, line in wanted:
        by_file[file].add(line)
    found = {}
    for file, lines in by_file.items():
        with open(files[file], "rb") as stream:
            for number, raw in enumerate(stream, 1):
                if number in lines:
                    found[file, number] = raw.decode("utf-8").strip()
    return found
