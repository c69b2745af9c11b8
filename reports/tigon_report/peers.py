# SPDX-License-Identifier: Apache-2.0
"""The section of a report about peers: ours and what people would use instead, one table and one figure per op."""
import collections

from . import figures as draw
from . import statistics, units
from .tables import OURS, of_cell

LEVEL, AHEAD, BEHIND = "level", "ahead", "behind"


def is_peer(impl):
    return not impl.startswith(("fused", "naive", "cudnn", "oracle", "plugin:"))


def _interval(record):
    """99% interval of a record's median, from its samples or, of a slimmed record, its quartiles."""
    if samples := record.get("samples_s"):
        return statistics.median_interval(samples)
    return statistics.median_interval_of_quartiles(record["median_s"], record["q1_s"], record["q3_s"], record["n"])


def against(ours, peer):
    """{ratio: the peer's time over ours, low, high, outcome} of two bench records; ahead is ours."""
    mine, theirs = _interval(ours), _interval(peer)
    low, high = theirs.low / mine.high, theirs.high / max(mine.low, 1e-12)
    outcome = AHEAD if low > 1 else BEHIND if high < 1 else LEVEL
    return {"ratio": peer["median_s"] / ours["median_s"], "low": low, "high": high, "outcome": outcome}


def _extra(memory):
    return None if memory is None else memory.get("arena_bytes")


def _worst(values):
    return max(float("inf") if value is None else value for value in values)  # null: not finite


def _errors(run):
    """{(op, pass, dtype, options, implementation): (relative L2 error, share of the budget)}, the worst of the outputs that
    all implementations of a case returned."""
    cases, found = collections.defaultdict(list), {}
    for record in run.of("accuracy"):
        if record["outputs"]:
            cases[of_cell(record)].append(record)
    for records in cases.values():
        shared = set.intersection(*({output["name"] for output in record["outputs"]} for record in records))
        for record in records:
            outputs = [output for output in record["outputs"] if output["name"] in shared]
            key = (*of_cell(record)[:3], of_cell(record)[-1], record["impl"])
            errors = [_worst(output[name] for output in outputs) for name in ("relative_l2", "error_over_budget")] if outputs else [0, 0]
            found[key] = tuple(map(max, errors, found.get(key, (0, 0))))
    return found


def rows_of(run):
    """Rows by op: every implementation of a cell that a peer ran in, on every basis: ours, the peers, then the baselines."""
    bench, errors = run.of("bench"), _errors(run)
    cells = cells_of(run)
    memory = {(of_cell(record), record["impl"]): record for record in run.of("memory")}
    ours = {(of_cell(record), record["basis"]): record for record in bench
            if record["impl"] == OURS and record["verdict"] == "passed" and record.get("median_s")}
    rows = collections.OrderedDict()
    for record in sorted((r for r in bench if of_cell(r) in cells), key=lambda r: (of_cell(r), r["basis"], r["impl"] != OURS, not is_peer(r["impl"]))):
        cell = of_cell(record)
        mine = ours.get((cell, record["basis"]))
        timed = record["verdict"] == "passed" and record.get("median_s") and record["executor"] == "cuda"
        compared = against(mine, record) if timed and mine and mine is not record else None
        share = "share_of_gemm" if record.get("bound") == "compute" else "share_of_copy"
        l2, budget = errors.get((*cell[:3], cell[-1], record["impl"]), (None, None))
        rows.setdefault(record["op"], []).append(
            {"method": "", **record, "where": units.axes_text(record["axes"]), "timed": timed, "against": compared, "share": record.get(share),
             "extra_bytes": _extra(memory.get((cell, record["impl"]))), "l2": l2, "over_budget": budget, "cell": cell})
    return rows


def figure(figures, op, rows):
    """Time over ours with its interval, a row per cell; right of the line ours is ahead."""
    drawn = [row for row in rows if row["against"] and row["basis"] == "cold"] or [row for row in rows if row["against"]]
    if not drawn:
        return None
    labels = list(dict.fromkeys((row["cell"], f"{row['pass']} {row['dtype']} {row['where']}") for row in drawn))
    at = {cell: index for index, (cell, _) in enumerate(labels)}
    peers = sorted({row["impl"] for row in drawn})

    def drawing(ax, theme):
        for index, peer in enumerate(peers):
            mine = [row for row in drawn if row["impl"] == peer]
            ax.errorbar([row["against"]["ratio"] for row in mine],
                        [at[row["cell"]] + 0.6 * (index / max(len(peers) - 1, 1) - 0.5) for row in mine],
                        xerr=[[max(row["against"]["ratio"] - row["against"]["low"], 0) for row in mine],
                              [max(row["against"]["high"] - row["against"]["ratio"], 0) for row in mine]],
                        fmt=draw.MARKERS.get(peer, "v"), markersize=5, linewidth=1.2, color=draw.colour(theme, peer), label=peer)
        ax.axvline(1, color=theme["limit"], linewidth=1.4)
        ax.set_xscale("log", base=2)
        ax.xaxis.set_major_formatter(draw.FuncFormatter(lambda value, _: f"{value:g}"))
        ax.set_yticks(range(len(labels)), [text for _, text in labels])
        ax.set_ylim(len(labels) - 0.5, -0.5)
        ax.set_xlabel(f"time / {OURS} ({drawn[0]['basis']}); right of the line {OURS} is ahead")
        ax.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))

    return figures.draw(f"peers-{op}", f"{op}: time of the peers over {OURS}", drawing, size=(10, 1.4 + 0.45 * len(labels)))


def cells_of(run):
    """The cells that a peer ran in."""
    return {of_cell(record) for record in run.of("bench") if is_peer(record["impl"])}


def entries_of(run):
    """One entry per op with its rows, and how often ours was ahead, level and behind."""
    entries = []
    for op, rows in rows_of(run).items():
        outcomes = collections.Counter(row["against"]["outcome"] for row in rows if row["against"] and is_peer(row["impl"]))
        entries.append({"op": op, "rows": rows, "outcomes": {key: outcomes[key] for key in (AHEAD, LEVEL, BEHIND)}})
    return entries


def missing_of(run):
    """{peer: why}, of the peers that ran nowhere."""
    reasons = collections.OrderedDict()
    for record in run.of("bench"):
        if is_peer(record["impl"]):
            reasons.setdefault(record["impl"], set()).add(record["reason"] if record["verdict"] != "passed" else None)
    return {peer: sorted(why) for peer, why in reasons.items() if None not in why}
