# SPDX-License-Identifier: Apache-2.0
"""What the importers share: the run record and the records of cases of another tool's results."""
import datetime
import json
import math
import pathlib
from typing import NamedTuple

from . import records, statistics
from .errors import DataError

DTYPES = {"float": "f32", "float32": "f32", "f32": "f32", "F32": "f32", "double": "f64", "float64": "f64", "f64": "f64",
          "F64": "f64", "half": "f16", "float16": "f16", "f16": "f16", "F16": "f16", "__half": "f16",
          "bfloat16": "bf16",
          "bf16": "bf16", "BF16": "bf16", "__nv_bfloat16": "bf16"}


UNKNOWN_HOST = dict.fromkeys(("name", "os", "kernel", "cpu"), "unknown") | {"cores": 0, "memory_bytes": 0}
NOT_MEASURED = ("bytes_min_bytes", "flop", "bandwidth_bytes_per_s", "flop_rate_per_s", "share_of_copy", "share_of_gemm")


class Options(NamedTuple):
    """What the command line says about a file."""

    device: str
    commit: str
    time: str
    modified: datetime.datetime
    words: list

    @property
    def executor(self):
        return "cuda" if self.device else "external"


def modified(path):
    try:
        return pathlib.Path(path).stat().st_mtime
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from error


def read_text(path):
    try:
        return pathlib.Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not text in UTF-8 ({error.reason} at byte {error.start})") from error
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from error


def json_object(path, text, key, kind):
    """The JSON object in `text`, whose member `key` is of type `kind`."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: not JSON: {error}") from error
    if not isinstance(data, dict) or not isinstance(data.get(key), kind):
        raise DataError(f"{path}: no {kind.__name__} \"{key}\" in it")
    return data


def number(value):
    """A finite number from a number or its text, or None."""
    if isinstance(value, bool):
        return None
    try:
        result = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return result if math.isfinite(result) else None


def utc(text):
    """'2026-01-01T12:00:00.000Z' from any ISO time; without a zone it is taken as UTC. None when it is no time."""
    try:
        time = datetime.datetime.fromisoformat(str(text).replace("Z", "+00:00"))
    except ValueError:
        return None
    if time.tzinfo is None:
        time = time.replace(tzinfo=datetime.timezone.utc)
    return time.astimezone(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.") + f"{time.microsecond // 1000:03d}Z"


def _clean(text):
    """A word that may stand in a case id."""
    return "".join("_" if c in "/,=\n\r\t'\"" else c for c in str(text)) or "unknown"


def case(op, pass_name, impl, dtype, axes, options):
    """The fields of a case, with its id and key."""
    axes = {_clean(k): v for k, v in axes.items()}
    options = {_clean(k): _clean(v) if isinstance(v, str) else v for k, v in options.items()}
    op, pass_name, impl = _clean(op), _clean(pass_name), _clean(impl)
    pairs = ",".join(f"{key}={value}" for key, value in [*axes.items(), *options.items()]) or "default"
    case_id = f"{op}/{pass_name}/{impl}/{dtype}/{pairs}"
    return {"case_id": case_id, "case_key": records.case_key(case_id), "op": op, "pass": pass_name, "impl": impl,
            "dtype": dtype, "axes": axes, "options": options}


def case_of_id(case_id):
    """The fields of a case of tigon from its id."""
    op, pass_name, impl, dtype, pairs = case_id.split("/")
    axes = records.axes_of({"case_id": case_id})
    options = {}
    for key, _, value in (pair.partition("=") for pair in pairs.split(",")):
        if key not in axes and key not in ("inputs", "seed"):
            options[key] = int(value) if value.lstrip("-").isdigit() else value
    return {"case_id": case_id, "case_key": records.case_key(case_id), "op": op, "pass": pass_name, "impl": impl,
            "dtype": dtype, "axes": axes, "options": options}


def bench_record(case_fields, basis, executor, samples, verdict="passed", reason=""):
    """A bench record of these samples (seconds)."""
    good = verdict == "passed" and samples
    if good and not all(sample > 0 for sample in samples):
        raise DataError(f"{case_fields['case_id']}: a time of {min(samples)} s; times are positive")
    values = {"median_s": statistics.median(samples), "q1_s": statistics.quantile(samples, 0.25),
              "q3_s": statistics.quantile(samples, 0.75), "min_s": min(samples), "max_s": max(samples)} if good else \
        dict.fromkeys(("median_s", "q1_s", "q3_s", "min_s", "max_s"))
    return {"record": "bench", **case_fields, "basis": basis, "executor": executor, **values, "n": len(samples) if good
            else 0,
            "samples_s": list(samples) if good else [], **dict.fromkeys(NOT_MEASURED), "bound": "unknown", "sets": 0,
            "verdict": verdict, "reason": reason}


class Run:
    """A run record and what belongs to it; records without a time get the run's."""

    def __init__(self, header):
        self.header, self.records = header, [header]

    @classmethod
    def of_tool(cls, tool, version, time, options, content, host=None, device=None):
        """The run of another tool; its id comes from the time and the content, so it is the same each time."""
        started = utc(options.time) or utc(time) or utc(options.modified.isoformat())
        stamp = started[:19].replace("-", "").replace(":", "")
        run_id = f"{stamp}Z-{records.stable_hash(tool + content) & 0xFFFFFFFF:08x}"
        device = device or ({"kind": "cuda", "name": options.device} if options.device else {"kind": "host"})
        return cls({**records.head("run", run_id, started),
                    "tool": {"name": tool, "version": str(version or "unknown"), "commit": options.commit, "dirty": False},
                    "command": ["./tigon", "import"], "seed": 0, "started": started,
                    "host": UNKNOWN_HOST | {key: value for key, value in (host or {}).items() if value is not None},
                    "device": device, "build": dict.fromkeys(("preset", "compiler", "flags", "type"), "unknown"),
                    "libraries": {}, "environment": {}, "tags": {"imported": tool}})

    def add(self, record, time=None):
        head = records.head(record.pop("record"), self.header["run_id"], time or self.header["time"])
        self.records.append(head | record)

    def lines(self):
        texts = (json.dumps(record, separators=(",", ":"), ensure_ascii=False) for record in self.records)
        return [records.with_sum(text).encode() for text in texts]
