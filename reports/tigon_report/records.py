"""Reading of records (JSONL) of any number of runs: strict about what they hold, tolerant of a killed writer.

A line is a record when it is a JSON object with the strings `record` and `run_id`, its numbers are finite and of the
right type, and its bytes match its `sum`, if it has one. The torn last line of a killed writer is dropped and said.
Lines damaged in the middle are an error, unless a later `resume` record says that what they held ran again.
"""
import json
import pathlib
import re
import zlib
from typing import NamedTuple

from .errors import DataError

MAJOR_VERSION = "1"
RUN_ID = re.compile(r"[0-9]{8}T[0-9]{6}Z-[0-9a-f]{8}")
SUM_BYTES = len(',"sum":"01234567"}')  # at the end of a line
TEXT, OBJECT, LIST, WHOLE, NUMBER = (str,), (dict,), (list,), (int,), (int, float, type(None))  # exact: true is no 1
LARGEST = 2**63  # what a database holds
CASE_FIELDS = dict.fromkeys(("case_id", "op", "pass", "impl", "dtype"), TEXT)
SHARES = ("top1", "top1_low", "top1_high", "top10", "top10_low", "top10_high")
# What a record of a kind must hold, and the types of what it may hold. The schema says more; this is what the readers
# here rely on.
REQUIRED = {
    "run": {"device": OBJECT},
    "check": {**CASE_FIELDS, "verdict": TEXT, "executor": TEXT},
    "bench": {**CASE_FIELDS, "verdict": TEXT, "executor": TEXT, "basis": TEXT, "median_s": NUMBER},
    "memory": {**CASE_FIELDS},
    "accuracy": {**CASE_FIELDS, "verdict": TEXT, "executor": TEXT, "outputs": LIST},
    "trace": dict.fromkeys(("op", "pass", "impl", "dtype"), TEXT),
    "ceiling": {"name": TEXT, "value": NUMBER, "unit": TEXT},
    "converge": dict.fromkeys(("config", "impl", "dtype"), TEXT),
    "converge_verdict": dict.fromkeys(("config", "dtype", "verdict"), TEXT),
    "converge_gradients": {**dict.fromkeys(("config", "dtype", "verdict"), TEXT), "parameters": LIST},
    "converge_parts": {**dict.fromkeys(("cell", "config", "impl", "dtype", "outcome", "reason"), TEXT), "axes": OBJECT,
                       "options": OBJECT, "parts": LIST, "batch": WHOLE,
                       **dict.fromkeys(("limit_bytes", "planned_bytes", "unused_bytes"), WHOLE),
                       **dict.fromkeys(("peak_bytes", "step_s", "coverage", "tokens_per_s"), NUMBER)},
    "claim": {**dict.fromkeys(("experiment", "claim", "paper", "source", "measured", "on", "verdict"), TEXT),
              "value": NUMBER},
    "next_action": {**dict.fromkeys(("predictor", "data", "reason"), TEXT), **dict.fromkeys(SHARES, NUMBER),
                    "published": NUMBER, "parameters": WHOLE, "seconds_s": NUMBER, "seed": WHOLE},
    "next_action_gap": {**dict.fromkeys(("better", "worse", "wanted"), TEXT), **dict.fromkeys(SHARES[:3], NUMBER),
                        "holds": (bool,)},
}
OPTIONAL = {
    **dict.fromkeys(("schema_version", "time", "case_key", "reason", "repro", "bound", "attention", "launches", "yardstick"), TEXT),
    **dict.fromkeys(("axes", "options", "tags", "tool", "host", "build", "libraries", "environment", "shard"), OBJECT),
    **dict.fromkeys(("outputs", "samples_s", "differences", "budgets"), LIST),
    **dict.fromkeys((
        "q1_s", "q3_s", "min_s", "max_s", "flop", "bytes_min_bytes", "bandwidth_bytes_per_s", "flop_rate_per_s",
        "share_of_copy", "share_of_gemm", "tensors_bytes", "workspace_bytes", "planned_bytes", "arena_bytes",
        "device_bytes", "host_bytes", "peak_bytes", "traffic_ratio", "final_loss", "held_out_loss", "tokens_per_s",
        "largest_difference", "budget", "linear_flop", "linear_alone_s", "yardstick_s", "share_of_yardstick"), NUMBER),
    "n": WHOLE, "block": (int, str),
}
LOSSES = {"converge": {"loss": LIST}, "converge_step": {"loss": NUMBER}}  # of all steps; of one
EXPECTED = {kind: {**OPTIONAL, **LOSSES.get(kind, {}), **REQUIRED.get(kind, {})} for kind in {*REQUIRED, *LOSSES}}
# The fields that name a record within its run, by kind. Two different records of one run with the same name contradict
# each other. Kinds that are not here may repeat; they are named by all of their fields.
NAMES = {
    "run": (), "end": (),
    "check": ("case_key", "executor", "block"),
    "bench": ("case_key", "executor", "basis", "block"),
    "memory": ("case_key", "block"),
    "trace": ("case_key", "op", "pass", "impl", "dtype", "axes", "options"),
    "ceiling": ("name", "block"),
    "converge_step": ("config", "impl", "dtype", "twin", "step"),
    "converge": ("config", "impl", "dtype", "twin", "seed"),
    "converge_verdict": ("config", "dtype"),
    "converge_gradients": ("config", "dtype"),
    "converge_parts": ("cell",),
    "claim": ("experiment", "claim"),
    "next_action": ("predictor",),
    "next_action_gap": ("better", "worse"),
    "sealed": ("unit",),
}


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
    for key in REQUIRED.get(kind, ()):
        if key not in record:
            return f"{kind}: no \"{key}\""
    expected = EXPECTED.get(kind, OPTIONAL)
    for key, value in record.items():
        types = expected.get(key)
        if types and (type(value) not in types or (type(value) is int and not -LARGEST < value < LARGEST)):
            return f"{kind}: \"{key}\" is {json.dumps(value)[:40]}"
    if kind == "bench":
        if record["verdict"] == "passed" and not (record["median_s"] or 0) > 0:
            return f"bench: passed with median_s {record['median_s']}; a time is positive"
        if not all(type(sample) in NUMBER for sample in record.get("samples_s", ())):
            return "bench: a sample is not a number"
    return None


def _sum_is_right(raw):
    """False when `raw` ends in a sum that is not that of its bytes, or in what would be one but for one damaged byte."""
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


def read_file(file, notice):
    """Yields the Lines of one file. `notice` is called with a sentence about each thing that was left out."""
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
        raise DataError(f"{name}:{number}: not a record: {error}{more}")
    if count == 0:
        raise DataError(f"{name}: no record in it")


def read(paths, notice):
    """Yields the Lines of all files that `paths` stand for (files_of), each file once. Raises DataError."""
    for file in files_of(paths):
        yield from read_file(file, notice)


def name_of(record):
    """What names a record: its run, kind and NAMES; of kinds that may repeat, None."""
    keys = NAMES.get(record["record"])
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
