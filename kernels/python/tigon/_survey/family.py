# SPDX-License-Identifier: Apache-2.0
"""One family of models: a small one is patched, its training step compared with the one before, and unpatched."""
import copy
import dataclasses
from collections.abc import Sequence
from typing import Any

from torch import nn

from .._patch.model import patch, unpatch
from .._patch.report import Report
from .steps import TOLERANCE, WORSE, Step, batch, difference, how_much_worse, is_as_exact, same_bits, step
from .tiny import tiny_models

SEEDS = range(1, 17)
SAME, DIFFERENT, NOT_TRIED = "same", "DIFFERENT", "not tried"


@dataclasses.dataclass
class Result:
    """What became of a family: `verdict` is "same", "DIFFERENT" or "not tried", `why` says why it is one of the last two."""
    family: str
    verdict: str
    why: str = ""
    replaced: dict[str, int] = dataclasses.field(default_factory=dict)  # modules by kind
    left: dict[str, int] = dataclasses.field(default_factory=dict)  # modules by kind and reason
    apart: float = 0.0  # patched and not, in float32
    bf16: float = 0.0  # error of the patched model's gradients over that of the model's own, both from float32


def survey(family: str) -> Result:
    """Never raises: what goes wrong is the result."""
    try:
        model, given, want = _runs(family)
    except Exception as error:  # noqa: BLE001 - transformers' own
        return Result(family, NOT_TRIED, _line(error))
    try:
        return _compare(family, model, given, want)
    except Exception as error:  # noqa: BLE001 - a patched model must do what the model does
        return Result(family, DIFFERENT, _line(error))


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:100]}"


def _runs(family: str) -> tuple[nn.Module, dict[str, Any], Step]:
    """The first small model that makes a training step, and does the same one twice."""
    failed: Exception | None = None
    for model in tiny_models(family):
        given = batch(model)
        try:
            want = step(model, given)
            apart, where = difference(want, step(model, given))
        except Exception as error:  # noqa: BLE001 - the next one may run
            failed = failed or error
            continue
        if apart <= TOLERANCE / 10:
            return model, given, want
        failed = failed or RuntimeError(f"two steps of the model itself differ by {apart:.1e} in {where}")
    raise failed or RuntimeError("there is no small model")


def _compare(family: str, model: nn.Module, given: dict[str, Any], want: Step) -> Result:
    report = patch(model)
    result = Result(family, SAME, replaced={e.kind: report.count(e.kind) for e in report.replaced}, left=_reasons(report))
    got = step(model, given)
    result.apart, where = difference(want, got)
    unpatch(model)
    is_near = result.apart <= TOLERANCE
    if not is_near and not is_as_exact(model, given, want, got):
        result.verdict, result.why = DIFFERENT, f"{where} differs by {result.apart:.1e}"
    elif not same_bits(want, step(model, given)):
        result.verdict, result.why = DIFFERENT, "unpatched it is not what it was"
    else:
        result.why = "" if is_near else "float32 itself is as far from float64"
        _compare_bf16(result, model)
    return result


def _reasons(report: Report) -> dict[str, int]:
    reasons: dict[str, int] = {}
    for entry in report.left:
        reason = f"{entry.kind} {entry.what}"
        reasons[reason] = reasons.get(reason, 0) + 1
    return reasons


def _compare_bf16(result: Result, model: nn.Module) -> None:
    """A model that cannot be copied, or does not run in bfloat16, is not compared in it.

    Where one rounding sends a row to another expert, a batch says nothing: then the lower quartiles of several decide.
    """
    try:
        rounded = model.bfloat16()
        exact = copy.deepcopy(rounded).float()
        step(exact, batch(exact))
        step(rounded, batch(rounded))
    except RuntimeError:
        return
    result.bf16 = _how_much_worse(exact, rounded, [1])
    if not result.bf16 <= WORSE:
        result.bf16 = _how_much_worse(exact, rounded, SEEDS)
    if not result.bf16 <= WORSE:
        result.verdict, result.why = DIFFERENT, f"in bf16 its gradients are {result.bf16:.1f} times as wrong as the model's own"


def _how_much_worse(exact: nn.Module, rounded: nn.Module, seeds: Sequence[int]) -> float:
    """Of the model in bfloat16, on batches of these seeds."""
    patched = copy.deepcopy(rounded)
    patch(patched)
    return how_much_worse(exact, rounded, patched, [batch(rounded, seed) for seed in seeds])
