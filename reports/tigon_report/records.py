# SPDX-License-Identifier: Apache-2.0
"""Reading of records (JSONL) of any number of runs: strict about what they hold, tolerant of a killed writer.

A line is a record when it is a JSON object with the strings `record` and `run_id`, its numbers are finite and of the
right type, and its bytes match its `sum`, if it has one: records of other tools and of older versions have none. Every
writer of this tree writes it, and what reports/recorded keeps has it (test_recorded). The torn last line of a killed writer is dropped and said.
Lines damaged in the middle are an error, unless a later `resume` record says that what they held ran again.
"""
import json
import pathlib
import re
import zlib
from typing import NamedTuple

from . import schema
from .errors import DataError

MAJOR_VERSION = schema.VERSION.split(".")[0]
RUN_ID = re.compile(schema.SCHEMA["properties"]["run_id"]["pattern"])
SUM_BYTES = len(',"sum":"01234567"}')  # at the end of a line
HOST_EXECUTORS = ("fast", "checked", "sm_80")
SKIPPED = ("unsupported", "skipped", "not_run")  # as harness/judge/verdict.cpp
BROKEN = ("oom", "timeout", "crashed", "runtime_error", "compile_error")  # no result, where others are wrong results
NUMBER = (int, float, type(None))  # exact: true is no 1
LARGEST = 2**64  # what the integers of a program hold


class Line(NamedTuple):
    """One record, the line it stands on, and its bytes without the newline."""

    file: str
    number: int
    raw: bytes
    record: dict

    @property
    def where(self):
        return f"{self.file}:{self.number}"


def _refuse_constant(text):
    raise ValueError(f"{text} is no JSON number; a record has null there")


_decode = json.JSONDecoder(parse_constant=_refuse_constant).decode


def stable_hash(text):
    """FNV-1a with MurmurHash3's finaliser, as harness/run/cases/case.cpp: the case_key of a case_id, as a number."""
    mask, h = 2**64 - 1, 0xCBF29CE484222325
    for byte in text.encode():
        h = (h ^ byte) * 0x100000001B3 & mask
    h ^= h >> 33
    h = h * 0xFF51AFD7ED558CCD & mask
    h ^= h >> 33
    h = h * 0xC4CEB9FE1A85EC53 & mask
    return h ^ (h >> 33)


def case_key(case_id):
    return f"{stable_hash(case_id):016x}"


def axes_of(record):
    """The axes of a record; of a slimmed one from its case id: 'T=7' is an axis, 'seed=42' and 'w=absent' are not."""
    if "axes" in record:
        return record["axes"]
    pairs = (item.partition("=") for item in record.get("case_id", "").split("/")[-1].split(","))
    return {name: int(value) for name, _, value in pairs if name[:1].isupper() and value.isdigit()}


def peak_bytes(record):
    """Peak memory of a call: its tensors and what it allocates beside them; imported records know the sum only."""
    if record.get("peak_bytes") is not None:
        return record["peak_bytes"]
    beside = record.get("arena_bytes")
    if beside is None:
        beside = record.get("workspace_bytes")
    tensors = record.get("tensors_bytes")
    return None if tensors is None or beside is None else tensors + beside


def is_host_time(record):
    """Whether a record is a wall time of the host executor, which is no kernel speed."""
    return record["record"] == "bench" and record["executor"] in HOST_EXECUTORS


def outcome_of(verdict):
    """passed, skipped or failed, as the program counts it."""
    return "passed" if verdict == "passed" else "skipped" if verdict in SKIPPED else "failed"


def problem_of(record):
    """Why `record` is not one, or None."""
    if not isinstance(record, dict):
        return "not a JSON object"
    kind = record.get("record")
    if not isinstance(kind, str):
        return "no string \"record\" that names its kind"
    run_id = record.get("run_id")
    if not isinstance(run_id, str) or not RUN_ID.fullmatch(run_id):
        return f"{kind}: no run_id like 20260101T120000Z-1a2b3c4d"
    version = record.get("schema_version")
    if isinstance(version, str) and version.split(".")[0] != MAJOR_VERSION:
        return f"{kind}: schema {version}; this tigon reads {MAJOR_VERSION}.x"
    for key in schema.needed(kind):
        if key not in record:
            return f"{kind}: no \"{key}\""
    declared = schema.field_types(kind)
    for key, value in record.items():
        types = declared.get(key)
        if types and (type(value) not in types or (type(value) is int and not -LARGEST < value < LARGEST)):
            return f"{kind}: \"{key}\" is {json.dumps(value)[:40]}"
    if kind == "bench":
        if record["verdict"] == "passed" and not (record["median_s"] or 0) > 0:
            return f"bench: passed with median_s {record['median_s']}; a time is positive"
        if not all(type(sample) in NUMBER for sample in record.get("samples_s", ())):
            return "bench: a sample is not a number"
    return None


def head(kind, run_id, time):
    """The fields that every record begins with."""
    return {"record": kind, "schema_version": schema.VERSION, "run_id": run_id, "time": time}


def with_sum(text):
    """The JSON text of a record with its sum, as harness/record/record_reader.h."""
    return f'{text[:-1]},"sum":"{zlib.crc32(text[:-1].encode()):08x}"}}'


def has_right_sum(raw):
    """Whether `raw` (bytes, without the newline) ends in the sum of what stands before it."""
    return raw[-SUM_BYTES:] == b',"sum":"%08x"}' % zlib.crc32(raw[:-SUM_BYTES])


def _sum_is_right(raw):
    """False when `raw` ends in a sum that is not that of its bytes, or in what would be one but for one damaged byte.

    True where there is none: here it is decided that a line without a sum is read.
    """
    end, right = raw[-SUM_BYTES:], b',"sum":"%08x"}' % zlib.crc32(raw[:-SUM_BYTES])
    frame_differs = sum(a != b for a, b in zip(end[:8] + end[-2:], right[:8] + right[-2:]))
    return len(end) < SUM_BYTES or frame_differs > 1 or end == right


def parse(raw):
    """The record in `raw` (bytes). Raises ValueError with the reason."""
    if not _sum_is_right(raw):
        raise ValueError("its bytes do not match its sum")
    try:
        record = _decode(raw.decode("utf-8"))
    except RecursionError as error:
        raise ValueError("nests too deep") from error
    problem = problem_of(record)
    if problem:
        raise ValueError(problem)
    record.pop("sum", None)  # it is of the line
    if "case_id" in record and "case_key" not in record:
        record["case_key"] = case_key(record["case_id"])
    return record


def files_of(paths):
    """The record files that `paths` stand for: a file, a run's folder, or a folder of runs and of *.jsonl files."""
    files = []
    for path in map(pathlib.Path, paths):
        if not path.is_dir():
            if not path.exists():
                raise DataError(f"{path}: no such file or folder; ./tigon run writes records.jsonl into results/RUN")
            found = [path]
        elif (path / "records.jsonl").is_file():
            found = [path / "records.jsonl"]
        else:
            found = sorted(path.glob("*/records.jsonl")) + sorted(path.glob("*.jsonl"))
            if not found:
                raise DataError(f"{path}: no records.jsonl in it, nor in a folder of it, nor any *.jsonl")
        files += [file for file in found if file not in files]
    return files


def read_file(file, notice=lambda text: None, skip_damaged=False):
    """Yields the Lines of one file. `notice` is called with a sentence about each thing that was left out.

    Damage is an error, or with `skip_damaged` one more thing that is left out.
    """
    name, damaged, count = str(file), [], 0
    with open(file, "rb") as stream:
        for number, line in enumerate(stream, 1):
            raw = line.rstrip(b"\r\n")
            if not raw.strip():
                continue
            try:
                record = parse(raw)
            except ValueError as error:
                if not line.endswith(b"\n"):
                    notice(f"{name}:{number}: the last line is torn and is left out")
                    continue
                damaged.append((number, error))
                continue
            if damaged and record["record"] == "resume" and record.get("damaged_lines", 0) >= len(damaged):
                notice(f"{name}: {len(damaged)} damaged lines are left out; the run was resumed behind them")
                damaged.clear()
            count += 1
            yield Line(name, number, raw, record)
    if damaged:
        number, error = damaged[0]
        more = f" ({len(damaged)} such lines)" if len(damaged) > 1 else ""
        _leave_out(f"{name}:{number}: not a record: {error}{more}", notice if skip_damaged else None)
    elif count == 0:
        raise DataError(f"{name}: no record in it")


def _leave_out(text, notice):
    """Says `text` to `notice`; without one it is an error."""
    if notice is None:
        raise DataError(text)
    notice(f"{text}; left out")


def read(paths, notice):
    """Yields the Lines of all files that `paths` stand for (files_of), each file once. Raises DataError."""
    for file in files_of(paths):
        yield from read_file(file, notice)


def name_of(record):
    """What names a record: its run, kind and the fields of its identity; of kinds that may repeat, None."""
    keys = schema.identity(record["record"])
    if keys is None:
        return None
    return (record["run_id"], record["record"], *(_plain(record.get(key)) for key in keys))


def _plain(value):
    return json.dumps(value, sort_keys=True) if isinstance(value, (dict, list)) else value


def headers(lines):
    """The run record of each run id among `lines`. Raises DataError when a record's run has none."""
    found = {line.record["run_id"]: line.record for line in lines if line.record["record"] == "run"}
    for line in lines:
        if line.record["run_id"] not in found:
            raise DataError(f"{line.where}: no run record of {line.record['run_id']}; it says where this was measured")
    return found


def latest(lines):
    """`lines` with only the last of those with one name: a resumed run repeats what it had not finished."""
    kept = {}
    for line in lines:
        name = name_of(line.record)
        kept[name or (line.file, line.number)] = line
    return list(kept.values())
