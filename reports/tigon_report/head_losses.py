# SPDX-License-Identifier: Apache-2.0
"""Ways to the loss behind a head whose classes lie in shards, beside each other; as a text and as rows of a page's table."""
import math

from . import statistics, units

NAMES = {"tigon": "Tigon, behind the layer", "tigon_logits": "Tigon, on logits", "megatron": "Megatron's formula in torch",
         "loss_parallel": "torch's loss_parallel", "products": "the three products alone"}
OURS, PRODUCTS = "tigon", "products"


def rows(records):
    """{(tokens, hidden, classes, ranks): {variant: row}}; a row is the last record with time_s, the median over all rounds, or None.

    Collectives are those of the round with the least: a rank that waits for another is in one, too.
    """
    found = {}
    for record in records:
        of_case = found.setdefault((record["tokens"], record["hidden"], record["classes"], record["ranks"]), {})
        of_case.setdefault(record["variant"], []).append(record)
    return {case: {variant: _row(rounds) for variant, rounds in of_case.items()} for case, of_case in found.items()}


def _row(rounds):
    least = min(rounds, key=lambda record: record["collective_s"] if record["collective_s"] is not None else math.inf)
    row = {**rounds[-1], **{key: least[key] for key in ("collective_s", "exposed_s")}}
    times = [seconds for record in rounds for seconds in record["seconds_s"]]
    return {**row, "time_s": statistics.median(times) if row["verdict"] == "passed" else None}


def case_text(case):
    tokens, hidden, classes, ranks = case
    return f"T={tokens:,}, H={hidden:,}, V={classes:,}, {ranks} ranks"


def text(records):
    """All cases of a run for a terminal."""
    lines = []
    for case, variants in rows(records).items():
        lines.append(case_text(case))
        for variant, row in variants.items():
            cells = [f"{row['verdict']}: {row['reason']}"] if row["time_s"] is None else _cells(row, variants)
            lines.append(f"  {NAMES.get(variant, variant):28} {'  '.join(cells)}")
    return "\n".join(lines)


def _cells(row, variants):
    """Time, share of its products, memory, share of collectives, how much of them is hidden, error of dw."""
    on_gpu = row["executor"] == "cuda"
    alone = variants.get(PRODUCTS, {}).get("time_s")
    return [units.seconds(row["time_s"]) if on_gpu else "no speed on a processor",
            units.percent(alone / row["time_s"] if on_gpu and alone else None, 0), units.binary_bytes(row["peak_bytes"]),
            units.percent(row["collective_s"] / row["time_s"] if row["collective_s"] is not None else None, 0),
            units.percent(max(0.0, 1 - row["exposed_s"] / row["collective_s"]) if row["collective_s"] else None, 0), units.number(row["dw_error"])]


def table_rows(runs):
    """Rows of a page's table: [case, way, time, products over it, memory, in collectives, of that hidden, error of dw]. ValueError: nothing of a GPU."""
    records = [record for run in runs for record in run.of("head_loss") if record["executor"] == "cuda"]
    if not records:
        raise ValueError("no losses behind heads in shards on GPUs in these records")
    return [[case_text(case), NAMES.get(variant, variant), *([row["verdict"], *["–"] * 5] if row["time_s"] is None else _cells(row, variants))]
            for case, variants in rows(records).items() for variant, row in variants.items()]
