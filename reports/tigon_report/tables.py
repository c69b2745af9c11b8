# SPDX-License-Identifier: Apache-2.0
"""Rows of the report's tables, made from records."""
import collections

from . import units
from .records import outcome_of

OURS = "fused"


def _worst(values):
    values = [value for value in values if value is not None]
    return max(values) if values else None


def verdict_counts(run):
    """How many checks of the run passed, failed and were skipped (unsupported counts as skipped)."""
    counts = collections.Counter(outcome_of(record["verdict"]) for record in run.of("check"))
    return {kind: counts[kind] for kind in ("passed", "failed", "skipped")}


def totals(run):
    """What the terminal's last line counted; of a run that has not ended its checks."""
    counts = verdict_counts(run)
    return {kind: run.end.get(kind, 0) for kind in counts} if run.end else counts


def verdict(run):
    """The run in one line: the terminal's last, and what else it tried."""
    counts, planted, injected, soaked = totals(run), mutants(run), faults(run), soak(run)
    parts = ["{passed} passed, {failed} failed, {skipped} skipped".format(**counts)] if run.end or any(counts.values()) else []
    if planted["planted"]:
        parts.append(f"{planted['caught']} of {planted['planted']} planted faults caught")
    if injected["injected"]:
        parts.append(f"{injected['survived']} of {injected['injected']} faults of the world survived")
    if soaked["trials"]:
        parts.append(f"{soaked['false_alarms']} false alarms of the judge in {soaked['trials']:,} random cases")
    return "; ".join(parts or ["nothing was judged"])


def correctness(run):
    """One row per op, pass, implementation, dtype and executor, with the least head-room to the budget of its cases."""
    groups = collections.defaultdict(list)
    for record in run.of("check"):
        groups[tuple(record[key] for key in ("op", "pass", "impl", "dtype", "executor"))].append(record)
    rows = []
    for key, records in groups.items():
        outputs = [output for record in records for output in record.get("outputs") or []]
        verdicts = collections.Counter(record["verdict"] for record in records)
        rows.append({
            "op": key[0], "pass": key[1], "impl": key[2], "dtype": key[3], "executor": key[4],
            "cases": len(records), "passed": verdicts["passed"],
            "others": {name: count for name, count in sorted(verdicts.items()) if name != "passed"},
            "worst": _worst(output.get("error_over_budget") for output in outputs),
            "rms": _worst(output.get("rms_over_budget") for output in outputs),
        })
    return rows


def of_cell(record):
    """What the implementations of a cell have in common."""
    return (record["op"], record["pass"], record["dtype"], tuple(sorted(record["axes"].items())),
            tuple(sorted((record.get("options") or {}).items())))


def _cell_key(record):
    return (*of_cell(record), record.get("basis", ""))


def _beside_naive(run, kind):
    """(record, that of naive in the same cell, or None) of every record of a kind."""
    naive = {_cell_key(record): record for record in run.of(kind) if record["impl"] == "naive"}
    for record in run.of(kind):
        base = naive.get(_cell_key(record))
        yield record, None if base is record else base


def _by_pass(rows):
    sections = collections.OrderedDict()
    for row in rows:
        sections.setdefault((row["op"], row["pass"]), []).append({**row, "where": units.axes_text(row["axes"])})
    return sections


def _speed_row(record, base):
    computes = record.get("bound") == "compute"
    rate = (record.get("flop_rate_per_s"), "flop_per_s") if computes else \
        (record.get("bandwidth_bytes_per_s"), "bytes_per_s")
    timed = base and base.get("median_s") and record.get("median_s")
    return {**record, "speed_up": base["median_s"] / record["median_s"] if timed else None,
            "share": record.get("share_of_gemm" if computes else "share_of_copy"), "rate": units.rate(*rate)}


def _memory_row(record, base):
    ratio = None
    if base and record.get("arena_bytes") is not None and base.get("arena_bytes"):
        total = base["tensors_bytes"] + base["arena_bytes"]
        ratio = total / (record["tensors_bytes"] + record["arena_bytes"])
    return {**record, "smaller": ratio}


def speed(run):
    """Bench records by op and pass; each row carries the speed-up over naive in the same cell, where both ran."""
    return _by_pass(_speed_row(*pair) for pair in _beside_naive(run, "bench"))


def largest(rows):
    """Of the speed rows of a pass the one to show where there is room for one: ours, bf16 and cold, the largest size."""
    def rank(row):
        return (row["impl"] == OURS, row["dtype"] == "bf16", row["basis"] == "cold", row.get("bytes_min_bytes") or 0,
                row.get("flop") or 0)

    timed = [row for row in rows if row.get("median_s")]
    return max(timed, key=rank) if timed else None


def memory(run):
    """Memory records by op and pass; each row carries the ratio of extra bytes to naive in the same cell."""
    return _by_pass(_memory_row(*pair) for pair in _beside_naive(run, "memory"))


def ceilings(run):
    """The ceilings of the whole run, not those that were measured again beside a block of measurements."""
    return [record for record in run.of("ceiling") if not record.get("block")]


def traffic(run):
    """Counted traffic of the host executor beside the least bytes of the contract."""
    return [{**record, "where": units.axes_text(record["axes"])} for record in run.of("trace")]


GROUPS_OF_FAULTS = {
    "numeric": "wrong numbers", "memory_sync": "wrong accesses, missing synchronisation",
    "sampled": "mutants drawn by chance, caught by any case of the op", "comparator": "rules of the comparator broken", "cheat": "plug-in kernels that cheat",
    "training": "faults in kernels that a training ran on"}


def mutants(run):
    """The score of planted faults: rows per group and op, what was not caught, and equivalents with their proof.

    A row's `scores` maps a dtype ("" for groups that have none, and for sampled ones, which any may catch) to (caught, planted).
    """
    rows, survivors, equivalents = collections.OrderedDict(), [], collections.OrderedDict()
    elsewhere = collections.OrderedDict()
    for record in run.of("mutant"):
        outcome, where = record["outcome"], (record["group"], record.get("op", ""))
        if outcome == "equivalent":
            place = f"{record['op']} {record['pass']} {record['dtype']}"
            equivalents.setdefault((record["mutant"], record["what"], record["reason"]), []).append(place)
            continue
        if outcome == "not_applicable":
            elsewhere.setdefault(record["reason"], set()).add(record["mutant"])
            continue
        dtype = "" if record["group"] == "sampled" else record.get("dtype", "")
        caught, planted = rows.setdefault(where, {}).get(dtype, (0, 0))
        rows[where][dtype] = (caught + (outcome == "caught"), planted + 1)
        if outcome != "caught":
            survivors.append(record)
    scores = [score for row in rows.values() for score in row.values()]
    return {
        "rows": [{"group": group, "meaning": GROUPS_OF_FAULTS.get(group, ""), "op": op, "scores": row}
                 for (group, op), row in rows.items()],
        "dtypes": sorted({dtype for row in rows.values() for dtype in row if dtype}),
        "without_dtype": any("" in row for row in rows.values()),
        "caught": sum(caught for caught, _ in scores), "planted": sum(planted for _, planted in scores),
        "survivors": survivors,
        "equivalents": [{"mutant": key[0], "what": key[1], "proof": key[2], "where": where}
                        for key, where in equivalents.items()],
        "elsewhere": [{"reason": reason, "mutants": sorted(names)} for reason, names in elsewhere.items()],
    }


def faults(run):
    """Faults of the world: those that were injected, and those that could not be."""
    skipped = [record for record in run.of("fault") if record["outcome"] == "skipped"]
    rows = [record for record in run.of("fault") if record["outcome"] != "skipped"]
    return {"rows": rows, "skipped": skipped, "injected": len(rows),
            "survived": sum(record["outcome"] == "survived" for record in rows)}


def soak(run):
    """What soak runs found: correct kernels over random cases per op, dtype and executor, repeats, head-room, rounding."""
    absent = dict.fromkeys(("op", "dtype", "trials", "false_alarms", "skipped", "first_seed", "repeats", "cases",
                            "failed", "differing_verdicts", "differing"))
    records = [{**absent, **record} for record in run.of("soak")]
    seeds = [record for record in records if record["mode"] == "seeds"]
    trials, alarms = (sum(record.get(key) or 0 for record in seeds) for key in ("trials", "false_alarms"))
    return {
        "seeds": seeds, "trials": trials, "false_alarms": alarms,
        # No alarm in n trials: with 95 % confidence the rate is below this (the rule of three, exactly).
        "rate_upper_95": 1 - 0.05 ** (1 / trials) if trials and not alarms else None,
        "alarms": [alarm for record in seeds for alarm in record.get("alarms") or []],
        "repeats": [record for record in records if record["mode"] == "repeat"],
        "headroom": run.of("headroom"), "rounding": run.of("rounding"),
    }


def convergence(run):
    """One entry per configuration and dtype: the naive and the fused run, the twins of both, their verdict.

    A run that was interrupted may have one of the runs alone; without a verdict the outcome is that it is not finished.
    """
    entries = collections.OrderedDict()

    def entry_of(record):
        return entries.setdefault((record["config"], record["dtype"]), {"runs": {}, "twins": [], "verdict": None})

    for record in run.of("converge"):
        entry = entry_of(record)
        if record["impl"] == "noise" or record.get("twin"):
            entry["twins"].append(record)
        else:
            entry["runs"][record["impl"]] = record
    for record in run.of("converge_verdict"):
        entry_of(record)["verdict"] = {"equivalence": [], "pairs": [], **record}  # older runs have neither
    for entry in entries.values():
        entry["outcome"] = entry["verdict"]["verdict"] if entry["verdict"] else "not finished"
        for field in ("attention", "launches"):
            entry[field] = ", ".join(dict.fromkeys(r[field] for r in entry["runs"].values() if r.get(field)))
    return entries


def gradients(run):
    """Per dtype: the verdict of the gradients of the first steps, and the worst parameter of each step."""
    rows = []
    for record in run.of("converge_gradients"):
        worst = {}
        for parameter in record["parameters"]:
            share = float("inf") if parameter["error"] is None else parameter["error"] / parameter["budget"]
            if share >= worst.get(parameter["step"], (-1,))[0]:
                worst[parameter["step"]] = (share, parameter)
        rows.append({**record, "worst": [parameter for _, (_, parameter) in sorted(worst.items())]})
    return rows


def states(run):
    """Per dtype: the verdict of the gradients from the same states, and of each state the worst parameter and the longest ratio."""
    rows = []
    for record in run.of("converge_states"):
        worst = {}
        for parameter in record["parameters"]:
            across = parameter["fused"]["across"]
            share = float("inf") if across is None else across / parameter["budget"]
            if share >= worst.get(parameter["step"], (-1,))[0]:
                worst[parameter["step"]] = (share, parameter)
        rows.append({**record, "worst": [{**parameter, "share": share} for _, (share, parameter) in sorted(worst.items())]})
    return rows


def is_alarm(part):
    return part["verdict"] not in ("passed", "not_run")


def seeds(run):
    """The evidence on kernels without a fault: how many seeds gave it, and every part that failed."""
    records = run.of("converge_seed")
    if not records:
        return None
    alarms = [{"seed": record["seed"], **part} for record in records for part in record["parts"] if is_alarm(part)]
    return {"records": records, "alarms": alarms, "seeds": len({alarm["seed"] for alarm in alarms}),
            "training": f"{records[0]['config']}, {records[0]['steps']} steps"}


def controls(run):
    """Faults planted under a training, the step at which each part of its evidence noticed them, or the step of old records."""
    rows = [{"step": 0, "dtype": "", "parts": [], "training": "", **record}
            for record in run.of("mutant") if record["group"] == "training"]
    names = list(dict.fromkeys(part["part"] for row in rows for part in row["parts"]))
    for row in rows:
        found = {part["part"]: part["step"] for part in row["parts"] if is_alarm(part)}
        row["noticed"] = [found.get(name, "") for name in names]
    return {"rows": rows, "names": names} if rows else None


def escapes(controls):
    """(part, the faults that it does not notice) of every part."""
    return [(name, [row["mutant"] for row in controls["rows"] if row["noticed"][index] == ""])
            for index, name in enumerate(controls["names"])]


def environment(run):
    """(name, value) lines of the run's environment block, nested keys joined with a dot."""
    lines = []

    def walk(prefix, value):
        if isinstance(value, dict):
            for key, inner in value.items():
                walk(f"{prefix}.{key}" if prefix else key, inner)
        elif value not in (None, "", []):
            lines.append((prefix, " ".join(map(str, value)) if isinstance(value, list) else str(value)))

    for block in ("tool", "command", "seed", "started", "host", "device", "build", "libraries", "environment", "tags"):
        walk(block, run.header.get(block))
    return lines
