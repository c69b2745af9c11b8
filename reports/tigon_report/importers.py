# SPDX-License-Identifier: Apache-2.0
"""tigon import: records of the results of Google Benchmark, nvbench and Liger-Kernel's benchmark suite.

The same file gives the same records, run ids included, so importing twice and merging changes nothing. What a tool does
not say stays unknown; nothing is guessed: dtype "unknown", quartiles null. Every run carries the tag "imported".
"""
import array
import collections
import csv
import datetime
import io
import json
import math
import pathlib
import re
import sys

from . import importing
from .command import Parser, say
from .errors import DataError, UsageError
from .exporters import COUNTERS
from .importing import Run, bench_record, number
from .merge import union_text, write_whole

UNITS_S = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}


# ---- Google Benchmark ---------------------------------------------------------------------------


def google_benchmark(path, text, options):
    """JSON of Google Benchmark (--benchmark_out_format=json); the repetitions of a name are the samples."""
    data = importing.json_object(path, text, "benchmarks", list)
    context = data.get("context") if isinstance(data.get("context"), dict) else {}
    runs = _tigon_runs(context)
    own = Run.of_tool("google-benchmark", context.get("library_version"), context.get("date"), options, text,
                      host={"name": context.get("host_name"), "cores": context.get("num_cpus")})
    groups = collections.OrderedDict()
    for index, entry in enumerate(data["benchmarks"]):
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            raise DataError(f"{path}: benchmarks[{index}] has no name")
        if entry.get("run_type", "iteration") == "iteration":
            label = dict(word.partition("=")[::2] for word in str(entry.get("label", "")).split())
            run_id = label.get("run") if label.get("run") in runs else None
            groups.setdefault((run_id, entry["name"]), []).append((entry, label))
    if not groups:
        raise DataError(f"{path}: no iteration in it; aggregates alone do not say how often they were measured "
                        "(run without --benchmark_report_aggregates_only)")
    for (run_id, name), entries in groups.items():
        (runs[run_id] if run_id else own).add(_google_record(path, name, entries, options))
    return [run for run in [*runs.values(), own] if len(run.records) > 1]


def _tigon_runs(context):
    """The runs that an export of tigon carries in its context."""
    try:
        headers = json.loads(context.get("tigon_runs") or "[]")
        return {header["run_id"]: Run(header) for header in headers}
    except (ValueError, TypeError, KeyError):
        return {}


def _google_record(path, name, entries, options):
    failed = next((entry for entry, _ in entries if entry.get("error_occurred")), None)
    seconds = []
    for entry, _ in entries:
        unit = UNITS_S.get(entry.get("time_unit", "ns"))
        time = number(entry.get("real_time"))
        if unit is None or time is None:
            raise DataError(f"{path}: {name}: real_time {entry.get('real_time')!r} "
                            f"{entry.get('time_unit')!r} is no time")
        seconds.append(time * unit)
    first, label = entries[0]
    case, basis = _google_case(name)
    message = str(failed.get("error_message") or "") if failed else ""
    verdict = "runtime_error" if failed else "passed"
    if failed and label.get("run"):
        verdict, _, message = message.partition(": ")
    record = bench_record(case, basis, label.get("executor") or options.executor, seconds, verdict, message)
    for key in COUNTERS if label.get("run") else ():
        if key in first and number(first[key]) is not None:
            record[key] = first[key]
    if label.get("run") and not failed and len(entries) == 1:
        record["samples_s"] = []  # the one repetition is the median of a run without samples
    if label.get("bound"):
        record["bound"] = label["bound"]
    if number(first.get("bytes_per_second")) is not None:
        record["bandwidth_bytes_per_s"] = first["bytes_per_second"]
    return record


def _google_case(name):
    """(case, basis) of a benchmark's name: BM_CopyFloat<float>/T:1024/64/real_time."""
    own = re.fullmatch(r"([^/]+/[^/]+/[^/]+/[^/]+/[^/]+)/(cold|rotate|graph|warm|wall)", name)
    if own:
        return importing.case_of_id(own[1]), own[2]
    parts = name.split("/")
    axes, settings, op = {}, {}, parts[0]
    for part in parts[1:]:
        key, colon, value = part.rpartition(":")
        if part in ("real_time", "process_time", "manual_time") or key in ("iterations", "repeats", "min_time",
                                                                           "min_warmup_time"):
            continue
        if re.fullmatch(r"[0-9]+", value):
            axes[key if colon else f"arg{len(axes)}"] = int(value)
        else:
            settings[key if colon else f"part{len(settings)}"] = value
    dtype = next((short for long, short in importing.DTYPES.items() if re.search(rf"\b{long}\b", op)), "unknown")
    return importing.case(op, "run", "external", dtype, axes, settings), "wall"


# ---- nvbench ------------------------------------------------------------------------------------


def nvbench(path, text, options):
    """JSON of nvbench (--json or --jsonbin): cold times, batched ones as warm; medians where the samples are."""
    data = importing.json_object(path, text, "benchmarks", list)
    if not isinstance(data.get("devices"), list):
        raise DataError(f"{path}: no \"devices\"; not a result of nvbench")
    version = ((data.get("meta") or {}).get("version") or {}).get("nvbench") or {}
    runs = {}
    for device in data["devices"]:
        runs[device.get("id")] = Run.of_tool("nvbench", version.get("string"), None, options,
                                             text + str(device.get("id")),
                                             device={"kind": "cuda", "name": device.get("name"), "id": device.get("id"),
                                                     "sm_count": device.get("number_of_sms"),
                                                     "memory_bytes": device.get("global_memory_size")})
    for bench in data["benchmarks"]:
        for state in bench.get("states") or []:
            if state.get("device") not in runs:
                raise DataError(f"{path}: {bench.get('name')}: device {state.get('device')!r} is not among the devices")
            for record in _nvbench_records(path, bench, state, options):
                runs[state["device"]].add(record)
    found = [run for run in runs.values() if len(run.records) > 1]
    if not found:
        raise DataError(f"{path}: no measured state in it")
    return found


def _nvbench_records(path, bench, state, options):
    axes, settings = {}, {}
    for value in state.get("axis_values") or []:
        name, text = str(value.get("name")), str(value.get("value"))
        if value.get("type") == "int64" and re.fullmatch(r"[0-9]+", text):
            axes[name] = int(text)
        else:
            settings[name] = text
    dtype = next((importing.DTYPES[v] for v in settings.values() if v in importing.DTYPES), "unknown")
    case = importing.case(str(bench.get("name")), "run", "external", dtype, axes, settings)
    summaries = state.get("summaries") or []
    if isinstance(summaries, dict):
        raise DataError(f"{path}: summaries without tags: written by an nvbench before version 1 of its JSON")
    values = {}
    for summary in summaries:
        values[summary.get("tag")] = {d.get("name"): d.get("value") for d in summary.get("data") or []}
    if state.get("is_skipped"):
        yield bench_record(case, "cold", "cuda", [], "skipped", str(state.get("skip_reason") or ""))
        return
    for tag, basis in (("cold", "cold"), ("batch", "warm")):
        get = lambda name: number((values.get(f"nv/{tag}/{name}") or {}).get("value"))  # noqa: E731, B023
        mean = get("time/gpu/mean")
        if mean is None:
            continue
        samples = _nvbench_samples(path, values.get(f"nv/json/bin:nv/{tag}/sample_times"))
        median = get("time/gpu/median")
        record = bench_record(case, basis, "cuda", samples or [median or mean])
        if not samples:
            record.update(n=int(get("sample_size") or 0), q1_s=None, q3_s=None, min_s=get("time/gpu/min"),
                          max_s=get("time/gpu/max"), statistic="median" if median else "mean",
                          stdev_relative=get("time/gpu/stdev/relative"))
            record["samples_s"] = []
        bandwidth = number((values.get("nv/cold/bw/global/bytes_per_second") or {}).get("value"))
        if bandwidth is not None and basis == "cold":
            record["bandwidth_bytes_per_s"] = bandwidth
        yield record


def _nvbench_samples(path, values):
    """Float seconds of the side file of --jsonbin; none when it is not beside the JSON."""
    if not values or not values.get("filename"):
        return []
    name = pathlib.Path(str(values["filename"]))
    for file in (name, pathlib.Path(path).parent / name, pathlib.Path(path).parent / name.name):
        if file.is_file():
            floats = array.array("f", file.read_bytes()[: file.stat().st_size // 4 * 4])
            if sys.byteorder == "big":
                floats.byteswap()
            if number(values.get("size")) != len(floats) or not all(math.isfinite(x) and x > 0 for x in floats):
                raise DataError(f"{file}: not the {values.get('size')} times that {path} names")
            return list(floats)
    return []


# ---- Liger-Kernel -------------------------------------------------------------------------------

LIGER_COLUMNS = ("kernel_name", "kernel_provider", "kernel_operation_mode", "metric_name", "metric_unit", "x_name",
                 "x_value",
                 "y_value_50", "y_value_20", "y_value_80", "extra_benchmark_config_str", "gpu_name", "timestamp",
                 "liger_version")
LIGER_MODES = {"full": "forward_backward"}


def liger(path, text, options):
    """CSV of Liger-Kernel (benchmark/data/all_benchmark_data.csv); a run is one version on one GPU on one day."""
    rows = csv.DictReader(io.StringIO(text))
    missing = [name for name in LIGER_COLUMNS if name not in (rows.fieldnames or ())]
    if missing:
        raise DataError(f"{path}: no column {missing[0]}; not Liger's benchmark data")
    runs = collections.OrderedDict()
    for row in rows:
        where = f"{path}:{rows.line_num}"
        key = (row["gpu_name"], row["liger_version"], str(row["timestamp"])[:10])
        if None in row.values() or None in row:
            raise DataError(f"{where}: not {len(rows.fieldnames)} columns")
        if key not in runs:
            runs[key] = Run.of_tool("liger-kernel", key[1], row["timestamp"], options, "liger" + "\n".join(key),
                                    device={"kind": "cuda", "name": key[0]})
        record = _liger_record(where, row)
        runs[key].add(record, importing.utc(row["timestamp"]))
    if not runs:
        raise DataError(f"{path}: no row in it")
    return list(runs.values())


def _liger_record(where, row):
    try:
        extra = json.loads(row["extra_benchmark_config_str"] or "{}")
        if not isinstance(extra, dict):
            raise ValueError("not an object")
    except ValueError as error:
        raise DataError(f"{where}: extra_benchmark_config_str: {error}") from error
    dtype = importing.DTYPES.get(str(extra.pop("dtype", "")).removeprefix("torch."), "unknown")
    extra[row["x_name"]] = number(row["x_value"]) if number(row["x_value"]) is not None else row["x_value"]
    axes = {k: int(v) for k, v in extra.items() if isinstance(v, (int, float)) and not isinstance(v, bool)
            and v == int(v) >= 0}
    settings = {k: v if isinstance(v, (str, bool)) else str(v) for k, v in extra.items() if k not in axes}
    mode = row["kernel_operation_mode"]
    case = importing.case(row["kernel_name"], LIGER_MODES.get(mode, mode), row["kernel_provider"], dtype, axes,
                          settings)
    middle, low, high = (number(row[f"y_value_{share}"]) for share in (50, 20, 80))
    if middle is None or middle < 0:
        raise DataError(f"{where}: y_value_50 '{row['y_value_50']}' is no number")
    if row["metric_name"] == "speed":
        unit = UNITS_S.get(row["metric_unit"])
        if unit is None or middle == 0:
            raise DataError(f"{where}: speed {row['y_value_50']} {row['metric_unit']}; "
                            "a positive time in ns, us, ms or s")
        record = bench_record(case, "cold", "cuda", [middle * unit])
        record.update(q1_s=None, q3_s=None, min_s=None, max_s=None, n=0, p20_s=None if low is None else low * unit,
                      p80_s=None if high is None else high * unit)
        record["samples_s"] = []
        return record
    if row["metric_name"] == "memory" and row["metric_unit"] == "MB":  # which are 2**20 bytes there
        return {"record": "memory", **case, "peak_bytes": round(middle * 2**20),
                **dict.fromkeys(("tensors_bytes", "workspace_bytes", "planned_bytes", "arena_bytes", "device_bytes",
                                 "host_bytes"))}
    raise DataError(f"{where}: metric {row['metric_name']} in {row['metric_unit']}; "
                    "speed in ms or memory in MB is known")


FORMATS = {"google-benchmark": google_benchmark, "nvbench": nvbench, "liger": liger}


def format_of(path, text):
    """The format that a file looks like."""
    if text.lstrip()[:1] == "{":
        head = text[:100000]
        return "nvbench" if re.search(r'"(devices|sm_version)"\s*:', head) else "google-benchmark"
    if text.startswith("kernel_name,"):
        return "liger"
    raise DataError(f"{path}: neither JSON of Google Benchmark or nvbench nor Liger's CSV; say --format")


def main(argv):
    parser = Parser("import", "Write another tool's results as records.",
                    ["bench.json -o imported.jsonl", "all_benchmark_data.csv --format liger -o liger.jsonl"])
    formats = "\n".join(f"  {name:<18} {function.__doc__.splitlines()[0]}" for name, function in FORMATS.items())
    parser.epilog += f"\n\nformats:\n{formats}"
    parser.add_argument("files", nargs="+", help="result files")
    parser.add_argument("-o", "--out", required=True, help="records file to write; - is standard output")
    parser.add_argument("--format", choices=FORMATS, metavar="FORMAT",
                        help=", ".join(FORMATS) + " (default: by content)")
    parser.add_argument("--device", help="GPU that Google Benchmark timed (default: its host)")
    parser.add_argument("--commit", help="commit that was measured, where the file does not say")
    parser.add_argument("--time", help="when it was measured, like 2026-01-01T12:00:00Z, where the file does not say")
    arguments = parser.parse_args(argv)
    if arguments.time and importing.utc(arguments.time) is None:
        raise UsageError(f"--time {arguments.time}: write it like 2026-01-01T12:00:00Z")
    runs = []
    for file in arguments.files:
        modified = datetime.datetime.fromtimestamp(importing.modified(file), datetime.timezone.utc)
        options = importing.Options(arguments.device, arguments.commit, arguments.time, modified, argv)
        text = importing.read_text(file)
        runs += FORMATS[arguments.format or format_of(file, text)](file, text, options)
    lines = [line for run in runs for line in run.lines()]
    write_whole(arguments.out, (raw + b"\n" for raw in union_text(lines)))
    say("import", f"{len(lines)} records of {len(runs)} runs: {arguments.out}")
