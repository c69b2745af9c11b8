# SPDX-License-Identifier: Apache-2.0
"""What the report shows of the gates: false-alarm rate and smallest effects (A/A), the cells of a gate, static facts."""
import collections

ORDER = {"slower": 0, "inconclusive": 1, "faster": 2, "same": 3}


def _name(case_id):
    return case_id.split(",inputs=")[0]


def aa(run):
    """The A/A of a run: its suite record, and its cells with the smallest slow-down that is found; None without one."""
    suite = next((r for r in run.of("aa") if r["scope"] == "suite"), None)
    if suite is None:
        return None
    cells = [{**r, "name": _name(r["case_id"])} for r in run.of("aa") if r["scope"] == "cell"]
    return {"suite": suite, "cells": cells, "rates": [(kind, suite[kind]) for kind in ("measured", "simulated")]}


def gate(run):
    """Base against head: the suite record and its cells, worst first; None without one."""
    suite = next((r for r in run.of("gate") if r["scope"] == "suite"), None)
    if suite is None:
        return None
    cells = [{**r, "name": _name(r["case_id"])} for r in run.of("gate") if r["scope"] == "cell"]
    return {"suite": suite, "cells": sorted(cells, key=lambda r: (ORDER[r["outcome"]], -r["change"]))}


def static(run):
    """Kernels per op and architecture, and every changed number with kernel and cause; None without records."""
    records = run.of("static")
    if not records:
        return None
    groups, changes = collections.OrderedDict(), []
    for record in records:
        if record["scope"] == "kernel":
            groups.setdefault((record["op"], record["arch"]), []).append(record)
        for change in record.get("changes") or []:
            changes.append({**change, "where": f"{record['kernel']} {record['arch']}" if record["scope"] == "kernel"
                            else _name(record["case_id"])})
    rows = []
    for (op, arch), kernels in groups.items():
        numbers = [kernel["numbers"] for kernel in kernels]
        rows.append({"op": op, "arch": arch, "kernels": len(kernels),
                     "changed": sum(kernel["same_code"] is False for kernel in kernels),
                     "registers": max(n.get("registers", 0) for n in numbers),
                     **{key: sum(n.get(key, 0) for n in numbers)
                        for key in ("spill_bytes", "stack_bytes", "code_bytes", "loads_16", "stores_16")}})
    effects = {"blocks": 0, "accepted": 1, "warns": 2, "better": 3}
    return {"rows": rows, "changes": sorted(changes, key=lambda change: effects[change["effect"]])}


def is_planted(run):
    """Whether a recorded gate had to find a kernel that was made slower on purpose: its file says so, *-planted.jsonl."""
    return run.path.stem.endswith("-planted")


def in_short(runs):
    """What recorded gates found, of all together: {aa: [{run, found}], devices, planted and compared: {gates, outcomes, slower}}."""
    found = [(run, of(run)) for run in runs]
    compared = {planted: [(run, one["gate"]) for run, one in found if one and one["gate"] and is_planted(run) == planted] for planted in (False, True)}
    return {"aa": [{"run": run, "found": one} for run, one in found if one and one["aa"]],
            "compared": _joined(compared[False]), "planted": _joined(compared[True])}


def _joined(gates_of):
    """None without a gate."""
    outcomes = collections.Counter()
    for _, one in gates_of:
        outcomes.update(one["suite"]["outcomes"])
    devices = sorted({one["suite"]["device_name"] or run.device for run, one in gates_of})
    return {"gates": len(gates_of), "outcomes": outcomes, "cells": sum(outcomes.values()), "devices": devices} if gates_of else None


def of(run):
    """All of it; None when the run holds no gate."""
    found = {"aa": aa(run), "gate": gate(run), "static": static(run)}
    return found if any(found.values()) else None
