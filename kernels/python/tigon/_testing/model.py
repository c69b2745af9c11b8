# SPDX-License-Identifier: Apache-2.0
"""A patched model against its unpatched twin."""
import collections
import copy
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from .._patch.become import is_changed
from .._patch.model import unpatch
from .._survey.steps import TOLERANCE, WORSE, Step, batch, converted, difference, errors, how_much_worse, is_as_exact, step
from .report import Case, Report, Wrong

_SEEDS = range(1, 17)  # of batches that decide where one was not enough


def verify_model(model: nn.Module, inputs: Mapping[str, Any] | None = None) -> Report:
    """Compares a training step of a patched model with that of its unpatched twin: loss and gradients.

    In float32 both must agree but for the order of sums, or be as near to float64. In bfloat16 the patched model's gradients
    must be no worse than the twin's own, both measured from float32. The model itself stays as it is: copies of it run.

    Arguments:
        model: what tigon.patch changed.
        inputs: the model's arguments by name. Its result has a loss, or else its first tensor takes the loss' place. Left
            out: tokens and labels for a causal language model of Hugging Face transformers.

    Returns:
        A report with a case for each tensor that was compared; print() shows it in short.

    Errors:
        Wrong (an AssertionError): they differ; it names the first module or, where only gradients do, the parameter nearest
        to the loss. ValueError: the model is not patched, or needs inputs.
    """
    if not any(is_changed(module) for module in model.modules()):
        raise ValueError("the model is not patched: call tigon.patch(model) first")
    if inputs is None and not hasattr(model, "config"):
        raise ValueError("this model needs inputs: its arguments by name")
    given = dict(inputs) if inputs is not None else batch(model)
    report = _Comparison(model, given, [batch(model, seed) for seed in _SEEDS] if inputs is None else [given]).report()
    if report.failed:
        raise Wrong(report)
    return report


def _pair(model: nn.Module, dtype: torch.dtype) -> tuple[nn.Module, nn.Module]:
    """Copies of the model: unpatched and patched."""
    patched = copy.deepcopy(model).to(dtype)
    plain = copy.deepcopy(patched)
    unpatch(plain)
    return plain, patched


class _Comparison:
    """A model's training step with and without its patch."""

    def __init__(self, model: nn.Module, given: dict[str, Any], more: list[dict[str, Any]]):
        self.model, self.given, self.more = model, given, more
        self.cases: list[Case] = []
        self.lines: list[str] = []

    def report(self) -> Report:
        """What differs first, or all that agrees."""
        with torch.random.fork_rng():
            if not self._differs_in_float32():
                self._is_worse_in_bfloat16()
        return Report("\n".join(self.lines), tuple(self.cases))

    def _differs_in_float32(self) -> bool:
        plain, patched = _pair(self.model, torch.float32)
        given = converted(self.given, torch.float32)
        want, got = step(plain, given), step(patched, given)
        apart, where = difference(want, got)
        if apart <= TOLERANCE or (want.keys() == got.keys() and is_as_exact(plain, given, want, got)):
            self.cases += [Case(f"float32: {name}", "passed", f"{error:.1e}") for name, error in errors(want, got).items()]
            self.lines.append(f"float32: the loss and {len(want) - 1} gradients are at most {apart:.1e} apart")
            return False
        what = _first_module(plain, patched, given) or _nearest_gradient(want, got) or f"{where}: {apart:.1e} apart"
        self._is_wrong("float32", what)
        return True

    def _is_worse_in_bfloat16(self) -> None:
        plain, patched = _pair(self.model, torch.bfloat16)
        exact = copy.deepcopy(plain).float()
        worse = how_much_worse(exact, plain, patched, [self.given])
        if not worse <= WORSE and len(self.more) > 1:
            worse = how_much_worse(exact, plain, patched, self.more)
        said = f"the gradients are {worse:.2f} times as far from float32 as the model's own"
        if worse <= WORSE:
            self.cases.append(Case("bfloat16: the gradients", "passed", f"{worse:.2f}"))
            self.lines.append(f"bfloat16: {said}")
        else:
            self._is_wrong("bfloat16", f"{said}, most in {_worst_gradient(exact, plain, patched, self.given)}")

    def _is_wrong(self, dtype: str, what: str) -> None:
        self.cases.append(Case(dtype, "different", what))
        self.lines.append(f"patched, the model computes something else in {dtype}: {what}")


def _first_module(plain: nn.Module, patched: nn.Module, given: Mapping[str, Any]) -> str | None:
    """The first module, in the order in which they end, whose result differs. One that only the plain model calls, or that gives
    something of another shape there, as a head that computes the loss, says nothing."""
    ours = _results(patched, given)
    for (name, call), want in _results(plain, given).items():
        got = ours.get((name, call))
        if got is None or got.shape != want.shape or not want.numel():
            continue
        apart = (got - want).abs().max().item() / max(want.abs().max().item(), 1e-30)
        if not apart <= TOLERANCE:
            return f"{name or 'the model'} ({type(plain.get_submodule(name)).__name__}) gives a result that is {apart:.1e} of its largest value off"
    return None


def _results(model: nn.Module, given: Mapping[str, Any]) -> dict[tuple[str, int], Tensor]:
    """The tensor that each call of each module gave in a forward, in the order in which they ended."""
    found: dict[tuple[str, int], Tensor] = {}
    calls: collections.Counter[str] = collections.Counter()

    def hook(name: str) -> Any:
        def note(_module: nn.Module, _given: Any, result: Any) -> None:
            first = result[0] if isinstance(result, (tuple, list)) and result else result
            calls[name] += 1
            if isinstance(first, Tensor) and first.is_floating_point():
                found[name, calls[name]] = first.detach().clone()
        return note

    handles = [module.register_forward_hook(hook(name)) for name, module in model.named_modules()]
    torch.manual_seed(1)
    try:
        model(**given)
    finally:
        for handle in handles:
            handle.remove()
    return found


def _nearest_gradient(want: Step, got: Step) -> str | None:
    """The last parameter, which is nearest to the loss, whose gradient differs."""
    for name in [n for n in reversed(want) if n != "the loss"]:
        if name not in got:
            return f"{name} has no gradient"
        apart = errors(want, {**want, name: got[name]})[name]
        if not apart <= TOLERANCE:
            return f"the gradient of {name} is {apart:.1e} of its largest value off"
    return None


def _worst_gradient(exact: nn.Module, plain: nn.Module, patched: nn.Module, given: Mapping[str, Any]) -> str:
    want, own, got = (step(m, converted(dict(given), d)) for m, d in ((exact, torch.float32), (plain, torch.bfloat16), (patched, torch.bfloat16)))
    ours, theirs = errors(want, got), errors(want, own)
    return max((n for n in want if n != "the loss"), key=lambda n: ours[n] - theirs[n])
