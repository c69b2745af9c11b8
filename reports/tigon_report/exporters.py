# SPDX-License-Identifier: Apache-2.0
"""tigon export: records in the formats of other tools."""
import collections
import csv
import io
import json
import re
from xml.sax.saxutils import escape, quoteattr

from . import merge, records
from .command import Parser, say
from .errors import DataError

# Numbers of a bench record that travel as counters of Google Benchmark, by their own names.
COUNTERS = ("median_s", "q1_s", "q3_s", "min_s", "max_s", "n", "bytes_min_bytes", "flop", "bandwidth_bytes_per_s",
            "flop_rate_per_s", "share_of_copy", "share_of_gemm", "sets")
METRICS = {
    "bench": {"median_s": "s", "q1_s": "s", "q3_s": "s", "bandwidth_bytes_per_s": "bytes/s",
              "flop_rate_per_s": "flop/s",
              "share_of_copy": "1", "share_of_gemm": "1"},
    "memory": {"tensors_bytes": "bytes", "workspace_bytes": "bytes", "planned_bytes": "bytes", "arena_bytes": "bytes",
               "device_bytes": "bytes", "host_bytes": "bytes", "peak_bytes": "bytes"},
    "check": {"error_over_budget": "1"},
    "trace": {"traffic_ratio": "1"},
    "ceiling": {"value": None},
}


class Source:
    """The records to export: the last of each name, and the run record of each run, oldest run first."""

    def __init__(self, paths, notice):
        self.notice, self.left_out = notice, 0
        lines = records.latest(records.read(paths, notice))
        self.headers = records.headers(lines)
        order = {run_id: n for n, run_id in enumerate(sorted(self.headers,
                                                             key=lambda i: (run_time(self.headers[i]), i)))}
        self.records = sorted((line.record for line in lines), key=lambda r: order[r["run_id"]])

    def of(self, kind):
        return [r for r in self.records if r["record"] == kind]

    def leave_out_host_times(self):
        """For formats that would show them as speed."""
        kept = [r for r in self.records if not records.is_host_time(r)]
        self.left_out = self.say_host_times()
        self.records = kept

    def say_host_times(self):
        """Says how many wall times of the host executor are left out, and returns it."""
        count = sum(map(records.is_host_time, self.records))
        if count:
            self.notice(f"{count} wall times of the host executor are left out: they are no kernel speed")
        return count

    def header(self, record):
        return self.headers[record["run_id"]]


def run_time(header):
    return str(header.get("started") or header.get("time") or "")


def commit_of(header):
    return str((header.get("tool") or {}).get("commit") or "")


def device_of(header):
    return str(header["device"].get("name") or header["device"].get("kind") or "")


def is_simulated(header):
    return "simulated" in (header.get("tags") or {})


def _need(source, found, what):
    if not found and source.left_out:
        raise DataError("only host wall times, which are not exported")
    if not found:
        raise DataError(f"no {what} record to export")
    return found


def google_benchmark(source):
    """As `--benchmark_format=json` of Google Benchmark 1.7; a sample, or a run's median, is a repetition."""
    groups = collections.OrderedDict()
    for r in _need(source, source.of("bench"), "bench"):
        groups.setdefault((r["case_id"], r["basis"], r["executor"]), []).append(r)
    entries = []
    for family, ((case_id, basis, executor), rows) in enumerate(groups.items()):
        times = [(row, t) for row in rows for t in (row.get("samples_s") or [row["median_s"]])]
        for index, (row, seconds) in enumerate(times):
            passed = row["verdict"] == "passed" and seconds
            entry = {"name": f"{case_id}/{basis}", "family_index": family, "per_family_instance_index": 0,
                     "run_name": f"{case_id}/{basis}", "run_type": "iteration", "repetitions": len(times),
                     "repetition_index": index, "threads": 1}
            if not passed:
                entry |= {"error_occurred": True, "error_message": f"{row['verdict']}: {row.get('reason') or ''}"}
            nanoseconds = (seconds or 0.0) * 1e9
            entry |= {"iterations": 1, "real_time": nanoseconds, "cpu_time": nanoseconds, "time_unit": "ns"}
            entry |= {key: row[key] for key in COUNTERS if row.get(key) is not None}
            entry["label"] = f"run={row['run_id']} executor={executor} bound={row.get('bound') or ''}"
            entries.append(entry)
    last = source.header(list(groups.values())[-1][-1])
    host = last.get("host") or {}
    context = {"date": run_time(last), "host_name": str(host.get("name") or ""), "executable": "./tigon",
               "num_cpus": host.get("cores") or 0, "mhz_per_cpu": 0, "cpu_scaling_enabled": False, "caches": [],
               "load_avg": [], "library_build_type": "release", "tigon_device": device_of(last),
               "tigon_commit": commit_of(last), "tigon_runs": json.dumps(list(source.headers.values()))}
    return json.dumps({"context": context, "benchmarks": entries}, indent=1) + "\n"


def action_benchmark(source):
    """`customSmallerIsBetter` of github-action-benchmark: the newest time of each case and its peak memory."""
    entries = {}
    for r in source.of("bench"):
        if r["verdict"] == "passed":
            half = ((r.get("q3_s") or r["median_s"]) - (r.get("q1_s") or r["median_s"])) / 2
            name = f"{r['case_id']} [{r['basis']}, {r['executor']}, {device_of(source.header(r))}]"
            entries[name] = {"name": name, "unit": "us", "value": r["median_s"] * 1e6, "range": f"± {half * 1e6:.6g}",
                             "extra": f"run {r['run_id']} at {commit_of(source.header(r))}"}
    for r in source.of("memory"):
        peak = records.peak_bytes(r)
        if peak is not None:
            name = f"{r['case_id']} [peak memory, {device_of(source.header(r))}]"
            entries[name] = {"name": name, "unit": "bytes", "value": peak, "extra": f"run {r['run_id']}"}
    return json.dumps(_need(source, list(entries.values()), "passed bench or memory"), indent=1, ensure_ascii=False) + "\n"


def _table(rows):
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def otava(source):
    """One row per run, one column of seconds per case: what Apache Otava reads with `time` and `commit` columns.

    Otava refuses a cell without a number; one that was not measured repeats the one before, which is what Otava does
    with missing points of other sources.
    """
    values, names = {}, {}
    for r in _need(source, source.of("bench"), "bench"):
        name = f"{r['case_id']}/{r['basis']}"
        values.setdefault(r["run_id"], {})
        if r["verdict"] == "passed":
            values[r["run_id"]][name] = names[name] = r["median_s"]
    first = {name: next(found[name] for found in values.values() if name in found) for name in names}
    missing, before = 0, first
    rows = [["time", "commit", "run_id", "device", "driver", *_need(source, list(names), "passed bench")]]
    for run_id, found in values.items():
        header = source.headers[run_id]
        missing += len(names) - len(found)
        before = {**before, **found}
        rows.append([run_time(header), commit_of(header), run_id, device_of(header),
                     header["device"].get("driver") or "", *(repr(before[name]) for name in names)])
    if missing:
        source.notice(f"{missing} cells were not measured and repeat the run before, as Otava fills them")
    return _table(rows)


def tidy_csv(source):
    """One row per number: which run, which case, which metric, the value and its unit; wall times are named so."""
    rows = [["run_id", "run_time", "commit", "device", "driver", "simulated", "kind", "case_id", "op", "pass", "impl",
             "dtype",
             "axes", "options", "basis", "executor", "verdict", "output", "metric", "value", "unit"]]
    for r in source.records:
        for output, metric, value, unit in _numbers(r):
            header = source.header(r)
            rows.append([r["run_id"], run_time(header), commit_of(header), device_of(header),
                         header["device"].get("driver") or "", int(is_simulated(header)),
                         r["record"],
                         r.get("case_id", ""), r.get("op", ""), r.get("pass", ""), r.get("impl", ""),
                         r.get("dtype", ""),
                         json.dumps(records.axes_of(r)), json.dumps(r.get("options") or {}), r.get("basis", ""),
                         r.get("executor", ""), r.get("verdict", ""), output, metric,
                         "" if value is None else repr(value), unit])
    return _table(rows)


def _numbers(record):
    kind = record["record"]
    if kind == "check":
        outputs = [o for o in record.get("outputs") or [] if isinstance(o, dict)]
        return [(o.get("name", ""), "error_over_budget", o.get("error_over_budget"), "1") for o in outputs] or \
            [("", "error_over_budget", None, "1")]
    if kind == "ceiling":
        return [("", record["name"], record["value"], record["unit"])]
    prefix = "host_wall_" if records.is_host_time(record) else ""
    return [("", prefix + key, record[key], unit) for key, unit in METRICS.get(kind, {}).items() if key in record]


_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _xml(text):
    return _NOT_XML.sub("?", str(text))


def junit(source):
    """One test suite per op, one test case per check and bench: failure is a wrong result, error is none; no wall times."""
    suites = collections.OrderedDict()
    for r in source.of("check") + source.of("bench"):
        suites.setdefault(r["op"], []).append(r)
    _need(source, suites, "check or bench")
    source.say_host_times()
    lines, totals = [], collections.Counter()
    title = "tigon (simulated)" if any(map(is_simulated, source.headers.values())) else "tigon"
    for op, rows in suites.items():
        counts, cases = collections.Counter(tests=len(rows)), []
        for r in rows:
            kind = _junit_kind(r["verdict"])
            counts[kind] += 1
            rest = r["case_id"].split("/", 1)[-1]
            where = r["executor"] if r["record"] == "check" else f"{r['executor']}, {r['basis']}"
            seconds = r.get("seconds_s") if r["record"] == "check" else r["median_s"]
            names = f'classname={quoteattr(_xml(op + "." + r["impl"]))} name={quoteattr(_xml(f"{rest} [{where}]"))}'
            time = "" if records.is_host_time(r) else f' time="{seconds or 0:.9f}"'
            head = f"  <testcase {names}{time}"
            reason = _xml(r.get("reason") or "")
            if kind == "passed":
                cases.append(head + "/>")
            elif kind == "skipped":
                cases.append(f'{head}><skipped message={quoteattr(r["verdict"] + ": " + reason)}/></testcase>')
            else:
                repro = f"\nrepro: {escape(_xml(r['repro']))}" if r.get("repro") else ""
                cases.append(f'{head}><{kind} type={quoteattr(r["verdict"])} message={quoteattr(reason)}>'
                             f'{escape(reason)}{repro}</{kind}></testcase>')
        totals += counts
        lines += [f' <testsuite name={quoteattr(_xml(op))} tests="{counts["tests"]}" failures="{counts["failure"]}" '
                  f'errors="{counts["error"]}" skipped="{counts["skipped"]}">', *cases, " </testsuite>"]
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>',
                      f'<testsuites name="{title}" tests="{totals["tests"]}" failures="{totals["failure"]}" '
                      f'errors="{totals["error"]}" skipped="{totals["skipped"]}">', *lines, "</testsuites>"]) + "\n"


def _junit_kind(verdict):
    if records.outcome_of(verdict) != "failed":
        return records.outcome_of(verdict)
    return "error" if verdict in records.BROKEN else "failure"


def prometheus(source):
    """Gauges of the newest record of each case in the text format of a node exporter's textfile collector."""
    families = {
        "tigon_bench_median_seconds": "Median time of a case.", "tigon_memory_peak_bytes": "Peak memory of a call.",
        "tigon_check_passed": "1 when the case agrees with the oracle.",
        "tigon_check_error_over_budget": "Worst error over its rounding budget.",
        "tigon_ceiling": "Measured ceiling of the device."}
    values = {name: {} for name in families}
    for r in source.records:
        header = source.header(r)
        labels = {"device": device_of(header), "simulated": "1" if is_simulated(header) else None}
        if "case_id" in r:
            labels |= {key: r.get(key) for key in ("op", "pass", "impl", "dtype", "basis",
                                                   "executor")} | {"case": r["case_id"]}
        for name, value, more in _gauges(r):
            values[name][tuple((k, str(v)) for k, v in sorted({**labels, **more}.items())
                               if v not in (None, ""))] = value
    lines = []
    for name, text in families.items():
        if values[name]:
            lines += [f"# HELP {name} {text}", f"# TYPE {name} gauge"]
            lines += [f"{name}{{{','.join(f'{k}={_label(v)}' for k, v in labels)}}} {value!r}"
                      for labels, value in values[name].items()]
    return "\n".join(_need(source, lines, "bench, memory or check")) + "\n"


def _label(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _gauges(r):
    kind = r["record"]
    if kind == "bench" and r["verdict"] == "passed":
        yield "tigon_bench_median_seconds", r["median_s"], {}
    elif kind == "memory" and (peak := records.peak_bytes(r)) is not None:
        yield "tigon_memory_peak_bytes", peak, {}
    elif kind == "ceiling" and r["value"] is not None and not r.get("block"):
        yield "tigon_ceiling", r["value"], {"name": r["name"], "unit": r["unit"]}
    elif kind == "check":
        yield "tigon_check_passed", int(r["verdict"] == "passed"), {}
        errors = [v for o in r.get("outputs") or [] if isinstance(o, dict)
                  and (v := o.get("error_over_budget")) is not None]
        if errors:
            yield "tigon_check_error_over_budget", max(errors), {}


FORMATS = {
    "google-benchmark": google_benchmark, "github-action-benchmark": action_benchmark, "otava": otava, "csv": tidy_csv,
    "junit": junit, "prometheus": prometheus,
}
HOST_TIMES = ("csv", "junit")  # the formats that name them as what they are, or show their verdicts without them


def main(argv):
    parser = Parser("export", "Write records in another tool's format.",
                    ["results/RUN --format google-benchmark -o run.json", "results --format otava -o history.csv"])
    formats = "\n".join(f"  {name:<24} {function.__doc__.splitlines()[0]}" for name, function in FORMATS.items())
    parser.epilog += f"\n\nformats:\n{formats}"
    parser.add_argument("runs", nargs="+", help="results folders, folders of them, or records files")
    parser.add_argument("--format", required=True, choices=FORMATS, metavar="FORMAT", help=", ".join(FORMATS))
    parser.add_argument("-o", "--out", default="-", help="file to write; - is standard output (default)")
    arguments = parser.parse_args(argv)
    source = Source(arguments.runs, lambda text: say("export", text))
    if arguments.format not in HOST_TIMES:
        source.leave_out_host_times()
    text = FORMATS[arguments.format](source)
    merge.write_whole(arguments.out, [text.encode("utf-8")])
