"""The tables and views of an index, the same in SQLite and PostgreSQL, and the rows that a record becomes."""
import json

from . import records

VERSION = 1
TEXT, INTEGER, REAL = "text", "integer", "real"
TABLES = {
    "tigon_index": {"version": INTEGER, "made": TEXT},
    "runs": {
        "run_id": TEXT, "time": TEXT, "commit_sha": TEXT, "dirty": INTEGER, "version": TEXT, "command": TEXT,
        "seed": INTEGER,
        "device_kind": TEXT, "device": TEXT, "device_uuid": TEXT, "driver": TEXT, "runtime": TEXT, "host": TEXT,
        "cpu": TEXT,
        "os": TEXT, "preset": TEXT, "compiler": TEXT, "shard_index": INTEGER, "shard_count": INTEGER,
        "simulated": INTEGER,
        "tags": TEXT, "passed": INTEGER, "failed": INTEGER, "skipped": INTEGER, "exit_code": INTEGER, "seconds_s": REAL,
        "interrupted": INTEGER, "file": TEXT,
    },
    # axes and options are JSON; t, v and h repeat the axes T, V and H for plain conditions
    "cases": {"case_key": TEXT, "case_id": TEXT, "op": TEXT, "pass": TEXT, "impl": TEXT, "dtype": TEXT, "axes": TEXT,
              "options": TEXT, "t": INTEGER, "v": INTEGER, "h": INTEGER},
    "records": {
        "id": INTEGER, "run_id": TEXT, "kind": TEXT, "time": TEXT, "case_key": TEXT, "name": TEXT, "executor": TEXT,
        "basis": TEXT, "verdict": TEXT, "reason": TEXT, "median_s": REAL, "q1_s": REAL, "q3_s": REAL, "n": INTEGER,
        "bandwidth_bytes_per_s": REAL, "flop_rate_per_s": REAL, "share_of_copy": REAL, "share_of_gemm": REAL,
        "tensors_bytes": REAL, "workspace_bytes": REAL, "planned_bytes": REAL, "arena_bytes": REAL,
        "device_bytes": REAL,
        "host_bytes": REAL, "error_over_budget": REAL, "rms_over_budget": REAL, "traffic_ratio": REAL, "value": REAL,
        "unit": TEXT, "final_loss": REAL, "tokens_per_s": REAL, "peak_bytes": REAL, "repro": TEXT, "file": TEXT,
        "line": INTEGER,
    },
}
KEYS = {"runs": "run_id", "cases": "case_key", "records": "id"}
INDEXES = {"records_by_case": "records (case_key, basis, run_id)", "records_by_run": "records (run_id, kind)",
           "records_by_kind": "records (kind)"}
_WHERE = "r.run_id, u.time AS run_time, u.commit_sha, u.device, u.driver, u.simulated"
_CASE = "c.op, c.pass, c.impl, c.dtype, c.axes, c.options, c.t, c.v, c.h, c.case_id, r.case_key"
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
      {_FROM} WHERE r.verdict NOT IN ('passed', 'unsupported', 'skipped', 'not_run')""",
    "latest": """SELECT * FROM (SELECT b.*, ROW_NUMBER() OVER (PARTITION BY case_key, basis, executor, device
      ORDER BY run_time DESC, run_id DESC) AS age FROM bench b) newest WHERE age = 1""",
    "speed_up": """SELECT f.run_id, f.run_time, f.commit_sha, f.device, f.simulated, f.op, f.pass, f.impl, f.dtype,
      f.axes, f.basis, f.median_s, n.median_s AS naive_s, n.median_s / f.median_s AS speed_up FROM bench f JOIN bench n
      ON n.run_id = f.run_id AND n.op = f.op AND n.pass = f.pass AND n.dtype = f.dtype AND n.axes = f.axes
      AND n.options = f.options AND n.basis = f.basis AND n.executor = f.executor
      WHERE n.impl = 'naive' AND f.impl <> 'naive' AND f.median_s > 0""",
}
HELP = """tables: runs, cases, records; views: bench, memory, checks, failures, latest (the newest bench record of each
case, basis and device), speed_up (against naive in the same run). file and line say where a record stands.

queries, with sqlite3 index.sqlite or psql:
  -- the history of one case
  SELECT run_time, commit_sha, device, driver, median_s * 1e6 AS us FROM bench
    WHERE op = 'rms_norm' AND pass = 'forward' AND impl = 'fused' AND t = 4096 AND basis = 'cold' ORDER BY run_time;
  -- what failed last
  SELECT run_time, case_id, verdict, reason FROM failures ORDER BY run_time DESC LIMIT 20;
  -- the least speed-up over naive of every op in the newest run
  SELECT op, pass, MIN(speed_up) FROM speed_up WHERE run_id = (SELECT MAX(run_id) FROM runs) GROUP BY op, pass;
  -- cells below half of the copy bandwidth
  SELECT case_id, share_of_copy FROM latest WHERE impl = 'fused' AND share_of_copy < 0.5 ORDER BY share_of_copy;"""


def _text(value):
    return None if value is None else value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _flag(value):
    return None if value is None else int(bool(value))


def run_row(line):
    """The row of runs without what the end record adds."""
    r = line.record
    tool, host, device = r.get("tool") or {}, r.get("host") or {}, r["device"]
    build, shard, tags = r.get("build") or {}, r.get("shard") or {}, r.get("tags") or {}
    command = r.get("command")
    return {
        "run_id": r["run_id"], "time": _text(r.get("started") or r.get("time")),
        "commit_sha": _text(tool.get("commit")),
        "dirty": _flag(tool.get("dirty")), "version": _text(tool.get("version")),
        "command": " ".join(map(str, command)) if isinstance(command, list) else _text(command),
        "seed": _number(r.get("seed")),
        "device_kind": _text(device.get("kind")), "device": _text(device.get("name") or device.get("kind")),
        "device_uuid": _text(device.get("uuid")), "driver": _text(device.get("driver")),
        "runtime": _text(device.get("runtime")),
        "host": _text(host.get("name")), "cpu": _text(host.get("cpu")), "os": _text(host.get("os")),
        "preset": _text(build.get("preset")), "compiler": _text(build.get("compiler")),
        "shard_index": _number(shard.get("index")),
        "shard_count": _number(shard.get("count")), "simulated": int("simulated" in tags), "tags": _text(tags),
        "file": line.file,
    }


def end_row(record):
    """What the end record adds to the row of its run."""
    return {key: _flag(record.get(key)) if key == "interrupted" else _number(record.get(key))
            for key in ("passed", "failed", "skipped", "exit_code", "seconds_s", "interrupted")}


def case_row(record):
    """The row of cases; None for a record of no case."""
    if "case_id" not in record:
        return None
    axes = {name: _number(value) for name, value in records.axes_of(record).items()}
    parts = (record["case_id"].split("/") + [None] * 4)[:4]
    op, pass_name, impl, dtype = (_text(record.get(key, part)) for key,
                                  part in zip(("op", "pass", "impl", "dtype"), parts))
    return (record["case_key"], record["case_id"], op, pass_name, impl, dtype, _text(axes),
            _text(record.get("options") or {}),
            axes.get("T"), axes.get("V"), axes.get("H"))


def record_row(number, line):
    """The row of records, its values in the order of TABLES["records"]."""
    r = line.record
    kind, get = r["record"], r.get
    worst = rms = None
    if kind == "check":
        worst = _worst(get("outputs"), "error_over_budget")
        rms = _worst(get("outputs"), "rms_over_budget")
    verdict = get("verdict")
    return (number, r["run_id"], kind, get("time"), get("case_key"), _text(get("name") or get("config")),
            _text(get("executor")),
            _text(get("basis")), verdict if isinstance(verdict, str) else None, get("reason"), _number(get("median_s")),
            get("q1_s"),
            get("q3_s"), get("n"), _number(get("bandwidth_bytes_per_s")), _number(get("flop_rate_per_s")),
            _number(get("share_of_copy")), _number(get("share_of_gemm")), get("tensors_bytes"), get("workspace_bytes"),
            get("planned_bytes"), get("arena_bytes"), get("device_bytes"), get("host_bytes"), worst, rms,
            _number(get("traffic_ratio")), _number(get("value")), _text(get("unit")), _number(get("final_loss")),
            _number(get("tokens_per_s")), _number(get("peak_bytes")), get("repro"), line.file, line.number)


def _number(value):
    """A value that a column of numbers can hold, or None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if isinstance(value, float) or abs(value) < 2**63 else None


def _worst(outputs, key):
    values = [v for o in outputs or () if isinstance(o, dict) and (v := _number(o.get(key))) is not None]
    return max(values, default=None)
