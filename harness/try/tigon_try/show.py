# SPDX-License-Identifier: Apache-2.0
"""What a try ends with: the tables, the verdict, and the block for a pull request."""
import math
import pathlib

from tigon_report import statistics, units
from tigon_trees.build import commit_of

from . import peers

ROOT = pathlib.Path(__file__).resolve().parents[3]


def short(name):
    return name.removeprefix("plugin:")


def _cells(records):
    """{(pass, dtype, axes): {implementation: record}}"""
    cells = {}
    for r in records:
        cells.setdefault((r["pass"], r["dtype"], units.axes_text(r["axes"])), {})[short(r["impl"])] = r
    return cells


def _peak(record):
    """Bytes that live at once: the tensors of the call and what the implementation allocates beside them."""
    return record["tensors_bytes"] + max(record["workspace_bytes"], record.get("arena_bytes") or 0)


def memory_rows(job):
    cells = _cells(job.bench.of("memory")) if job.bench else {}
    names = [job.name, *job.against]
    largest = {}  # of a pass and a dtype
    for (one_pass, dtype, axes), by_impl in cells.items():
        if job.name in by_impl and by_impl[job.name]["tensors_bytes"] >= largest.get((one_pass, dtype), (0,))[0]:
            largest[one_pass, dtype] = (by_impl[job.name]["tensors_bytes"], axes, by_impl)
    def peak(by, name):
        # What Python allocates beside the tensors is not seen.
        return units.binary_bytes(_peak(by[name])) if name in by and (name != job.name or job.is_cuda) else "–"

    return [[f"{one_pass} {dtype}", axes, *(peak(by, n) for n in names)]
            for (one_pass, dtype), (_, axes, by) in largest.items()]


def speed_rows(job):
    rows = []
    if not job.bench or not job.on_gpu:  # a time of the host executor is no kernel's speed
        return rows
    names = [job.name, *job.against]
    records = [r for r in job.bench.of("bench") if r["basis"] == "wall" and r.get("samples_s")]
    for (one_pass, dtype, axes), by in _cells(records).items():
        if job.name in by:
            rows.append([f"{one_pass} {dtype}", axes, *(_interval(by[n]) if n in by else "–" for n in names)])
    return rows


def _interval(record):
    samples = record["samples_s"]
    low, high = statistics.median_interval(samples)
    interval = f"{units.seconds(low)} .. {units.seconds(high)}" if math.isfinite(low + high) else f"{len(samples)} samples"
    return f"{units.seconds(statistics.median(samples))} ({interval})"


def traffic_rows(job):
    rows = []
    for fused, mine in job.traffic:
        moved = fused["bytes_loaded_bytes"] + fused["bytes_stored_bytes"]
        rows.append([f"{fused['pass']} {fused['dtype']}", units.axes_text(fused["axes"]), units.binary_bytes(fused["bytes_min_bytes"]),
                     units.binary_bytes(mine["loaded"] + mine["stored"]), units.number(mine["sectors"] / max(1, mine["requests"])),
                     units.binary_bytes(moved), units.number(fused["sectors"] / max(1, fused["requests"]))])
    return rows


MOST_KERNELS = 12


def facts_rows(facts):
    """Of a file with many kernels those with the most registers; all are in facts.json."""
    facts = dict(sorted(facts.items(), key=lambda item: (-item[1]["spill_bytes"], -item[1]["registers"]))[:MOST_KERNELS])
    return [[name, arch, str(f["registers"]), str(f["spill_bytes"]), str(f["shared_bytes"]),
             f"{f['loads_16'] + f['stores_16']} of {sum(f[f'{k}_{w}'] for k in ('loads', 'stores') for w in (16, 8, 4, 2, 1))}",
             str(f["code_bytes"])] for (name, arch), f in facts.items()]


FACTS_HEAD = ["kernel", "arch", "registers", "spilled bytes", "shared bytes", "16-byte accesses", "code bytes"]


def plain(head, rows):
    """A table for a terminal."""
    widths = [max(len(row[k]) for row in [head, *rows]) for k in range(len(head))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in [head, *rows]]


def markdown(head, rows):
    return ["| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows]]


def tables(job, facts):
    """[(title, head, rows)]"""
    names = [job.name, *job.against]
    found = []
    if rows := speed_rows(job):
        found.append(("time, wall clock, cold caches: median (99% interval)", ["case", "sizes", *names], rows))
    if rows := memory_rows(job):
        found.append(("peak memory: tensors of the call and what is allocated beside them", ["case", "sizes", *names], rows))
    if job.traffic:
        head = ["case", "sizes", "least", f"{job.name}: bytes", "sectors per request", "fused: bytes", "sectors per request"]
        found.append(("memory traffic, counted by the host executor", head, traffic_rows(job)))
    if facts:
        more = f": {MOST_KERNELS} of {len(facts)}, the rest in facts.json" if len(facts) > MOST_KERNELS else ""
        found.append((f"static facts{more}", FACTS_HEAD, facts_rows(facts)))
    return found


def machine(job):
    """What ran where: 'H200 (GPU) and Xeon (host executor), Ubuntu 24.04'; the GPU, whose times are shown, first."""
    devices = {o.run["device"]["kind"]: o.run["device"]["name"] for o in job.outcomes if "device" in o.run}
    named = [f"{devices[kind]} ({what})" for kind, what in (("cuda", "GPU"), ("host", "host executor")) if kind in devices]
    return f"{' and '.join(named)}, {job.outcomes[0].run['host'].get('os', '?')}" if named else "?"


def block(job, verdict, stages, facts):
    """Markdown for a pull request."""
    tool = job.outcomes[0].run["tool"] if job.outcomes else dict(zip(("commit", "dirty"), commit_of(ROOT)))
    lines = [f"### `{job.op}`: `{job.shown.name}` ({job.what})", "", f"**{verdict}**", ""]
    lines += markdown(["stage", "verdict", ""], [[s.name, s.verdict, s.text] for s in stages])
    for title, head, rows in tables(job, facts):
        lines += ["", f"{title}:", "", *markdown(head, rows)]
    if job.on_gpu and (not job.is_cuda or {*job.against} & {*peers.FILES}):
        lines += ["", "The times of what Python calls hold the interpreter's, which is most of a short one."]
    if job.on_gpu and job.is_cuda:
        # swiglu.cu of the tree as a file, five sizes (reports/recorded/try/2026-11-23-h200-swiglu-as-file.jsonl)
        lines += ["", "The file runs in a process of its own: on an H200 a call of the same kernel took 22 to 31 µs longer so than `fused`."]
    lines.append("")
    if job.outcomes:
        others = job.against if job.bench else []
        lines += [f"- compared with: {', '.join(others) or 'the oracle alone'}", f"- machine: {machine(job)}"]
    lines += [f"- Tigon commit: {tool.get('commit') or '?'}{' with changes' if tool.get('dirty') else ''}",
              f"- file: sha256 {job.digest}", f"- repeat: `{job.command}`",
              f"- records: {', '.join(o.run_id for o in job.outcomes)} in `{job.folder_shown}`; `./tigon reproduce {job.folder_shown}`"
              if job.outcomes else "- records: none, no case ran"]
    return "\n".join(lines) + "\n"
