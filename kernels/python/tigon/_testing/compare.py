# SPDX-License-Identifier: Apache-2.0
"""Two functions compared: a candidate against a reference that is run in float64."""
from collections.abc import Callable, Sequence
from typing import Any

import torch

from .made import call, copies
from .oracle import Oracle
from .report import Report, Wrong


def compare(candidate: Callable[..., Any], reference: Callable[..., Any], inputs: Sequence[Any], *, backward: bool = False, seed: int = 0) -> Report:
    """Judges a function of torch tensors by another that says what is right, in this process.

    The reference runs once as it is, and its operations again in float64: that is the oracle. Tens of further runs round
    each operation at random as the reference's own dtypes would; their spread gives each element a budget of its own. A
    sum inside of an operation may have any order. Integers, masks, copies and order must be equal; NaN and infinities
    must be where the reference has them. A result must be a plain tensor with the reference's shape, dtype and device, in
    memory that is not an input's, and inputs must be left as they are, unless the reference does otherwise.

    Arguments:
        candidate: takes the same inputs and returns the same as the reference, in any nesting.
        reference: made of torch's operations, or a module; what it draws at random cannot be judged.
        inputs: the positional arguments: tensors in any nesting, of any shape, and other values. Both get copies of their own.
        backward: gradients, too, of floating inputs and, if both are modules, of parameters with the same names.
        seed: of the roundings and of the upstream gradients.

    Returns:
        A report with a case for each result, gradient and changed input; print() shows what was found.

    Errors:
        Wrong (an AssertionError): what is wrong and where, what was wanted, and the budget; `report` has all cases.
        ValueError: the reference cannot be judged by: it is random, torch cannot do one of its operations in float64, or
        what it makes in its own dtype is not within its own budget.
    """
    oracle = Oracle(reference, inputs, backward=backward, seed=seed)
    with torch.set_grad_enabled(backward):
        report = summary(oracle.cases(call(candidate, copies(inputs, backward), oracle.upstream)), name(candidate))
    if report.failed:
        raise Wrong(report)
    return report


def name(function: Any) -> str:
    """What a function is called in messages."""
    return str(getattr(function, "__name__", type(function).__name__)).strip("<>")


def summary(cases: Any, who: str) -> Report:
    """The report of a comparison: the first thing that is wrong, or how near each came."""
    wrong = [case for case in cases if case.is_failure]
    if wrong:
        more = f"; {len(wrong) - 1} more of {len(cases)} are wrong" if wrong[1:] else ""
        return Report(f"{who} is wrong: {wrong[0].name}: {wrong[0].reason}{more}", tuple(cases))
    return Report("\n".join([f"{who} is right", *(f"  {case.name}: {case.reason}" for case in cases)]), tuple(cases))
