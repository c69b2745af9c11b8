# SPDX-License-Identifier: Apache-2.0
"""tigon gate --bits: does this tree compute the base's outputs, byte for byte?

Every tiny and check case of the fused kernels runs in both programs. A difference is repeated in both: where a program
does not agree with itself, or a repetition gives the other program's bytes, the output is "not deterministic".
"""
import collections
import dataclasses
import enum
import pathlib
import shutil
import tempfile

from tigon_report import records
from tigon_report.errors import DataError, InfrastructureError, UsageError
from tigon_report.recorder import Recorder, new_run_id
from tigon_trees import build

from . import first_algorithm, saved, sides

SHOWN = 10  # cases of a kind that are printed; all are recorded


class Outcome(enum.Enum):
    EQUAL = "equal"
    DIFFERENT = "different"
    UNDECIDED = "not_deterministic"
    BASE_ONLY = "base_only"
    HEAD_ONLY = "head_only"
    NEITHER = "not_run"


@dataclasses.dataclass
class Compared:
    """A case in both trees."""

    case_id: str
    outcome: Outcome
    outputs: int = 0
    differences: list = dataclasses.field(default_factory=list)
    reason: str = ""

    @property
    def group(self):
        op, pass_name, _, dtype = self.case_id.split("/")[:4]
        return op, pass_name, dtype


def run(options, root, device, command, say):
    """Compares, records and prints; returns the exit code."""
    base = sides.base_tree(options, root)
    try:
        paths = {"base": sides.base_program(options, base, device, say), "head": sides.head_program(options, root, device, say)}
    except build.BuildError as error:
        raise InfrastructureError(str(error)) from error
    with tempfile.TemporaryDirectory(prefix="tigon-bits-") as folder:
        folder = pathlib.Path(folder)
        environment = first_algorithm.environment(folder, say) if device == "cuda" else {}
        both = [saved.Program(side, path, device, options.seed, environment) for side, path in paths.items()]
        compared = []
        for selection in selections(options, both):
            say(f"checking {' '.join(selection)}")
            compared += compare(both, selection, folder, options.repeats)
    if not any(case.outputs for case in compared):
        raise DataError("no case ran in both trees; take other --op, --dtype, --tier, --filter or --case")
    groups = collections.defaultdict(list)
    for case in compared:
        groups[case.group].append(case)
    code = exit_code(compared)
    print(table(groups))
    for line in findings(compared):
        print(line)
    recorder = Recorder(options.json or pathlib.Path(options.out or root / "results" / new_run_id()) / "records.jsonl",
                        command, build.commit_of(root), both[1].header, options.seed)
    counts = record(recorder, groups, both, options, code)
    recorder.end(*counts, code)
    print(f"results: {recorder.path}")
    print("{} passed, {} failed, {} skipped".format(*counts))
    return code


def selections(options, both):
    """Options of `tigon check`, one list for each op and dtype, so that only their tensors lie on the disk at once."""
    known = [program.kernels for program in both]
    for name in options.op:
        if name not in {op for op, _ in known[0] | known[1]}:
            raise UsageError(f"--op {name}: neither tree has it")
    if options.case:
        return [[word for case in options.case for word in ("--case", case)]]
    chosen = [(op, dtype) for op, dtype in sorted(known[0] | known[1])
              if (not options.op or op in options.op) and (not options.dtype or dtype in options.dtype)]
    rest = ["--tier", options.tier, *(["--filter", options.filter] if options.filter else [])]
    return [["--op", op, "--dtype", dtype, *rest] for op, dtype in chosen]


# ---- comparing ----------------------------------------------------------------------------------


def compare(both, selection, folder, repeats):
    """[Compared] of the cases of a selection."""
    first = _run(both, selection, folder / "0")
    compared = [_of_case(case, *(ran.get(case) for ran in first)) for case in {**first[0], **first[1]}]
    doubtful = [case for case in compared if any(one.what == "output" for one in case.differences)]
    if doubtful:
        again = [word for case in doubtful for word in ("--case", case.case_id)]
        runs = [first, *(_run(both, again, folder / str(turn)) for turn in range(1, repeats + 1))]
        for case in doubtful:
            if all(_by_chance(runs, case.case_id, (one.tensor, one.what)) for one in case.differences):
                case.outcome = Outcome.UNDECIDED
    for files in folder.glob("[0-9]*"):
        shutil.rmtree(files)
    return compared


def _run(both, selection, folder):
    """The cases of both programs; a tree that lacks the selection's op has none."""
    lacks = [selection[0] == "--op" and (selection[1], selection[3]) not in program.kernels for program in both]
    return [{} if lack else program.check(selection, folder / program.side) for program, lack in zip(both, lacks)]


def _by_chance(runs, case_id, tensor):
    """Does the base differ from itself, or does any run of head give the bytes of one of the base's?"""
    base, head = ({run[side][case_id].files[tensor][0].read_bytes() for run in runs if tensor in run[side][case_id].files}
                  for side in (0, 1))
    return len(base) > 1 or bool(base & head)


def _of_case(case_id, base, head):
    if base is None or head is None or not (base.files and head.files):
        return _not_in_both(case_id, base, head)
    keys = {**base.files, **head.files}
    outputs = sum(what == "output" for _, what in keys)
    if lone := [name for name, what in keys if (name, what) not in base.files or (name, what) not in head.files]:
        return Compared(case_id, Outcome.DIFFERENT, outputs, reason=f"only one tree has tensor {', '.join(lone)}")
    found = [difference for key in keys if (difference := saved.difference(key, base.files[key], head.files[key]))]
    asked = [one for one in found if one.what == "input"]
    if asked:  # other questions have other answers
        return Compared(case_id, Outcome.DIFFERENT, outputs, asked, "the trees make different inputs")
    return Compared(case_id, Outcome.DIFFERENT if found else Outcome.EQUAL, outputs, found)


def _not_in_both(case_id, base, head):
    ended = [f"{side}: {_end(ran)}" for side, ran in (("base", base), ("head", head))]
    if base and head and not base.files and not head.files:
        return Compared(case_id, Outcome.NEITHER, reason=_end(head) if _end(base) == _end(head) else "; ".join(ended))
    lacking, outcome = (head, Outcome.BASE_ONLY) if base and base.files or not head else (base, Outcome.HEAD_ONLY)
    # A kernel that fails where the other tree's ends is no missing case.
    if lacking and lacking.verdict not in ("unsupported", "skipped", "not_run"):
        outcome = Outcome.DIFFERENT
    return Compared(case_id, outcome, reason="; ".join(ended))


def _end(ran):
    if ran is None:
        return "no such case"
    return ran.verdict + (f": {ran.reason}" if ran.reason else "")


# ---- output -------------------------------------------------------------------------------------

COLUMNS = ("cases", "outputs", "equal", "different", "not deterministic", "only in base", "only in head", "not run")


def exit_code(compared):
    """1 when something differs, 6 when something differs by chance, so that nothing is proved of it."""
    outcomes = {case.outcome for case in compared}
    return 1 if Outcome.DIFFERENT in outcomes else 6 if Outcome.UNDECIDED in outcomes else 0


def counts_of(cases):
    """The numbers of COLUMNS: cases that ran in both trees, their outputs, then cases that did not run in both."""
    of = lambda outcome: [case for case in cases if case.outcome == outcome]  # noqa: E731
    unequal = {outcome: sum(max(1, len(case.differences)) for case in of(outcome))
               for outcome in (Outcome.DIFFERENT, Outcome.UNDECIDED)}
    both = [case for case in cases if case.outputs]
    outputs = sum(case.outputs for case in both)
    differing = sum(max(1, len(case.differences)) for case in both if case.outcome != Outcome.EQUAL)
    return (len(both), outputs, outputs - differing, *unequal.values(),
            *(len(of(outcome)) for outcome in (Outcome.BASE_ONLY, Outcome.HEAD_ONLY, Outcome.NEITHER)))


def table(groups):
    """One line per op, pass and type."""
    lines = [" ".join([f"{'op':<22} {'pass':<17} {'dtype':<5}", *COLUMNS])]
    for (op, pass_name, dtype), cases in sorted(groups.items()):
        numbers = " ".join(f"{number:>{len(name)}}" for name, number in zip(COLUMNS, counts_of(cases)))
        lines.append(f"{op:<22} {pass_name:<17} {dtype:<5} {numbers}")
    return "\n".join(lines)


def findings(compared):
    """Sentences about what is not equal, the first of each kind in full."""
    for outcome in (Outcome.DIFFERENT, Outcome.UNDECIDED, Outcome.BASE_ONLY, Outcome.HEAD_ONLY, Outcome.NEITHER):
        cases = [case for case in compared if case.outcome == outcome]
        yield from (f"{outcome.value.replace('_', ' ')}: {case.case_id}: {_why(case)}" for case in cases[:SHOWN])
        if len(cases) > SHOWN:
            yield f"{outcome.value.replace('_', ' ')}: {len(cases) - SHOWN} more cases; the records have all"


def _why(case):
    told = [f"{one.what} {one.tensor}{one.where}: {one.base} became {one.head}; {one.elements} of {one.of} elements"
            for one in case.differences]
    return "; ".join([*([case.reason] if case.reason else []), *told])


def record(recorder, groups, both, options, code):
    """Writes what was found; returns how many cases passed, failed and were skipped."""
    executor = both[1].executor
    commits = [(program.header or {}).get("tool", {}).get("commit") for program in both]
    for (op, pass_name, dtype), cases in sorted(groups.items()):
        names = (name.replace(" ", "_") for name in COLUMNS)
        recorder.write("bits", {"scope": "group", "op": op, "pass": pass_name, "dtype": dtype, "executor": executor,
                                **dict(zip(names, counts_of(cases)))})
        for case in cases:
            if case.outcome != Outcome.EQUAL:
                recorder.write("bits", {"scope": "case", "case_id": case.case_id, "case_key": records.case_key(case.case_id),
                                        "executor": executor, "outcome": case.outcome.value, "reason": case.reason,
                                        "differences": [dataclasses.asdict(one) for one in case.differences]})
    outcomes = collections.Counter(case.outcome for cases in groups.values() for case in cases)
    recorder.write("bits", {"scope": "suite", "executor": executor, "tier": options.tier, "base_commit": commits[0],
                            "head_commit": commits[1], "exit_code": code,
                            "outcomes": {outcome.value: outcomes[outcome] for outcome in Outcome}})
    passed, failed = outcomes[Outcome.EQUAL], outcomes[Outcome.DIFFERENT]
    return passed, failed, outcomes.total() - passed - failed
