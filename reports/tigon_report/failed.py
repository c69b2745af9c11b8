# SPDX-License-Identifier: Apache-2.0
"""What failed in a run, whatever tried it."""
from . import addresses, gates, tables
from .peers import is_peer
from .records import outcome_of

JUDGED = ("check", "bench", "trace", "converge_verdict", "converge_gradients")  # kinds with a verdict


def of(run):
    """[{outcome, what, reason, repro, page: the file that has it in full}], checks first."""
    return [*judged(run), *_faults(run), *_alarms(run), *_slower(run)]


def judged(run):
    """The same of what has a verdict; what a peer cannot do fails nothing."""
    return [_judged(record) for kind in JUDGED for record in run.of(kind) if outcome_of(record.get("verdict", "passed")) == "failed"
            and not (kind == "bench" and is_peer(record["impl"]))]


def _row(page, outcome, what, reason, repro=""):
    return {"page": page, "outcome": outcome, "what": what, "reason": reason or "", "repro": repro or ""}


def _judged(record):
    if record["record"].startswith("converge"):
        page, what = addresses.TRAINING, f"{record['config']} {record['dtype']}"
    else:
        page, what = addresses.of_op(record["op"]), record["case_id"]
    return _row(page, record["verdict"], what, record.get("reason"), record.get("repro"))


def _faults(run):
    rows = [_row(addresses.of_op(record["op"]) if record.get("op") else addresses.TRUST, record["outcome"], record["mutant"],
                 " ".join(filter(None, (record.get("pass"), record.get("dtype"), record["what"])))) for record in tables.mutants(run)["survivors"]]
    return rows + [_row(addresses.TRUST, record["outcome"].replace("_", " "), f"{record['group']}, {record['fault']}", record["reason"])
                   for record in tables.faults(run)["rows"] if record["outcome"] != "survived"]


def _alarms(run):
    soaked = tables.soak(run)
    rows = [_row(addresses.TRUST, alarm["verdict"], alarm["case_id"], alarm["reason"]) for alarm in soaked["alarms"]]
    return rows + [_row(addresses.TRUST, "another verdict", name, "the suite was repeated")
                   for record in soaked["repeats"] for name in record["differing"] or []]


def _slower(run):
    found = gates.of(run) or {}
    rows = [_row(addresses.TRUST, cell["outcome"], cell["name"], f"{100 * cell['change']:.2f} %")
            for cell in (found.get("gate") or {"cells": []})["cells"] if cell["outcome"] == "slower"]
    return rows + [_row(addresses.TRUST, change["effect"], change["where"], f"{change['number']}: {change['cause']}")
                   for change in (found.get("static") or {"changes": []})["changes"] if change["effect"] == "blocks"]
