# SPDX-License-Identifier: Apache-2.0
"""tigon mutants --sample: draws mutants of an op's sources and builds the kernels with them."""
import argparse
import functools
import itertools
import math
import pathlib
import random
import subprocess
import sys

from . import build, fault_file, files
from .operators import Operators
from .source import Source

ROOT = pathlib.Path(__file__).resolve().parents[3]
EXIT_USAGE, EXIT_NOTHING, EXIT_INFRASTRUCTURE = 2, 4, 5


def changed_files(base):
    """Paths of the kernels' files that differ from a commit."""
    done = subprocess.run(["git", "-C", ROOT, "diff", "--name-only", base, "--", "kernels"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LookupError(f"--changed {base}: git knows no such commit")
    return set(done.stdout.split())


def faults_of(path, gpu):
    source = Source(path, (ROOT / path).read_text(), gpu)
    return [fault_file.Fault(source, mutation) for mutation in dict.fromkeys(Operators(source).all())]


def used(faults, lines):
    """Those in functions that the op has code of: a shared header has others, too. `lines`: those that have code; none: not known."""
    def is_used(fault):
        first, last = fault.function_lines
        name = fault.file.rpartition("/")[2]
        return any((name, line) in lines for line in range(first, last + 1))
    return [fault for fault in faults if not lines or is_used(fault)]


def sharing(fault, op, ops, has_code):
    """The op besides whose cases see what this one shares with it: of those that have code of it, as has_code(fault, op) says, the one whose
    file it is, else the first of the alphabet."""
    owner = pathlib.PurePath(fault.file).parts[1]
    others = sorted(ops, key=lambda other: (other != owner, other))
    found = (other for other in others if other != op and fault.file in files.sources_of(ROOT, other) and has_code(fault, other))
    return list(itertools.islice(found, 1))


def sources_to_draw_from(arguments):
    """{an op and its passes: paths}: all of its sources, or those that --changed names, where there are any."""
    changed = changed_files(arguments.changed) if arguments.changed else None
    paths = {on: [path for path in files.sources_of(ROOT, on.split()[0]) if changed is None or path in changed] for on in arguments.on}
    return {on: found for on, found in paths.items() if found or changed is None}


def number_for_each(arguments, ops):
    """How many are drawn of one op: --sample, or with --changed, where those are all, an equal share of them."""
    return math.ceil(arguments.sample / max(1, ops)) if arguments.changed else arguments.sample


def draw(arguments):
    """{name: (fault, its targets)}."""
    drawn, known = {}, {}
    sources = sources_to_draw_from(arguments)
    number = number_for_each(arguments, len(sources))
    lines_of = functools.cache(lambda op: files.compiled_lines(arguments.build, files.sources_of(ROOT, op)))
    for on, paths in sources.items():
        op = on.split()[0]
        every = [fault for path in paths for fault in known.setdefault(path, faults_of(path, arguments.device == "cuda"))]
        every = used(every, lines_of(op))
        for fault in random.Random(f"{arguments.seed} {op}").sample(every, min(number, len(every))):
            drawn.setdefault(fault.name, (fault, []))[1].append(on)
        print(f"{op}: {min(number, len(every))} of {len(every)} mutants in {len(paths)} files drawn, seed {arguments.seed}", flush=True)
    return drawn


def code_in(arguments):
    """Of the build: has_code(fault, op), true where it is not known."""
    @functools.cache
    def code_of(op):
        return files.mutated_code(arguments.build, files.sources_of(ROOT, op)) if arguments.device == "host" else b""

    return lambda fault, op: not code_of(op) or fault.id in code_of(op)


def others(drawn, passes, has_code, fault):
    """{op: it and its passes} of those that share a drawn fault, and the ops that it was drawn for and that have no code of it."""
    ops = [on.split()[0] for on in drawn[fault.name][1]]
    return ({other: passes[other] for op in ops for other in sharing(fault, op, passes, has_code)}, [op for op in ops if not has_code(fault, op)])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--device", required=True)
    parser.add_argument("--sample", type=int, required=True)
    parser.add_argument("--seed", required=True)
    parser.add_argument("--changed")
    parser.add_argument("--on", action="append", required=True, help="an op and its passes")
    parser.add_argument("--op", action="append", required=True, help="the same of every op that there is")
    arguments = parser.parse_args()
    drawn = draw(arguments)
    if not drawn:
        print("nothing to run: no mutant is drawn")
        return EXIT_NOTHING
    proofs = fault_file.read_equivalents(sorted(ROOT.glob("harness/ops/*.equivalent")))

    def write(faults, others_of=lambda fault: ({}, [])):
        arguments.file.write_text("\n".join(f.record(drawn[f.name][1], also, proofs.get((f.file, f.old, f.new)), without_code)
                                            for f in faults for also, without_code in [others_of(f)]))

    left = build.compiled([fault for fault, _ in drawn.values()], write, arguments.build, "tigon-own-mutants")
    print(f"{len(drawn) - len(left)} of {len(drawn)} do not compile and are left out", flush=True)
    write(left, functools.partial(others, drawn, {op.split()[0]: op for op in arguments.op}, code_in(arguments)))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except LookupError as error:
        print(f"tigon: {error}", file=sys.stderr)
        sys.exit(EXIT_USAGE)
    except (RuntimeError, ValueError) as error:
        print(f"tigon: mutants: {error}", file=sys.stderr)
        sys.exit(EXIT_INFRASTRUCTURE)
