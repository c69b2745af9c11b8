# SPDX-License-Identifier: Apache-2.0
"""tigon gate: is this commit slower than that one, or does it compute something else?

`./tigon gate` calls this (python3 -m tigon_gate). Exit codes: 0 passed, 1 other outputs, 2 usage, 3 slower (or a static
number that blocks), 4 nothing to compare, 5 infrastructure, 6 inconclusive, 130 Ctrl-C.
"""
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

from tigon_report import command, recorder
from tigon_report.errors import DataError, InfrastructureError, UsageError
from tigon_trees import build

from . import bits, cells, decide, first_algorithm, history, pairs, saved, sides, simulate, static, suite

ROOT = pathlib.Path(__file__).resolve().parents[2]
UNITS = {"s": 1, "m": 60, "h": 3600, "us": 1e-6, "ms": 1e-3}


def parser():
    parse = command.Parser("gate", "Is this tree slower than another commit?", [
        "--base main                     on a GPU: pairs of processes of both programs",
        "--base main --op rms_norm --budget 5m",
        "--aa                            how often the gate blocks identical programs, what it can find",
        "--static --base main            without a GPU: traffic, registers, spills, code size",
        "--bits --base main              do all outputs have the base's bytes?",
        "--bits --base main --device cuda --op rope --dtype bf16 --tier tiny"])
    add = parse.add_argument
    add("--base", metavar="REF", help="the commit to compare with; it is built in build/gate")
    add("--aa", action="store_true", help="the same program against itself")
    add("--static", action="store_true", help="what can be said without a GPU")
    add("--bits", action="store_true", help="compare every output of the fused kernels, byte for byte")
    add("--tier", choices=("tiny", "check"), default="check", help="--bits: the tiny cases only, or all (%(default)s)")
    add("--dtype", action="append", default=[], choices=saved.DTYPES, help="--bits: only this type (repeatable)")
    add("--repeats", type=int, default=2, metavar="N",
        help="--bits: times that both programs repeat what differs, to find what no run repeats (%(default)s)")
    add("--only", choices=("kernels", "host"), help="--static: only what nvcc tells, or only the host executor")
    add("--op", action="append", default=[], help="only cells of this op (repeatable)")
    add("--filter", default="", metavar="REGEX", help="only cells whose case id it is found in")
    add("--case", action="append", default=[], metavar="ID", help="exactly this case instead (repeatable)")
    add("--budget", metavar="TIME", help="stop, inconclusive, when it cannot be done in this time (10m, 90s)")
    add("--pairs", type=int, metavar="N", help="process pairs (12; more when there are more than 20 cells; --aa: 24)")
    add("--samples", type=int, default=pairs.SAMPLES, metavar="N", help="samples per cell and process (%(default)s)")
    add("--suites", type=int, default=1000, metavar="N", help="--aa: suites to make of the measured pairs (%(default)s)")
    add("--first-algorithm", action="store_true",
        help="both programs multiply by the first algorithm of cuBLASLt, instead of the one that each process finds fastest")
    add("--floor", default="1us", metavar="TIME", help="no smaller change counts (%(default)s)")
    add("--history", action="append", default=[], metavar="PATH",
        help="records of A/A runs, for the margins (results and reports/recorded)")
    add("--base-dir", metavar="DIR", help="a source tree in place of --base")
    add("--base-program", metavar="FILE", help="a built program in place of --base")
    add("--head-program", metavar="FILE", help="a built program in place of this tree")
    add("--out", metavar="DIR", help="folder of the records (results/RUN)")
    add("--json", metavar="FILE", help="records file in place of the folder's")
    add("--seed", type=int, default=42, help="of resampling and simulation; --bits: of the inputs")
    add("--simulate", metavar="FILE", help="TEST MODE: made-up programs with these times and this noise; measures nothing")
    return parse


def duration(text, option):
    match = re.fullmatch(r"([0-9.]+)(us|ms|s|m|h)", text)
    if not match:
        raise UsageError(f"{option} '{text}' is no time; right would be 90s, 10m or 2us")
    return float(match[1]) * UNITS[match[2]]


def check_options(options):
    modes = [name for name in ("aa", "static", "bits") if getattr(options, name)]
    bases = [name for name in ("base", "base_dir", "base_program") if getattr(options, name)]
    if len(modes) > 1:
        raise UsageError("--aa, --static and --bits exclude each other")
    if len(bases) > 1:
        raise UsageError("give one of --base, --base-dir, --base-program")
    if options.bits and not bases:
        raise UsageError("--bits compares with what? give --base REF, --base-dir DIR or --base-program FILE")
    if not options.bits and options.dtype:
        raise UsageError("--dtype is for --bits; cells have the type that they are measured in")
    if options.first_algorithm and (options.static or options.bits):
        raise UsageError("--first-algorithm is for speed; --bits always compares so, --static multiplies nothing")
    if not modes and not bases and not options.simulate:
        raise UsageError("compare with what? give --base REF, or --aa, or --static; see ./tigon gate --help")
    if options.aa and bases:
        raise UsageError("--aa runs one program against itself; it takes no base")
    known = sorted(path.stem for path in (ROOT / "harness/ops").glob("*.cpp") if (ROOT / "kernels" / path.stem).is_dir())
    for op in options.op:
        if op not in known:
            raise UsageError(f"--op {op}: no such op; there are {', '.join(known)}")
    for name in ("pairs", "samples", "suites"):
        if getattr(options, name) is not None and getattr(options, name) < 1:
            raise UsageError(f"--{name} must be at least 1")


def say(text):
    command.say("gate", text)


def device_of(wanted):
    """host or cuda: what is asked for, or what is there."""
    if wanted not in ("auto", "host", "cuda"):
        raise UsageError(f"--device must be host or cuda, not '{wanted}'")
    return wanted if wanted != "auto" else "cuda" if build.find_nvcc() and build.have_gpu() else "host"


def simulated(options, chosen):
    """The runner of the hidden test mode: {"base_s": 1e-4, "slow": {REGEX: 0.03}, "noise": {...}, "seconds": 0}."""
    try:
        wanted = json.loads(pathlib.Path(options.simulate).read_text())
        noise = simulate.Noise(**wanted.get("noise", {}))
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(f"--simulate {options.simulate}: {error}") from error
    slow = {} if options.aa else {cell.case_id: change for pattern, change in wanted.get("slow", {}).items()
                                  for cell in chosen if re.search(pattern, cell.case_id)}
    failing = {(side, cell.case_id): reason for side, pattern, reason in wanted.get("failing", [])
               for cell in chosen if re.search(pattern, cell.case_id)}
    say("TEST MODE: simulated programs, nothing is measured")
    return simulate.Runner({cell.case_id: wanted.get("base_s", 1e-4) for cell in chosen}, slow, noise, options.seed,
                           failing, wanted.get("seconds", 0.0))


def programs_of(options):
    """(programs by side, commits): given, or built from this tree and the base."""
    commits = [None, build.commit_of(ROOT)[0]]
    if not options.head_program and not build.have_gpu():
        raise InfrastructureError("speed needs an NVIDIA GPU and there is none here (times taken on a CPU are never kernel "
                                  "speed); what can be judged without one: ./tigon gate --static")
    head = sides.head_program(options, ROOT, "cuda", say)
    if options.aa:
        return {"base": head, "head": head}, commits
    base = sides.base_tree(options, ROOT)
    if base and base[1]:
        commits[0] = base[1]
        if changed := build.differing(ROOT, base[1], "harness/measure"):
            say(f"each program measures itself, and what measures differs: {', '.join(changed)}")
    return {"base": sides.base_program(options, base, "cuda", say), "head": head}, commits


def present(programs, chosen):
    """(cells whose op, pass and type both programs know, a sentence about each of the others)."""
    known = {}
    for side, program in programs.items():
        listed = subprocess.run([str(program), "list"], capture_output=True, text=True, check=False)
        if listed.returncode != 0:
            raise InfrastructureError(f"{side}: {program} list: {listed.stderr.strip() or listed.returncode}")
        rows = [line.split() for line in listed.stdout.splitlines()]
        known[side] = {(row[0], row[1], row[2]) for row in rows if len(row) > 3}
    left, out = [], []
    for cell in chosen:
        missing = [side for side in known if tuple(cell.case_id.split("/")[:3]) not in known[side]]
        if missing:
            out.append(f"not compared, not in {' or '.join(sorted(missing))}: {cell.name}")
        else:
            left.append(cell)
    if not left:
        raise UsageError("no cell is known to both programs")
    return left, out


def stand_in(options, folder):
    """Variables of both programs for --first-algorithm."""
    return first_algorithm.environment(folder, say) if options.first_algorithm else {}


def main(argv):
    with tempfile.TemporaryDirectory(prefix="tigon-gate-") as folder:
        return gate(argv, folder)


def gate(argv, folder):
    """The exit code; what lives as long as the run is in `folder`."""
    options = parser().parse_args(argv)
    check_options(options)
    begun = time.monotonic()
    budget = duration(options.budget, "--budget") if options.budget else None
    rule = decide.Rule(floor_s=duration(options.floor, "--floor"))
    if options.pairs and not options.aa:
        rule = dataclasses.replace(rule, pairs=options.pairs)
    if options.static:
        return static.run(options, ROOT, say)
    if options.bits:
        return bits.run(options, ROOT, device_of(os.environ.get("TIGON_DEVICE", "auto")), ["./tigon", "gate", *argv], say)
    try:
        chosen = cells.selected(options.op, options.filter, options.case)
    except ValueError as error:
        raise UsageError(str(error)) from error
    try:
        commits, left_out = (None, None), []
        if options.simulate:
            runner = simulated(options, chosen)
        else:
            programs, commits = programs_of(options)
            chosen, left_out = present(programs, chosen)
            for line in left_out:
                say(line)
            runner = pairs.ProgramRunner(programs, options.samples, environment=stand_in(options, folder))
            runner.probe()
        known = history.load(options.history or [ROOT / "results", ROOT / "reports/recorded"])

        def recorder_of():
            like = next(iter(getattr(runner, "headers", {}).values()), None)
            run_folder = options.out or ROOT / "results" / recorder.new_run_id()
            return recorder.Recorder(options.json or pathlib.Path(run_folder) / "records.jsonl",
                                    ["./tigon", "gate", *argv], build.commit_of(ROOT), like)

        deadline = begun + budget if budget else None
        if options.aa:
            return suite.run_aa(runner, chosen, rule, recorder_of, say, options.pairs or 2 * rule.pairs, options.suites,
                                options.seed, deadline)
        return suite.run_gate(runner, chosen, rule, known, recorder_of, say, deadline, commits,
                              left_out)
    except build.UnknownRef as error:
        raise UsageError(str(error)) from error
    except (build.BuildError, pairs.RunnerError, DataError, ValueError) as error:
        raise InfrastructureError(str(error)) from error


if __name__ == "__main__":
    sys.exit(command.run("gate", main, sys.argv[1:]))
