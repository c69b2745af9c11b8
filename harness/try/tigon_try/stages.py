# SPDX-License-Identifier: Apache-2.0
"""The stages that a file goes through, each with a line of its own; the first that fails is the last."""
import dataclasses
import math
import os
import re
import subprocess
import sys
import time

from tigon_report import units

from . import compiler, judge, limits, peers, python_kernel, source, traffic


class Stop(Exception):
    """The file fails a stage: its exit code; the stage says why."""

    def __init__(self, code):
        super().__init__()
        self.code = code


@dataclasses.dataclass
class Stage:
    name: str
    verdict: str  # ok, FAILED, too slow, not run
    text: str
    seconds: float
    details: list = dataclasses.field(default_factory=list)


class Log:
    """Stages as they end: printed at once, kept for the table."""

    def __init__(self):
        self.stages = []
        self.begun = time.monotonic()

    def add(self, name, verdict, text, begun, details=()):
        stage = Stage(name, verdict, text, time.monotonic() - begun, list(details))
        self.stages.append(stage)
        print(f"{name:<22} {verdict:<8} {stage.seconds:5.1f} s  {text}", flush=True)
        for line in stage.details:
            print(f"    {line}", flush=True)
        return stage


def compile_for_host(log, job, build, signature, has_gpu):
    """The libraries, fast and checking; nothing where the host executor does not run the file's CUDA and a GPU does."""
    begun = time.monotonic()
    foreign = source.not_on_host(job.text)
    where = [f"{job.shown}:{line}: {what}" for line, what in foreign]
    try:
        libraries, warnings = compiler.host_libraries(build, signature, job.shown, job.text, job.name, job.folder, passes=job.passes,
                                                      dtypes=job.dtypes)
    except source.NotCuda as error:
        log.add("compiles", "FAILED", "not understood", begun, [f"{job.shown}:{error.line}: {error}"])
        raise Stop(2) from error
    except compiler.CompileError as error:
        if foreign:
            log.add("compiles", "not run", "the host executor does not run all of its CUDA" + ("" if has_gpu else "; a GPU does"), begun,
                    where)
            if has_gpu:
                return {}
            raise Stop(4) from error
        log.add("compiles", "FAILED", "the compiler's errors:", begun, str(error).splitlines())
        raise Stop(2) from error
    text = "for the host executor, fast and checking"
    if foreign:
        text += "; not run there:"
    log.add("compiles", "ok", text, begun, where + warnings.splitlines())
    return libraries


def compile_for_gpu(log, job, build, signature, nvcc):
    begun = time.monotonic()
    try:
        library, warnings = compiler.gpu_library(build, nvcc, signature, job.shown, job.text, job.name, job.folder, job.passes, job.dtypes)
    except compiler.CompileError as error:
        log.add("compiles for the GPU", "FAILED", "nvcc's errors:", begun, str(error).splitlines())
        raise Stop(2) from error
    log.add("compiles for the GPU", "ok", "nvcc", begun, warnings.splitlines())
    return library


def fits(log, job, library, signature):
    """{pass: dtypes} of the launchers that the file defines."""
    begun = time.monotonic()
    found = compiler.defined_launchers(library, signature, job.dtypes)
    wanted = [f"  {signature.declaration(name)};" for name in job.passes]
    missing = [name for name in job.passes if name not in found]
    if not found or (job.passes_chosen and missing):
        log.add("signature fits", "FAILED", f"{job.shown} defines no launcher of {signature.op} "
                f"{' or '.join(missing)}; it would be, in namespace tigon::{signature.op}:", begun, wanted)
        raise Stop(2)
    have = ", ".join(f"{name} ({' '.join(dtypes)})" for name, dtypes in found.items())
    lacking = [f"{name} in {d}" for name, dtypes in found.items() for d in job.dtypes if d not in dtypes]
    log.add("signature fits", "ok", f"{signature.op} {have}" + (f"; not {', '.join(lacking)}" if lacking else ""), begun)
    return found


def find_functions(log, job):
    """{pass: function} of a .py file."""
    begun = time.monotonic()
    try:
        found = python_kernel.functions(job.text, job.op, job.passes)
    except SyntaxError as error:
        log.add("compiles", "FAILED", "not Python", begun, [f"{job.shown}:{error.lineno}: {error.msg}", f"    {(error.text or '').rstrip()}"])
        raise Stop(2) from error
    declared = {name: n for name, n in python_kernel.roundings(job.text).items() if name in found.values()}
    if declared:
        job.allowance = "; the budget allows for stored values that the file declares: " + \
            ", ".join(f"{n} in {name}()" for name, n in declared.items())
    missing = [one for one in job.passes if one not in found]
    if not found or (job.passes_chosen and missing):
        wanted = [f"def {job.op}(...)" if one == "forward" else f"def {job.op}_{one}(...)" for one in missing]
        log.add("signature fits", "FAILED", f"{job.shown} has no function for {job.op} {' or '.join(missing)}; it would be:", begun,
                wanted)
        raise Stop(2)
    log.add("signature fits", "ok", f"{job.op} " + ", ".join(f"{one} is {name}()" for one, name in found.items()), begun)
    return found


def refused(log, job, error, begun):
    """The library or file cannot be loaded."""
    missing = re.search(r"ModuleNotFoundError: No module named '(\w+)", str(error))
    if missing:
        log.add("imports", "not run", f"{sys.executable} has no {missing[1]}; TIGON_PYTHON chooses another interpreter", begun)
        raise Stop(4)
    log.add("imports", "FAILED", re.sub(r"^.*--impl-from \S+: ", "", str(error)), begun)
    raise Stop(2)


MODEL_BUDGET = "20s"
MOST_SHOWN = 3


def _kind(record):
    """What a failure has in common with others: the verdict and the kind of its reason."""
    reason = re.sub(r"^property \w+: ", "", record["reason"])
    return record["verdict"], re.split(r"[\d\[:]", reason)[0]


def failures(tally, outcome):
    """What failing cases have in common, and cases that fail for different reasons: first the one that was looked at again, then the
    smallest."""
    # What check says of a group holds what was too slow, too.
    patterns = outcome.patterns() if tally.failed and not tally.slow else []
    lines, seen, diagnoses = [f"what fails: {pattern}" for pattern in patterns], set(), outcome.diagnoses()
    here = os.getcwd() + os.sep
    for r in sorted(tally.failed, key=lambda r: (r["case_id"] not in diagnoses, math.prod(r["axes"].values()), judge.is_property(r))):
        if _kind(r) in seen or len(seen) == MOST_SHOWN:
            continue
        seen.add(_kind(r))
        head, *rest = diagnoses.get(r["case_id"]) or (f"{r['verdict']}: {r['reason']}", f"  repro: {r['repro']}")
        lines += [line.replace(here, "") for line in (r["case_id"], f"  {head}", *rest)]
    if len(tally.failed) > len(seen):
        lines.append(f"and {len(tally.failed) - len(seen)} more")
    return lines


def _slow_lines(tally, outcome):
    """Cases that were killed for their time, one of each size."""
    of_size = {limits.sizes(r): f"{r['case_id']}: {r['reason']}" for r in reversed(tally.slow)}
    lines = list(of_size.values())[:MOST_SHOWN]
    if outcome.stopped and lines:
        lines.append(f"{limits.MOST_ROUNDS} times {limits.MOST_SLOW} cases were too slow: the rest is not run")
    elif outcome.left_out and lines:
        lines.append(f"more cases of {' and of '.join(one.strip(',') for one in outcome.left_out)} are not run")
    return lines


def _judged(log, job, name, tally, begun, outcome, allowance=""):
    """Wrong results end the try; time does not, for it is no verdict on results."""
    if not tally.passed and not tally.failed and not tally.slow:
        log.add(name, "not run", "; ".join(tally.skipped) or "no case", begun)
        return
    verdict = "FAILED" if tally.failed else "too slow" if tally.slow else "ok"
    log.add(name, verdict, tally.text() + allowance, begun, failures(tally, outcome) + _slow_lines(tally, outcome))
    job.slow += [r["case_id"] for r in tally.slow]
    if tally.failed:
        raise Stop(1)


def _run_check(log, job, build, words, file, begun, checked=False):
    try:
        return limits.run_check(job, build, words, file, checked)
    except judge.Refused as error:
        refused(log, job, error, begun)


def check(log, job, build, library, selection, checked):
    """Tiny cases in the checking executor, or all cases against the oracle and the exact properties."""
    begun = time.monotonic()
    words = ["check", "--impl-from", str(library), "--op", job.op, *selection]
    if checked:
        outcome = _run_check(log, job, build, [*words, "--tier", "tiny", "--seed", "42"], "checked", begun, True)
        _judged(log, job, "checking executor", judge.tally(outcome.records), begun, outcome)
        return
    outcome = _run_check(log, job, build, words, "check", begun)
    oracle = judge.tally([r for r in outcome.records if not judge.is_property(r)])
    properties = judge.tally([r for r in outcome.records if judge.is_property(r)])
    _judged(log, job, "oracle's budget", oracle, begun, outcome, job.allowance)
    _judged(log, job, "exact properties", properties, time.monotonic(), outcome)
    if job.slow and not oracle.passed:
        raise Stop(5)


def count_traffic(log, job, signature):
    """Bytes that the kernels move at the largest size of the host's sweep, beside the least and what fused moves."""
    begun = time.monotonic()
    largest = {}
    for r in job.bench.of("trace"):
        if r["verdict"] == "passed" and r["bytes_min_bytes"] >= largest.get((r["pass"], r["dtype"]), r)["bytes_min_bytes"]:
            largest[r["pass"], r["dtype"]] = r
    for (one_pass, dtype), fused in largest.items():
        try:
            mine = traffic.of_case(job.folder / "checked.so", signature, one_pass, dtype, fused["axes"], job.limit)
        except subprocess.TimeoutExpired:
            log.add("memory traffic", "too slow", f"{one_pass} {dtype} at {units.axes_text(fused['axes'])}: no result within {job.limit} s", begun)
            job.slow.append(fused["case_id"])
            return
        if mine:
            job.traffic.append((fused, mine))
    log.add("memory traffic", "ok" if job.traffic else "not run",
            "counted by the host executor" if job.traffic else "not counted for this op", begun)


def sizes(log, job, build, library, selection):
    """Cases of the sizes that the op has in --model, pairwise within a time."""
    if not job.model:
        return
    begun = time.monotonic()
    words = ["check", "--impl-from", str(library), "--op", job.op, *selection, "--model", job.model, "--budget", MODEL_BUDGET]
    outcome = _run_check(log, job, build, words, "model", begun)
    _judged(log, job, f"sizes of {job.model}", judge.tally(outcome.records), begun, outcome)


def bench(log, job, build, library, signature, passes, selection):
    """Speed on a GPU, peak memory anywhere, side by side with the others."""
    begun = time.monotonic()
    others, left_out = peers.programs(build, [n for n in job.against if n in peers.FILES], signature, passes, job.folder)
    job.against = [n for n in job.against if n not in peers.FILES or n in others]
    names = [f"plugin:{job.name}", *(f"plugin:{n}" if n in others else n for n in job.against)]
    words = ["bench", "--impl-from", ",".join(map(str, [library, *others.values()])), "--op", job.op, *selection, "--impl",
             ",".join(names), *(["--model", job.model] if job.model else []), *(["--timeout", str(job.timeout)] if job.timeout else [])]
    if others or not job.is_cuda:
        words.append("--quick")
        left_out.append("other sizes than the middle of the sweep: Python starts anew for each figure")
    try:
        outcome = judge.tigon(build, words, job.folder / "bench.jsonl")
    except judge.Refused as error:
        refused(log, job, error, begun)
    job.outcomes.append(outcome)
    job.bench = outcome
    bad = [r for r in outcome.of("bench") if r["verdict"] not in ("passed", "ok") and r["impl"] == f"plugin:{job.name}"]
    what = "speed, peak memory" if build.on_gpu else "peak memory"
    slow = [r for r in bad if r["verdict"] == judge.TOO_SLOW]
    if bad:
        log.add(what, "FAILED" if len(bad) > len(slow) else "too slow", f"{len(bad)} measurements do not stand", begun,
                [f"{r['case_id']}: {r['verdict']}: {r['reason']}" for r in bad[:MOST_SHOWN]])
        job.slow += [r["case_id"] for r in slow]
        raise Stop(1 if len(bad) > len(slow) else 5)
    figures = len(outcome.of("memory")) + len(outcome.of("bench")) * build.on_gpu
    log.add(what, "ok", f"{figures} figures, side by side with {', '.join(job.against)}", begun, [f"not compared: {x}" for x in left_out])
    if not build.on_gpu:
        count_traffic(log, job, signature)
        log.add("speed", "not run", "no GPU here, and a time of the host executor is no kernel's speed", time.monotonic())
