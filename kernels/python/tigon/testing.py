# SPDX-License-Identifier: Apache-2.0
"""Tigon's judge for functions and models in Python, to be used in anybody's tests.

tigon.testing.check(my_rms_norm, op="rms_norm")   a function against the op's oracle in double precision
tigon.testing.compare(mine, reference, inputs)    a function against another, in float64 with budgets from its operations
tigon.testing.reward(candidate, problem)          files or sources by anybody, in a process of their own: 1 right, 0 wrong
tigon.testing.verify_model(model)                 a patched model against what it was
"""
import pathlib
import re
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

from ._judge.reward import reward
from ._testing import bridge, program
from ._testing.compare import compare
from ._testing.function import Function
from ._testing.model import verify_model
from ._testing.passes import Passes, gradient_pass
from ._testing.report import Case, Report, Wrong

__all__ = ["Case", "Report", "Wrong", "check", "compare", "reward", "verify_model"]

_DTYPES = ("f32", "bf16", "f16")
_NOTHING_RAN = 4  # exit code
_SHOWN = 3  # failing cases in a message


def check(function: Callable[..., Any], op: str, *, passes: Sequence[str] | None = None, dtypes: Sequence[str] = _DTYPES,
          budget: float | None = 20.0, seed: int = 42, roundings: int = 0, exclude: str | None = None, case: str | None = None,
          device: str = "cpu") -> Report:
    """Judges a function that computes an op: each element of its results and gradients has a budget around the oracle's value.

    Inputs, sizes, options and layouts are those of `./tigon check`. What the function cannot do, because it has no argument
    for an option or a tensor, is skipped. Nothing is asked of bits, as that rows do not depend on each other, nor of
    NaN, infinities and overflows. The function runs in this process, which its crash would end, too.

    Arguments:
        function: takes the arguments of tigon.ops.OP by name, or some of them, and returns the same.
        op: e.g. "rms_norm".
        passes: "forward", "backward", which autograd makes, or where the op has a loss alone "forward_backward"; left out,
            forward and gradients.
        dtypes: of the activations; of "f32", "bf16" and "f16".
        budget: seconds for cases in which each pair of values is met once, the most telling first; None: all cases.
        seed: of the inputs.
        roundings: how many values it rounds to the dtype of the activations on its way, beyond what the op's formula does.
        exclude: a regular expression; cases in whose names it is found are left out.
        case: the name of one case, as a failure tells it, in place of all others.
        device: where the function gets its tensors, e.g. "cuda".

    Returns:
        A report: `passed`, `failed`, `skipped`, `cases`; print() shows what the judge said.

    Errors:
        Wrong (an AssertionError): what is wrong and where, what was wanted, and the call that repeats it; `report` has all.
        TypeError: the function has an argument that the op does not have. ValueError: no such op, pass or dtype, or no case
        was judged. RuntimeError: the judge is not there, or its run failed; the sentence says what to do.
    """
    judge = program.find()
    subject = _function(function, op)
    wanted = list(passes) if passes is not None else [p for p in ("forward", gradient_pass(op)) if p]
    kernels = _kernels(subject, judge, wanted, dtypes, roundings, device)
    with tempfile.TemporaryDirectory(prefix="tigon-") as name:
        records = pathlib.Path(name) / "records.jsonl"
        words = [str(judge), "check", "--json", str(records), "--jobs", "1", "--seed", str(seed), "--exclude", _excluded(exclude)]
        words += ["--case", case] if case else ["--impl", ",".join(f"plugin:{i}" for i in kernels.implementations)]
        words += ["--budget", f"{budget:g}s"] if budget is not None and not case else []
        code, said = bridge.judge(words, pathlib.Path(name), kernels)
        report = Report(_text(said, subject.name, op), program.cases(records))
    if report.failed:
        raise Wrong(Report(f"{subject.name} is not {op}: {report.failed} of {report.failed + report.passed} cases fail\n{report}",
                           report.cases)) from _cause(report, kernels)
    if code not in (0, _NOTHING_RAN):
        raise RuntimeError(f"the judge ended with exit code {code}: {report}")
    if not report.passed:
        raise ValueError(f"no case of {op} was judged: {report}")
    return report


def _cause(report: Report, kernels: Passes) -> Exception | None:
    """What the function raised, where that is what is wrong."""
    return kernels.error if all("it raised " in case.reason for case in report.cases if case.is_failure) else None


def _function(function: Callable[..., Any], op: str) -> Function:
    try:
        return Function(function, op)
    except LookupError as error:
        raise ValueError(str(error)) from None


def _kernels(function: Function, judge: pathlib.Path, passes: list[str], dtypes: Sequence[str], roundings: int, device: str) -> Passes:
    try:
        return Passes(function, program.protocol(judge), passes, list(dtypes), roundings, device)
    except LookupError as error:
        raise ValueError(str(error)) from None


def _excluded(pattern: str | None) -> str:
    """Exact properties are promises of kernels."""
    return "prop=" if pattern is None else f"prop=|{pattern}"


def _text(said: str, name: str, op: str) -> str:
    """What the judge said, of some failing cases, with the calls of Python that repeat them."""
    lines = [line for line in said.splitlines() if not re.match(r"plugin:.* \(sandbox: |results: |tigon: check: \d+ of ", line)]
    shown, failures = [], 0
    for line in lines:
        failures += line.startswith("FAIL ")
        if failures <= _SHOWN or not line.startswith((" ", "FAIL ")):
            shown.append(line)
    if failures > _SHOWN:
        shown.append(f"{failures - _SHOWN} more cases that fail are in the report")
    return re.sub(r"repro: .*?--case '([^']*)'.*", rf"repro: tigon.testing.check({name}, op={op!r}, case='\1')", "\n".join(shown))
