# SPDX-License-Identifier: Apache-2.0
"""python -m tigon.judge candidate.py --reference reference.py: is a kernel that somebody or something wrote right?

python -m tigon.judge --batch problems.jsonl judges many, and so does a folder of candidates with --problems FOLDER.
Exit codes: 0 right, 1 wrong, 2 usage or a reference that is none, 4 nothing to judge, 5 not judged: too slow, or something is
missing here, 130 interrupted; of a batch the first that some verdict has of 1, 2, 5.
"""
import argparse
import contextlib
import importlib.util
import json
import pathlib
import sys
from collections import Counter
from typing import Any

from ._judge.batch import judge_all
from ._judge.entry import DEFAULTS, DTYPES, EXIT, BadBatch, Entry, entries, part, shard_of
from ._judge.failures import BadProblem
from ._judge.files import try_to_write
from ._judge.folder import entries_of
from ._judge.junit import write_junit
from ._judge.page import write_page
from ._judge.results import Results
from ._judge.trace import write_traces

_SHOWN = 160  # characters of a reason in a batch


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tigon judge", description="Judges a candidate's file by a reference's file, in a process of its own.")
    parser.add_argument("candidate", nargs="?", help="a file with ModelNew or a function candidate, or a Solution; with --problems a folder of them")
    parser.add_argument("--reference", metavar="FILE",
                        help="a file with Model or reference, and get_inputs; a Definition; or an operator, as aten.add.Tensor")
    parser.add_argument("--backward", action="store_true", help="gradients, too")
    parser.add_argument("--dtype", default="", choices=DTYPES[1:], help="of floating inputs and modules; else as they are")
    parser.add_argument("--device", default="cpu", help="e.g. cuda")
    parser.add_argument("--seed", type=int, help="else drawn after the candidate is loaded")
    parser.add_argument("--timeout", type=float, default=DEFAULTS["timeout"], metavar="SECONDS", help="for each answer of the candidate")
    parser.add_argument("--json", metavar="FILE", help="the verdict; - writes it in place of the summary. A batch goes on after those that FILE has")
    parser.add_argument("--junit", metavar="FILE", help="the same as JUnit XML")
    parser.add_argument("--html", metavar="FILE", help="the same as one page to read: what was compared, the worst element, the defences that ran")
    parser.add_argument("--workload", default="", metavar="FILE", help="of FlashInfer-Bench: candidate and reference are a Solution and a Definition; "
                        "FILE#UUID is one of its lines")
    parser.add_argument("--trace", metavar="FILE", help="verdicts by workloads as Traces of FlashInfer-Bench")
    parser.add_argument("--batch", type=pathlib.Path, metavar="FILE",
                        help='a JSON object a line: "candidate" and "reference", relative to FILE, and any of the options above')
    parser.add_argument("--problems", type=pathlib.Path, metavar="FOLDER", help="of KernelBench, or any: candidates are named as their problems are, "
                        "or level_1_problem_1_sample_0_kernel.py")
    parser.add_argument("--shard", metavar="I/N", help="the I-th of N parts of a batch, from 0 on")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="candidates of a batch at a time")
    return parser


def _arguments(words: list[str] | None) -> argparse.Namespace:
    parser = _parser()
    given = parser.parse_args(words)
    if given.batch is not None and (given.candidate or given.reference or given.problems):
        parser.error("--batch names candidates and references itself")
    if given.batch is None and not (given.candidate and bool(given.reference) != bool(given.problems)):
        parser.error("it takes a candidate and --reference FILE, a folder and --problems FOLDER, or --batch FILE")
    if not (given.batch or given.problems) and (given.shard or given.jobs != 1):
        parser.error("--shard and --jobs are for --batch and --problems")
    if given.jobs < 1:
        parser.error("--jobs takes a number from 1 on")
    return given


class _CannotWrite(Exception):
    """What cannot be written, in one line."""


@contextlib.contextmanager
def _writing(option: str, file: str) -> Any:
    try:
        yield
    except OSError as error:
        raise _CannotWrite(f"{option} {file}: {error.strerror}; name a file that can be written") from error


def _try_files(given: argparse.Namespace, *options: str) -> None:
    """Before the work, not after it. _CannotWrite: one of the files cannot be written."""
    for option in options:
        if (file := getattr(given, option)) and file != "-":
            with _writing(f"--{option}", file):
                try_to_write(pathlib.Path(file))


def _one(given: argparse.Namespace, entry: Entry) -> int:
    """Judges one candidate."""
    from ._judge.verdict import judged  # after --help, which needs no torch

    _try_files(given, "json", "junit", "html", "trace")
    record = entry.record(judged(entry).record())
    line = json.dumps(record)
    if given.json and given.json != "-":
        pathlib.Path(given.json).write_text(line + "\n", encoding="utf-8")
    _others(given, [(entry, record)])
    print(line if given.json == "-" else _said(record))
    return EXIT[record["verdict"]]


def _said(record: dict[str, Any]) -> str:
    counts = Counter(case["verdict"] for case in record["cases"])
    lines = [f"{record['verdict']}{': ' if record['reason'] else ''}{record['reason']}", *(f"  not looked at: {note}" for note in record["notes"]),
             *(f"  it {limit}" for limit in record.get("limits", [])),
             *([f"  it calls torch: {', '.join(name.removeprefix('aten::') for name in record['calls'])[:_SHOWN]}"] if record["calls"] else []),
             f"{counts['passed']} comparisons passed, {counts['skipped']} skipped, seed {record['seed']}, {record['seconds']:.1f} s"]
    return "\n".join(lines)


def _others(given: argparse.Namespace, judged: list[tuple[Entry, dict[str, Any]]]) -> None:
    """Writes verdicts in other formats."""
    if given.junit:
        with _writing("--junit", given.junit):
            write_junit(pathlib.Path(given.junit), [record for _, record in judged])
    if given.html:
        with _writing("--html", given.html):
            write_page(pathlib.Path(given.html), [record for _, record in judged])
    if given.trace:
        with _writing("--trace", given.trace):
            write_traces(pathlib.Path(given.trace), judged)


def _many(given: argparse.Namespace, wanted: list[Entry]) -> int:
    """Judges those that have no verdict yet."""
    _try_files(given, "junit", "html", "trace")
    file = pathlib.Path(given.json) if given.json and given.json != "-" else None
    with _writing("--json", given.json or ""):
        results = Results(file)
    keys = [entry.key for entry in wanted]
    known = {key: results.had[key] for key in keys if key in results.had}
    there = len(known)
    with results, contextlib.closing(judge_all([entry for entry, key in zip(wanted, keys) if key not in known], given.jobs)) as verdicts:
        try:
            for _, record in verdicts:
                with _writing("--json", given.json or ""):
                    results.add(record)
                known[record["key"]] = record
                print(json.dumps(record) if given.json == "-" else _short(record), flush=True)
        except KeyboardInterrupt:
            kept = f"; {file} has {len(known)} of {len(keys)} verdicts, and the same command goes on" if file else ""
            print(f"interrupted{kept}", file=sys.stderr)
            return 130
    records = [known[key] for key in keys]
    _others(given, list(zip(wanted, records)))
    if given.json != "-":
        print(_counted(records, there))
    codes = {EXIT[record["verdict"]] for record in records}
    return next(code for code in (1, 2, 5, 0) if code in codes)


def _short(record: dict[str, Any]) -> str:
    reason = f": {record['reason'][:_SHOWN]}" if record["reason"] else ""
    workload = f" ({record['options']['workload'].rpartition('#')[2]})" if record["options"]["workload"] else ""
    return f"{record['candidate']}{workload}: {record['verdict']}{reason}"


def _counted(records: list[dict[str, Any]], there: int) -> str:
    counts = Counter(record["verdict"] for record in records)
    before = f", {there} of them before" if there else ""
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in EXIT if counts[verdict]) + f"; {len(records)} in all{before}"


def _wanted(given: argparse.Namespace) -> list[Entry]:
    """All that is to be judged. BadBatch, BadProblem: it cannot be told."""
    options = {name: getattr(given, name) for name in DEFAULTS}
    if given.batch:
        return entries(given.batch, options)
    if given.problems:
        return entries_of(pathlib.Path(given.candidate), given.problems, options)
    return Entry(given.candidate, given.reference, options).by_workload()


def main(words: list[str] | None = None) -> int:
    """Judges and prints; the exit code."""
    given = _arguments(words)
    if not importlib.util.find_spec("torch"):
        print("tigon judge: no torch here: install it, or start it with a Python that has it", file=sys.stderr)
        return 5
    try:
        wanted = part(_wanted(given), shard_of(given.shard or "0/1"))
        if not wanted:
            print("tigon judge: nothing to judge", file=sys.stderr)
            return 4
        return _many(given, wanted) if given.batch or given.problems or wanted[1:] else _one(given, wanted[0])
    except (BadBatch, BadProblem) as error:
        print(f"tigon judge: {error}", file=sys.stderr)
        return 2
    except (_CannotWrite, ImportError) as error:
        print(f"tigon judge: {error}", file=sys.stderr)
        return 5
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
