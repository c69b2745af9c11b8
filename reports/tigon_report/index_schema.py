# SPDX-License-Identifier: Apache-2.0
"""The tables and views of an index, the same in SQLite and PostgreSQL, and the rows that a record becomes."""
import json

from . import records, schema

VERSION = 2
TEXT, INTEGER, REAL = "text", "integer", "real"
LARGEST = 2**63  # what an integer column holds
# A column of runs and where the record of a run, or of its end, has it.
RUN_FIELDS = {
    "time": ("started",), "commit_sha": ("tool", "commit"), "dirty": ("tool", "dirty"),
    "version": ("tool", "version"), "command": ("command",), "seed": ("seed",), "device_kind": ("device", "kind"),
    "device": ("device", "name"), "device_uuid": ("device", "uuid"), "driver": ("device", "driver"),
    "runtime": ("device", "runtime"), "host": ("host", "name"), "cpu": ("host", "cpu"), "os": ("host", "os"),
    "preset": ("build", "preset"), "compiler": ("build", "compiler"), "shard_index": ("shard", "index"),
    "shard_count": ("shard", "count"), "tags": ("tags",),
}
END_FIELDS = ("passed", "failed", "skipped", "exit_code", "seconds_s", "interrupted")
# Fields of records that are columns.
RECORD_FIELDS = (
    "executor", "basis", "verdict", "reason", "median_s", "q1_s", "q3_s", "n", "bandwidth_bytes_per_s", "flop_rate_per_s",
    "share_of_copy", "share_of_gemm", "tensors_bytes", "workspace_bytes", "planned_bytes", "arena_bytes", "device_bytes",
    "host_bytes", "traffic_ratio", "value", "unit", "final_loss", "tokens_per_s", "peak_bytes", "repro")
WORST_OUTPUT = ("error_over_budget", "rms_over_budget")  # of the outputs of a check


def _column(types):
    """The type of a column for values of these Python types; lists and objects become JSON."""
    types = set(types) - {type(None)}
    return REAL if float in types else INTEGER if types <= {int, bool} else TEXT


def _fields(kind, names):
    return {name: _column(schema.field_types(kind)[name]) for name in names}


TABLES = {
    "tigon_index": {"version": INTEGER, "made": TEXT},
    "runs": {"run_id": TEXT, **{name: _column(schema.types_at("run", *path)) for name, path in RUN_FIELDS.items()},
             "simulated": INTEGER, **_fields("end", END_FIELDS), "file": TEXT},
    # axes and options are JSON; sizes has each axis of a case as a row, for plain conditions
    "cases": _fields("bench", ("case_key", "case_id", "op", "pass", "impl", "dtype", "axes", "options")),
    "sizes": {"case_key": TEXT, "axis": TEXT, "size": INTEGER},
    "records": {"id": INTEGER, "run_id": TEXT, "kind": TEXT, "time": TEXT, "case_key": TEXT, "name": TEXT,
                **{name: _column(schema.types_anywhere(name)) for name in RECORD_FIELDS},
                **dict.fromkeys(WORST_OUTPUT, REAL), "file": TEXT, "line": INTEGER},
}
KEYS = {"runs": "run_id", "cases": "case_key", "records": "id"}
INDEXES = {"records_by_case": "records (case_key, basis, run_id)", "records_by_run": "records (run_id, kind)",
           "records_by_kind": "records (kind)", "sizes_by_axis": "sizes (axis, size)"}
_WHERE = "r.run_id, u.time AS run_time, u.commit_sha, u.device, u.driver, u.simulated"
_CASE = "c.op, c.pass, c.impl, c.dtype, c.axes, c.options, c.case_id, r.case_key"
_FROM = "FROM records r JOIN runs u ON u.run_id = r.run_id JOIN cases c ON c.case_key = r.case_key"
VIEWS = {
    "bench": f"""SELECT {_WHERE}, {_CASE}, r.basis, r.executor, r.verdict, r.reason, r.median_s, r.q1_s, r.q3_s, r.n,
      r.bandwidth_bytes_per_s, r.flop_rate_per_s, r.share_of_copy, r.share_of_gemm, r.file, r.line
      {_FROM} WHERE r.kind = 'bench'""",
    "memory": f"""SELECT {_WHERE}, {_CASE}, r.tensors_bytes, r.workspace_bytes, r.planned_bytes, r.arena_bytes,
      r.device_bytes, r.host_bytes, r.file, r.line {_FROM} WHERE r.kind = 'memory'""",
    "checks": f"""SELECT {_WHERE}, {_CASE}, r.executor, r.verdict, r.reason, r.error_over_budget, r.rms_over_budget,
      r.repro, r.file, r.line {_FROM} WHERE r.kind = 'check'""",
    "failures": f"""SELECT {_WHERE}, r.kind, {_CASE}, r.executor, r.verdict, r.reason, r.repro, r.file, r.line
      {_FROM} WHERE r.verdict NOT IN {("passed", *records.SKIPPED)}""",
    "latest": """SELECT * FROM (SELECT b.*, ROW_NUMBER() OVER (PARTITION BY case_key, basis, executor, device
      ORDER BY run_time DESC, run_id DESC) AS age FROM bench b) newest WHERE age = 1""",
    "speed_up": """SELECT f.run_id, f.run_time, f.commit_sha, f.device, f.simulated, f.op, f.pass, f.impl, f.dtype,
      f.axes, f.basis, f.median_s, n.median_s AS naive_s, n.median_s / f.median_s AS speed_up FROM bench f JOIN bench n
      ON n.run_id = f.run_id AND n.op = f.op AND n.pass = f.pass AND n.dtype = f.dtype AND n.axes = f.axes
      AND n.options = f.options AND n.basis = f.basis AND n.executor = f.executor
      WHERE n.impl = 'naive' AND f.impl <> 'naive' AND f.median_s > 0""",
}
HELP = """tables: runs, cases, sizes, records; views: bench, memory, checks, failures, latest (the newest bench record of each
case, basis and device), speed_up (against naive in the same run). file and line say where a record stands.

queries, with sqlite3 index.sqlite or psql:
  -- the history of one case
  SELECT run_time, commit_sha, device, driver, median_s * 1e6 AS us FROM bench
    WHERE op = 'rms_norm' AND pass = 'forward' AND impl = 'fused' AND basis = 'cold'
    AND case_key IN (SELECT case_key FROM sizes WHERE axis = 'T' AND size = 4096) ORDER BY run_time;
  -- what failed last
  SELECT run_time, case_id, verdict, reason FROM failures ORDER BY run_time DESC LIMIT 20;
  -- the least speed-up over naive of every op in the newest run
  SELECT op, pass, MIN(speed_up) FROM speed_up WHERE run_id = (SELECT MAX(run_id) FROM runs) GROUP BY op, pass;
  -- cells below half of the copy bandwidth
  SELECT case_id, share_of_copy FROM latest WHERE impl = 'fused' AND share_of_copy < 0.5 ORDER BY share_of_copy;"""


def _text(value):
    return None if value is None else value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _value(column, value):
    """What a column holds of a value."""
    if column == TEXT:
        return _text(value)
    return int(value) if isinstance(value, bool) else _number(value)


def _at(record, path):
    for key in path:
        record = record.get(key) if isinstance(record, dict) else None
    return record


def run_row(line):
    """The row of runs without what the end record adds."""
    r = line.record
    row = {name: _value(TABLES["runs"][name], _at(r, path)) for name, path in RUN_FIELDS.items()}
    return row | {"run_id": r["run_id"], "time": row["time"] or r.get("time"), "device": row["device"] or row["device_kind"],
                  "command": " ".join(map(str, r.get("command") or ())),
                  "simulated": int("simulated" in (r.get("tags") or {})), "file": line.file}


def end_row(record):
    """What the end record adds to the row of its run."""
    return {name: _value(TABLES["runs"][name], record.get(name)) for name in END_FIELDS}


def case_row(record):
    """The row of cases; None for a record of no case."""
    if "case_id" not in record:
        return None
    parts = (record["case_id"].split("/") + [None] * 4)[:4]
    op, pass_name, impl, dtype = (_text(record.get(key, part)) for key,
                                  part in zip(("op", "pass", "impl", "dtype"), parts))
    return (record["case_key"], record["case_id"], op, pass_name, impl, dtype, _text(_axes(record)),
            _text(record.get("options") or {}))


def size_rows(record):
    """The rows of sizes of a record's case."""
    return [(record["case_key"], axis, size) for axis, size in _axes(record).items()]


def _axes(record):
    return {name: _number(value) for name, value in records.axes_of(record).items()}


def record_row(number, line):
    """The row of records, its values in the order of TABLES["records"]."""
    r = line.record
    outputs = r.get("outputs") if r["record"] == "check" else None
    return (number, r["run_id"], r["record"], r.get("time"), r.get("case_key"), _text(r.get("name") or r.get("config")),
            *(_value(TABLES["records"][name], r.get(name)) for name in RECORD_FIELDS),
            *(_worst(outputs, name) for name in WORST_OUTPUT), line.file, line.number)


def _number(value):
    """A value that a column of numbers can hold, or None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if isinstance(value, float) or abs(value) < LARGEST else None


def _worst(outputs, key):
    values = [v for o in outputs or () if isinstance(o, dict) and (v := _number(o.get(key))) is not None]
    return max(values, default=None)
