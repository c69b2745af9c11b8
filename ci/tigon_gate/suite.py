# SPDX-License-Identifier: Apache-2.0
"""A whole gate over process pairs: base against head, or a program against itself."""
import dataclasses

import numpy

from tigon_report import records

from . import aa, decide, history, pairs, show, simulate
from .decide import Outcome

MODEL = "simulated at each cell's own spread"


def _progress(say):
    """Tells what the first pair took, and what that means for the others."""

    def on_pair(done, of, seconds):
        if done == 1 and seconds > 1:
            say(f"a pair takes {seconds:.1f} s, {of} of them {seconds * of:.0f} s")

    return on_pair


def _device(runner):
    header = next(iter(getattr(runner, "headers", {}).values()), {})
    return header.get("device", {"kind": "host"})


def _cell_fields(cell, device):
    op, pass_name, impl, dtype = cell.case_id.split("/")[:4]
    return {"scope": "cell", "case_id": cell.case_id, "case_key": records.case_key(cell.case_id), "op": op,
            "pass": pass_name, "impl": impl, "dtype": dtype, "basis": "graph", "device_name": device.get("name"),
            "device_uuid": device.get("uuid"), "driver": device.get("driver")}


def run_gate(runner, cells, rule, known, recorder_of, say, deadline=None, commits=(None, None), left_out=()):
    """Measures, judges, records and prints; returns the exit code.

    known        A/A records that margins come from (history.load)
    recorder_of  makes the Recorder once a program has told what GPU it ran on
    left_out     sentences about cells that are not measured, which count as skipped
    """
    ids = [cell.case_id for cell in cells]
    rule = dataclasses.replace(rule, pairs=max(rule.pairs, rule.least_pairs(len(cells))))
    run = pairs.PairedRun(runner, deadline, _progress(say))
    say(f"{len(cells)} cells, {rule.pairs} process pairs in turns AB, BA")
    try:
        first = run.pairs(ids, rule.pairs)
    except pairs.OutOfTime as late:
        print(f"inconclusive: {late}; take fewer cells (--op, --filter) or a larger --budget")
        print(f"0 passed, 0 failed, {len(cells) + len(left_out)} skipped")
        return 6
    device = _device(runner)
    own = dict(zip(ids, first))
    found = history.margins(known, device, ids, rule, own)
    margins = decide.floored([m.change for m in found], run.base_s(ids), rule)

    def again(indices):
        say(f"{len(indices)} cells once more, with fresh pairs")
        try:
            return run.pairs([ids[i] for i in indices], rule.pairs)
        except pairs.OutOfTime:
            return None

    judged = decide.decide(first, margins, rule, again)
    code = decide.exit_code(judged)
    base_s, head_s = run.base_s(ids), run.head_s(ids)
    recorder = recorder_of()
    for cell, one, margin, edge, base, head in zip(cells, judged, found, margins, base_s, head_s):
        recorder.write("gate", {**_cell_fields(cell, device), "outcome": one.outcome.value, "change": one.change,
                                "lower": one.lower, "upper": one.upper, "p_slower": one.p_slower,
                                "p_faster": one.p_faster, "first_outcome": one.first.value,
                                "remeasured": one.remeasured, "margin": float(edge), "margin_source": margin.source,
                                "base_median_s": base, "head_median_s": head, "log_ratios": one.log_ratios,
                                "base_s": run.base[cell.case_id], "head_s": run.head[cell.case_id]})
    counts = {o.value: sum(one.outcome == o for one in judged) for o in Outcome}
    recorder.write("gate", {"scope": "suite", "cells": len(cells), "pairs": rule.pairs, "alpha": rule.alpha,
                            "effect": rule.effect, "floor_s": rule.floor_s, "base_commit": commits[0],
                            "head_commit": commits[1], "outcomes": counts, "exit_code": code,
                            "device_name": device.get("name"), "device_uuid": device.get("uuid")})
    print(show.table(cells, judged, margins, base_s, head_s))
    print(show.sources(cells, found))
    print(f"blocks from {rule.effect:g} margins on; no change below {show.seconds(rule.floor_s)} counts; "
          f"a suite changed by its margins everywhere would be blocked with probability {rule.alpha:g} at most")
    if reasons := show.reasons(cells, judged):
        print(reasons)
    print("".join(f"{line}\n" for line in left_out), end="")
    passed, failed, undecided = show.last_line(judged)
    counted = passed, failed, undecided + len(left_out)
    recorder.end(*counted, code)
    print(f"results: {recorder.path}")
    print("{} passed, {} failed, {} skipped".format(*counted))
    return code


def run_aa(runner, cells, rule, recorder_of, say, pair_count, suites, seed=0, deadline=None):
    """Measures identical programs and how often the gate would call them different; returns the exit code."""
    ids = [cell.case_id for cell in cells]
    rule = dataclasses.replace(rule, pairs=max(rule.pairs, rule.least_pairs(len(cells))))
    run = pairs.PairedRun(runner, deadline, _progress(say))
    say(f"{len(cells)} cells, {pair_count} pairs of the same program")
    try:
        ratios = run.pairs(ids, pair_count)
    except pairs.OutOfTime as late:
        print(f"inconclusive: {late}; take fewer cells (--op, --filter) or a larger --budget")
        print(f"0 passed, 0 failed, {len(cells)} skipped")
        return 6
    device = _device(runner)
    base_s = run.base_s(ids)
    margins = decide.floored([aa.margin(row, rule) for row in ratios], base_s, rule)
    random = numpy.random.default_rng(seed)
    say(f"{suites} suites made of these pairs, and {suites} simulated ones")
    itself = _as_one_suite(ratios, margins, rule)
    measured = aa.false_blocks(ratios, margins, rule, suites, random)
    spreads = numpy.array([aa.spread(row) for row in ratios])
    simulated = simulated_blocks(spreads, margins, rule, suites, random)
    recorder = recorder_of()
    print(f"{'cell':<{max(len(c.name) for c in cells)}} {'median':>9} {'pair sd':>8} {'margin':>7} {'found at 80%':>13} {'at 95%':>8}")
    effects = []
    for cell, row, sd, edge, median in zip(cells, ratios, spreads, margins, base_s):
        effect = aa.smallest_effects(row, edge, rule, len(cells), random)
        effects.append(effect)
        shown = ["> 50%" if e is None else percent_of(e) for e in effect]
        print(f"{cell.name:<{max(len(c.name) for c in cells)}} {show.seconds(median):>9} {100 * sd:7.3f}% "
              f"{100 * edge:6.2f}% {shown[0]:>13} {shown[1]:>8}")
        recorder.write("aa", {**_cell_fields(cell, device), "pairs": len(row), "gate_pairs": rule.pairs,
                              "log_ratios": list(map(float, row)), "pair_sd": float(sd), "margin": float(edge),
                              "mde_80": effect[0], "mde_95": effect[1], "base_median_s": float(median)})
    print(f"these pairs as they were run, as one suite: {itself}")
    rates = {}
    for kind, (blocked, undecided) in (("measured", measured), ("simulated", simulated)):
        upper = aa.upper_bound(blocked, suites)
        rates[kind] = {"suites": suites, "false_blocks": blocked, "rate": blocked / suites, "rate_upper_95": upper,
                       "undecided": undecided}
        made = f"{suites} suites resampled from {pair_count} measured pairs" if kind == "measured" else f"{suites} suites {MODEL}"
        print(f"false blocks: {blocked} of {made}: {100 * blocked / suites:.2g} per 100 "
              f"(below {100 * upper:.2g} with 95% confidence); {undecided} inconclusive")
    worst = [max((e[k] for e in effects if e[k] is not None), default=None) for k in (0, 1)]
    recorder.write("aa", {"scope": "suite", "cells": len(cells), "pairs": pair_count, "gate_pairs": rule.pairs,
                          "alpha": rule.alpha, "device_name": device.get("name"), "device_uuid": device.get("uuid"),
                          "driver": device.get("driver"), "as_run": itself, "measured": rates["measured"],
                          "simulated": rates["simulated"], "mde_80_median": _median(effects, 0),
                          "mde_95_median": _median(effects, 1), "mde_80_worst": worst[0], "mde_95_worst": worst[1]})
    reliable = itself != "blocked" and all(rate["rate"] <= 0.01 for rate in rates.values())
    print("the gate blocks identical programs at most once in 100 suites" if reliable else
          "the gate blocks identical programs more than once in 100 suites: it must not block anything here")
    code = 0 if reliable else 6
    passed = len(cells) if reliable else 0
    recorder.end(passed, 0, len(cells) - passed, code)
    print(f"results: {recorder.path}")
    print(f"{passed} passed, 0 failed, {len(cells) - passed} skipped")
    return code


def _as_one_suite(ratios, margins, rule):
    """What the gate says about the measured pairs in their own order: a bias between the sides would show here."""
    fresh = ratios[:, rule.pairs:]
    enough = fresh.shape[1] >= rule.pairs
    judged = decide.decide(ratios[:, : rule.pairs], margins, rule, lambda again: fresh[again] if enough else None)
    return {0: "passed", 3: "blocked", 6: "inconclusive"}[decide.exit_code(judged)]


def percent_of(change):
    return f"{100 * change:.2f}%"


def _median(effects, k):
    found = [e[k] for e in effects]
    return None if any(v is None for v in found) else float(numpy.median(found))


def simulated_blocks(spreads, margins, rule, suites, random):
    """(blocked, undecided) of simulated suites of identical programs whose pairs vary as much as measured.

    Half of a pair's variance is given to what all cells share, and 2 % of the processes are hit by a neighbour.
    """
    cells, base = len(spreads), simulate.Noise(process=0.5, shared=0.5, drift=0.0, sample=0.0, hit=0.0)
    blocked = undecided = 0
    for _ in range(suites):
        unit = simulate.log_ratios(random, base, 1, 2 * rule.pairs, cells)[0]  # standard deviation 1
        hit = simulate.log_ratios(random, simulate.Noise(0, 0, 0, 0), 1, 2 * rule.pairs, cells)[0]
        drawn = unit * spreads[:, None] + hit
        fresh = drawn[:, rule.pairs:]
        code = decide.exit_code(decide.decide(drawn[:, : rule.pairs], margins, rule, lambda again: fresh[again]))
        blocked += code == 3
        undecided += code == 6
    return blocked, undecided
