# SPDX-License-Identifier: Apache-2.0
"""python -m tigon.judge candidate.py --reference reference.py: is a kernel that somebody or something wrote right?

Exit codes: 0 right, 1 wrong, 2 usage or a reference that is none, 5 not judged: too slow, or something is missing here.
"""
import argparse
import json
import pathlib
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._judge.verdict import Verdict


def _arguments(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tigon judge", description="Judges a candidate's file by a reference's file, in a process of its own.")
    parser.add_argument("candidate", type=pathlib.Path, help="a file with ModelNew, or with a function candidate")
    parser.add_argument("--reference", type=pathlib.Path, required=True, help="a file with Model or reference, and get_inputs")
    parser.add_argument("--backward", action="store_true", help="gradients, too")
    parser.add_argument("--dtype", default="", choices=["float32", "bfloat16", "float16"], help="of floating inputs and modules; else as they are")
    parser.add_argument("--device", default="cpu", help="e.g. cuda")
    parser.add_argument("--seed", type=int, help="else drawn after the candidate is loaded")
    parser.add_argument("--timeout", type=float, default=60.0, metavar="SECONDS", help="for each answer of the candidate")
    parser.add_argument("--json", metavar="FILE", help="the verdict; - writes it in place of the summary")
    return parser.parse_args(words)


def _said(verdict: "Verdict") -> str:
    passed = sum(case.verdict == "passed" for case in verdict.cases)
    skipped = sum(case.verdict == "skipped" for case in verdict.cases)
    lines = [f"{verdict.verdict}{': ' if verdict.reason else ''}{verdict.reason}", *(f"  not looked at: {note}" for note in verdict.notes),
             f"{passed} comparisons passed, {skipped} skipped, seed {verdict.seed}, {verdict.seconds:.1f} s"]
    return "\n".join(lines)


def main(words: list[str] | None = None) -> int:
    """Judges and prints; the exit code."""
    given = _arguments(words)
    try:
        from ._judge.verdict import Settings, judge  # after --help, which needs no torch
    except ImportError as error:
        print(f"tigon judge: {error}: install torch, or start it with a Python that has it", file=sys.stderr)
        return 5
    if given.json and given.json != "-":
        try:
            open(given.json, "a", encoding="utf-8").close()  # before the work, not after it
        except OSError as error:
            print(f"tigon judge: --json {given.json}: {error.strerror}; name a file that can be written", file=sys.stderr)
            return 5
    verdict = judge(given.candidate, given.reference, Settings(given.backward, given.dtype, given.device, given.seed, given.timeout))
    record = json.dumps({**verdict.record(), "candidate": str(given.candidate), "reference": str(given.reference)})
    if given.json and given.json != "-":
        pathlib.Path(given.json).write_text(record + "\n", encoding="utf-8")
    print(record if given.json == "-" else _said(verdict))
    return verdict.code


if __name__ == "__main__":
    sys.exit(main())
