# SPDX-License-Identifier: Apache-2.0
"""Training steps of Hugging Face models beside each other: speed, memory, losses; as texts and as tables of pages."""
import statistics as standard

from . import statistics, units

NAMES = {"eager": "Hugging Face", "compile": "with torch.compile", "liger": "Liger", "tigon": "Tigon", "tigon_cheap": 'Tigon, recompute="cheap"',
         "tigon_compile": "Tigon with torch.compile", "float32": "in float32"}
OURS, EXACT = "tigon", "float32"


def case_of(record):
    """What is compared: a model, its batch, checkpointing or not, and over how many ranks, which share it in some layout."""
    return record["model"], record["batch"], record["length"], record["checkpointing"], *_ranks_of(record)


def _ranks_of(record):
    return record.get("ranks", 1), record.get("layout", "")


def case_text(case):
    model, batch, length, checkpointing, ranks, layout = case
    shared = f" on {f'each of {ranks} ranks' if ranks > 1 else '1 rank'} ({layout})" if layout else ""
    return f"{model}, B={batch}{shared}, T={length:,}{', checkpointing' if checkpointing else ''}"


def rows(records):
    """{case: {variant: {records, verdict, reason, and of what passed tokens_per_s with low and high, peak_bytes, reserved_bytes}}}."""
    cases = {}
    for record in records:
        cases.setdefault(case_of(record), {}).setdefault(record["variant"], []).append(record)
    return {case: {variant: _row(found) for variant, found in variants.items()} for case, variants in cases.items()}


def _row(found):
    last = found[-1]
    row = {"records": found, "verdict": last["verdict"], "reason": last["reason"]}
    if row["verdict"] != "passed":
        return row
    times = [seconds for record in found for seconds in record["seconds_s"]]
    interval, tokens = statistics.median_interval(times), last["tokens_per_step"]
    high = tokens / interval.low if interval.low > 0 else statistics.INFINITE
    row.update(tokens_per_s=tokens / statistics.median(times), low=tokens / interval.high, high=high, steps=len(times))
    for key in ("peak_bytes", "reserved_bytes"):
        row[key] = max((record[key] for record in found if record.get(key) is not None), default=None)
    return row


def losses_apart(row, other):
    """The largest relative distance of two variants' mean losses of a step, over the same rounds; None where they share none."""
    pairs = zip(_mean_losses(row, other), _mean_losses(other, row))
    return max((abs(a - b) / abs(b) for a, b in pairs), default=None)


def spread(row):
    """How far apart the losses of one variant's rounds are at most, relative, from their mean; None of a single round."""
    if len(row["records"]) < 2:
        return None
    return max(max(abs(loss - standard.fmean(of_step)) / abs(standard.fmean(of_step)) for loss in of_step)
               for of_step in zip(*(record["loss"] for record in row["records"])))


def from_exact(row, variants):
    """The root mean square distance of a variant's losses from those of the variant without roundings, of the same rounds; None where it did not run."""
    exact = variants.get(EXACT, {})
    if row["verdict"] != "passed" or exact.get("verdict") != "passed" or exact is row:
        return None
    by_round = {record["round"]: record["loss"] for record in exact["records"]}
    apart = [(a - b) / b for record in row["records"] if record["round"] in by_round for a, b in zip(record["loss"], by_round[record["round"]])]
    return standard.fmean(x * x for x in apart)**0.5 if apart else None


def longest(records):
    """{case of the shortest: {variant: the longest length that passed, or None}} of what was trained with several lengths alone."""
    found = {}
    for record in records:
        found.setdefault((record["model"], record["batch"], record["checkpointing"], *_ranks_of(record)), []).append(record)
    return {case_of(min(group, key=lambda r: r["length"])): {
        variant: max((r["length"] for r in group if r["variant"] == variant and r["verdict"] == "passed"), default=None)
        for variant in dict.fromkeys(r["variant"] for r in group)} for group in found.values() if len({r["length"] for r in group}) > 1}


def _mean_losses(row, other):
    shared = {record["round"] for record in row["records"]} & {record["round"] for record in other["records"]}
    return [standard.fmean(of_step) for of_step in zip(*(record["loss"] for record in row["records"] if record["round"] in shared))]


def turn_text(record):
    """A line for one turn."""
    name = f"{case_text(case_of(record))}: {record['variant']}, round {record['round']}"
    if record["verdict"] != "passed":
        return f"{name}: {record['verdict']}: {record['reason']}"
    speed = f"{record['tokens_per_step'] / statistics.median(record['seconds_s']):,.0f} tokens/s"
    if record["executor"] != "cuda":
        speed = "ran on a processor: no speed"
    memory = "".join(f", {word} {units.binary_bytes(record[key])}" for word, key in (("peak", "peak_bytes"), ("reserved", "reserved_bytes")) if record[key])
    return f"{name}: {speed}{memory}{_collectives_text(record)}, losses {record['loss'][0]:.4f} to {record['loss'][-1]:.4f}"


def _collectives_text(record):
    """What a profile says of them; '' without one."""
    if not record.get("collective_s"):
        return ""
    share, hidden = record["collective_s"] / statistics.median(record["seconds_s"]), 1 - record["exposed_s"] / record["collective_s"]
    return f", collectives {share:.0%} of a step, of which {hidden:.0%} are hidden"


def text(records):
    """All cases of a run for a terminal."""
    lines = []
    for case, variants in rows(records).items():
        lines.append(case_text(case))
        lines += [f"  {NAMES.get(variant, variant):26} {_cells_text(row, variants)}" for variant, row in variants.items()]
    for case, lengths in longest(records).items():
        lines.append(f"longest T from {case_text(case)}: " + ", ".join(
            f"{NAMES.get(variant, variant)} {f'{length:,}' if length else 'none'}" for variant, length in lengths.items()))
    return "\n".join(lines)


def _cells_text(row, variants):
    if row["verdict"] != "passed":
        return f"{row['verdict']}: {row['reason']}"
    on_gpu = row["records"][0]["executor"] == "cuda"
    base = variants.get("eager", {})
    apart = losses_apart(row, base) if base.get("verdict") == "passed" else None
    exact = from_exact(row, variants)
    parts = [_speed(row) if on_gpu else "no speed on a processor", units.binary_bytes(row["peak_bytes"]) if on_gpu else "",
             "" if apart is None else f"losses {apart:.1e} from Hugging Face's",
             "" if exact is None else f"{exact:.1e} from float32's"]
    return ", ".join(filter(None, parts))


def _speed(row):
    if row["low"] > 0 and row["high"] < statistics.INFINITE:
        return f"{row['tokens_per_s']:,.0f} tokens/s ({row['low']:,.0f} to {row['high']:,.0f})"
    return f"{row['tokens_per_s']:,.0f} tokens/s (n = {row['steps']})"


def table_rows(runs):
    """Rows of a page's table: [case, variant, tokens/s, Tigon's over it, peak memory, it over Tigon's, losses apart, from float32].

    The last only where float32 ran. ValueError: nothing of a GPU.
    """
    records = [record for run in runs for record in run.of("training") if record["executor"] == "cuda"]
    if not records:
        raise ValueError("no training steps on a GPU in these records")
    found, has_exact = [], any(record["variant"] == EXACT for record in records)
    for case, variants in rows(records).items():
        ours, base = variants.get(OURS, {}), variants.get("eager", {})
        for variant, row in variants.items():
            found.append([case_text(case), NAMES.get(variant, variant), *_cells(row, ours, base)])
            if has_exact:
                exact = from_exact(row, variants)
                found[-1].append("–" if exact is None else f"{exact:.1e}")
    return found


def _cells(row, ours, base):
    if row["verdict"] == "oom":
        return ["out of memory", "–", "–", "–", "–"]
    if row["verdict"] != "passed":
        return [row["verdict"], "–", "–", "–", "–"]
    known = ours.get("verdict") == "passed"
    apart = losses_apart(row, base) if base.get("verdict") == "passed" and base is not row else spread(row) if base is row else None
    return [_speed(row).replace(" tokens/s", ""), f"{ours['tokens_per_s'] / row['tokens_per_s']:.3f}" if known else "–", units.binary_bytes(row["peak_bytes"]),
            f"{row['peak_bytes'] / ours['peak_bytes']:.3f}" if known else "–", "–" if apart is None else f"{apart:.1e}"]
