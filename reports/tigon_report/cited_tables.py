# SPDX-License-Identifier: Apache-2.0
"""Tables of measured figures for pages in Markdown, made from records."""
import collections
import math

from . import gates, head_losses, load, next_action, peers, step_parts, tables, training_steps, units

NAMES = {"torch": "eager PyTorch", "compile": "torch.compile", "liger": "Liger", "liger_cutedsl": "Liger CuTe DSL",
               "liger_hopper": "Liger Hopper", "quack": "QuACK", "quack_base": "QuACK base", "cce": "cut-cross-entropy",
               "flash_attn": "flash-attn", "apex": "Apex"}
PYTORCH = ("torch", "compile")
PASSES = {"forward_backward": "forward + backward"}


def table(heads, rows):
    """A Markdown table; every column but the first is aligned to the right where its head ends in a colon."""
    rules = ["--:" if head.endswith(":") else "---" for head in heads]
    lines = [[head.rstrip(":") for head in heads], rules, *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def case(row):
    return f"{row['op']} {PASSES.get(row['pass'], row['pass'])}"


def beside_peers(runs):
    """What ran beside peers: for each cell of each run {run, ours: its row, peers: {name: row}}, ops as the runs have them."""
    found = {}
    for run in runs:
        for row in (row for rows in peers.rows_of(run).values() for row in rows if row["timed"]):
            cell = found.setdefault((run.header["run_id"], row["cell"], row["basis"]), {"run": run, "ours": None, "peers": {}})
            if row["impl"] == tables.OURS:
                cell["ours"] = row
            elif row["against"] and peers.is_peer(row["impl"]):
                cell["peers"][row["impl"]] = row
    whole = [cell for cell in found.values() if cell["ours"] and cell["peers"]]
    return sorted(whole, key=lambda cell: case(cell["ours"]).replace("backward", "later"))


def cells(runs):
    """The same, with cold caches where a run has graph replay, too. ValueError: there is none."""
    found = beside_peers(runs)
    if not found:
        raise ValueError("no kernel beside a peer in these records")
    cold = {case(cell["ours"]) for cell in found if cell["ours"]["basis"] == "cold"}
    return [cell for cell in found if cell["ours"]["basis"] == "cold" or case(cell["ours"]) not in cold]


def best_of_others(cell):
    """The row of the fastest package that is not PyTorch, or None."""
    others = [row for name, row in cell["peers"].items() if name not in PYTORCH]
    return min(others, key=lambda row: row["median_s"], default=None)


def _times(row):
    """'1.64'; '1.00 level' where the interval of the ratio holds 1; the number of samples where they are too few for one."""
    if row is None:
        return "–"
    ratio, low, high = (row["against"][key] for key in ("ratio", "low", "high"))
    text = f"{ratio:.1f}" if ratio >= 10 else f"{ratio:.2f}"
    if not (math.isfinite(low) and math.isfinite(high)):
        return f"{text} (n = {row['n']})"
    return f"{text} level" if row["against"]["outcome"] == peers.LEVEL else text


def peers_table(runs, words):
    rows = []
    for cell in cells(runs):
        best, ours = best_of_others(cell), cell["ours"]
        rows.append([case(ours), ours["where"], units.seconds(ours["median_s"]), units.percent(ours["share"], 0),
                     f"{NAMES[best['impl']]} {_times(best)}" if best else "–",
                     *(_times(cell["peers"].get(name)) for name in reversed(PYTORCH))])
    return table(["op", "sizes", "Tigon:", "of the ceiling:", "fastest other package:", "torch.compile:", "eager PyTorch:"], rows)


def baseline_table(runs, words):
    """The largest cell in bf16 of each op and pass, cold, beside another implementation of the tree."""
    other = words[0]
    largest = {}
    for run in runs:
        timed, memory = {}, {}
        for record in run.of("bench"):
            if record["dtype"] == "bf16" and record["basis"] == "cold" and record["verdict"] == "passed" and record.get("median_s"):
                timed.setdefault(tables.of_cell(record), {})[record["impl"]] = record
        for record in run.of("memory"):
            memory[tables.of_cell(record), record["impl"]] = record["tensors_bytes"] + record["arena_bytes"]
        for cell, impls in timed.items():
            if tables.OURS in impls and other in impls:
                ours = impls[tables.OURS]
                key = (ours["op"], ours["pass"])
                size = ours["bytes_min_bytes"]
                if key not in largest or size > largest[key][0]:
                    largest[key] = (size, ours, impls[other], memory.get((cell, tables.OURS)), memory.get((cell, other)))
    if not largest:
        raise ValueError(f"no kernel beside {other} in these records")
    rows = []
    for _, ours, theirs, own_bytes, other_bytes in largest.values():
        rows.append([case(ours), units.axes_text(ours["axes"]), units.seconds(ours["median_s"]),
                     units.number(theirs["median_s"] / ours["median_s"]), units.binary_bytes(own_bytes), units.binary_bytes(other_bytes)])
    return table(["op", "sizes", "Tigon:", f"time of {other} / Tigon:", "peak memory, Tigon:", f"{other}:"], rows)


def _counted(part, whole, what):
    return f"{part:,} of {whole:,} {what}" if whole else None


def _mutant_results(run):
    groups = collections.defaultdict(lambda: [0, 0])
    for record in run.of("mutant"):
        if record["outcome"] not in ("equivalent", "not_applicable"):
            group = "kernel" if record["group"] in ("numeric", "memory_sync") else record["group"]
            groups[group][0] += record["outcome"] == "caught"
            groups[group][1] += 1
    what = {"kernel": "faults planted in kernels caught", "comparator": "broken rules of the judge caught",
            "cheat": "cheating plug-ins caught", "training": "faults planted under a training noticed"}
    texts = [_counted(*counts, what[group]) for group, counts in groups.items()]
    if seeds := tables.seeds(run):
        texts.append(f"evidence of {len(seeds['records'])} trainings without a fault ({seeds['training']}): {seeds['seeds']} false alarms")
    return texts


def _soak_results(run):
    soaked = tables.soak(run)
    texts = [f"{soaked['trials']:,} random cases of correct kernels: {soaked['false_alarms']} false alarms"] if soaked["trials"] else []
    texts += [f"{r['repeats']} times the {r['cases']:,} cases of `check`: {r['differing_verdicts']} verdicts differ" for r in soaked["repeats"]]
    if soaked["rounding"]:
        worst = max(soaked["rounding"], key=lambda record: record["worst"] / record["allowed"])
        texts.append(f"{len(soaked['rounding'])} functions, sums and products: at most {units.percent(worst['worst'] / worst['allowed'], 0)} "
                     f"of the error that budgets allow ({worst['name']})")
    return texts


def _gate_results(run):
    texts = []
    for record in run.of("aa"):
        if record["scope"] == "suite":
            measured = record["measured"]
            texts.append(f"a program against itself: {measured['false_blocks']} of {measured['suites']:,} suites blocked, "
                         f"{measured['undecided']} undecided; {units.percent(record['mde_80_median'])} slower is found in 4 of 5 tries "
                         f"(worst cell {units.percent(record['mde_80_worst'])})")
    found = [record for record in run.of("gate") if record["scope"] == "cell"]
    slower = [record for record in found if record["outcome"] == "slower"]
    if found:
        named = ", ".join(f"{record['case_id'].split('/')[0]} by {units.percent(record['change'])}" for record in slower)
        what = "a kernel made slower on purpose" if gates.is_planted(run) else "base against head"
        texts.append(f"{what}: {len(slower)} of {len(found)} cells slower{f' ({named})' if named else ''}")
    return texts


def _fault_results(run):
    tries = collections.defaultdict(list)
    for record in tables.faults(run)["rows"]:
        tries[record["fault"]].append(record["outcome"] == "survived")
    text = _counted(sum(outcomes[-1] for outcomes in tries.values()), len(tries), "crashes, hangs, full disks and bad inputs survived")
    late = sum(outcomes[-1] and not all(outcomes) for outcomes in tries.values())
    return [f"{text}, {late} of them not at the first try" if text and late else text]


def _check_results(run):
    counts = tables.verdict_counts(run)
    return [_counted(counts["passed"], counts["passed"] + counts["failed"], "cases passed")]


def judge_table(runs, words):
    """What tried the judge, and what came of it: a row for each result of each file of records."""
    of_file, rows = {}, []
    for run in runs:
        of_file.setdefault(run.path, []).append(run)
    for path, found in of_file.items():
        run = load.joined(found)
        texts = [text for results in (_mutant_results, _soak_results, _fault_results, _gate_results, _check_results)
                 for text in results(run) if text]
        if not texts:
            raise ValueError(f"{path.name} tries nothing of the judge")
        rows += [[f"`{' '.join(run.header['command'][:2])}`", text, f"{run.device}, {run.date}"] for text in texts]
    return table(["command", "result", "on"], rows)


def claims_table(runs, words):
    """What papers claim, and what was measured; of a claim that several runs tried the last counts."""
    newest = {record["claim"]: record for run in runs for record in run.of("claim") if record["quantity"] not in ("share", "points")}
    if not newest:
        raise ValueError("no claim in these records")
    return table(["claim", "published:", "measured:", "", "how", "published in"],
                 [[r["claim"], r["paper"], r["measured"], r["verdict"], f"{r['size']}; {r['basis']}", r["source"]] for r in newest.values()])


def next_action_table(runs, words):
    rows = [[record["predictor"], next_action.share(record, "top1"), next_action.share(record, "top10"), f"{record['parameters']:,}"]
            for run in runs for record in run.of("next_action")]
    if not rows:
        raise ValueError("no next-action experiment in these records")
    return table(["predictor", "right at the first guess:", "among ten:", "parameters:"], rows)


def parts_table(runs, words):
    """One training step by part, of the sizes in `words`: T=4096 V=128256."""
    axes = {name: int(size) for name, _, size in (word.partition("=") for word in words)}
    rows = [row for run in runs for entry in step_parts.tables(run) for row in entry["rows"] if row["axes"] == axes]
    chosen = {row["impl"]: row for row in rows if row["impl"] in ("naive", "fused") and row["outcome"] == step_parts.MEASURED}
    if set(chosen) != {"naive", "fused"}:
        raise ValueError(f"no step of {' '.join(words)}, naive and fused, in these records")
    naive, fused = ({name: part.get("seconds_s") or 0 for name, part in chosen[impl]["part"].items()} for impl in ("naive", "fused"))
    lines = [[name, units.seconds(naive[name]), units.seconds(fused[name])] for name in naive if naive[name] or fused[name]]
    lines.append(["whole step", units.seconds(sum(naive.values())), units.seconds(sum(fused.values()))])
    lines.append(["peak memory", *(units.binary_bytes(chosen[impl]["peak_bytes"]) for impl in ("naive", "fused"))])
    return table([f"{chosen['fused']['config']}, {units.axes_text(axes)}", "naive:", "fused:"], lines)


def controls_table(runs, words):
    """What each part of a training's evidence notices of the planted faults, and what escapes it."""
    found = [(run, controls) for run in runs if (controls := tables.controls(run)) and controls["names"]]
    if not found:
        raise ValueError("no controls with parts in these records")
    lines = []
    for run, controls in found:
        count = len(controls["rows"])
        for name, faults in tables.escapes(controls):
            where = controls["rows"][0]["training"] + ("" if run.on_gpu else ", host executor")
            lines.append([name, where, f"{count - len(faults)} of {count}", ", ".join(faults) or "nothing"])
    return table(["part", "under", "noticed:", "what escapes it"], lines)


def training_table(runs, words):
    """Training steps of Hugging Face models; of what is unpatched, the spread of its own rounds in place of a distance."""
    heads = ["model", "variant", "tokens/s:", "Tigon's over it:", "peak memory:", "over Tigon's:", "losses apart:"]
    rows = training_steps.table_rows(runs)
    return table([*heads, "from float32:"][:len(rows[0])], rows)


def heads_table(runs, words):
    """Ways to the loss behind a head whose classes lie in shards."""
    heads = ["sizes", "loss", "time:", "products over it:", "memory:", "in collectives:", "of that hidden:", "dw from float32:"]
    return table(heads, head_losses.table_rows(runs))


# Name -> function(runs, words before the records) -> text. ValueError: the records do not have it.
TABLES = {"peers": peers_table, "baseline": baseline_table, "judge": judge_table, "claims": claims_table,
          "next_action": next_action_table, "parts": parts_table, "controls": controls_table,
          "training": training_table, "heads": heads_table}
