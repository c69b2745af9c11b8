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


def sharing(fault, op, ops, lines_of):
    """The op besides whose cases see what this one shares with it: of those that have code of it the one whose file it is, else the first of
    the alphabet. lines_of(op): as `used` takes them."""
    owner = pathlib.PurePath(fault.file).parts[1]
    others = sorted(ops, key=lambda other: (other != owner, other))
    has_code = (other for other in others if other != op and fault.file in files.sources_of(ROOT, other) and used([fault], lines_of(other)))
    return list(itertools.islice(has_code, 1))


def sources_to_draw_from(arguments):
    """{an op and its passes: paths}: all of its sources, or those that --changed names, where there are any."""
    changed = changed_files(arguments.changed) if arguments.changed else None
    paths = {on: [path for path in files.sources_of(ROOT, on.split()[0]) if changed is None or path in changed] for on in arguments.on}
    return {on: found for on, found in paths.items() if found or changed is None}


def number_for_each(arguments, ops):
    """How many are drawn of one op: --sample, or with --changed, where those are all, an equal share of them."""
    return math.ceil(arguments.sample / max(1, ops)) if arguments.changed else arguments.sample


def draw(arguments):
    """{name: (fault, its targets, those that share it)}."""
    drawn, known = {}, {}
    passes = {known_op.split()[0]: known_op for known_op in arguments.op}
    sources = sources_to_draw_from(arguments)
    number = number_for_each(arguments, len(sources))
    lines_of = functools.cache(lambda op: files.compiled_lines(arguments.build, files.sources_of(ROOT, op)))
    for on, paths in sources.items():
        op = on.split()[0]
        every = [fault for path in paths for fault in known.setdefault(path, faults_of(path, arguments.device == "cuda"))]
        every = used(every, lines_of(op))
        for fault in random.Random(f"{arguments.seed} {op}").sample(every, min(number, len(every))):
            _, targets, also = drawn.setdefault(fault.name, (fault, [], {}))
            targets.append(on)
            also.update({other: passes[other] for other in sharing(fault, op, list(passes), lines_of)})
        print(f"{op}: {min(number, len(every))} of {len(every)} mutants in {len(paths)} files drawn, seed {arguments.seed}", flush=True)
    return drawn


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

    no_code_of = {name: [] for name in drawn}

    def write(faults):
        arguments.file.write_text("\n".join(f.record(*drawn[f.name][1:], proofs.get((f.file, f.old, f.new)), no_code_of[f.name]) for f in faults))

    left = build.compiled([fault for fault, *_ in drawn.values()], write, arguments.build, "tigon-own-mutants")
    print(f"{len(drawn) - len(left)} of {len(drawn)} do not compile and are left out", flush=True)
    for op in (on.split()[0] for on in arguments.on):
        code = files.mutated_code(arguments.build, files.sources_of(ROOT, op)) if arguments.device == "host" else b""
        for fault in left if code else ():
            if fault.id not in code:
                no_code_of[fault.name].append(op)
    write(left)
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
