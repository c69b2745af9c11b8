# SPDX-License-Identifier: Apache-2.0
"""tigon.patch and tigon.unpatch."""
import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any, Literal

import torch
from torch import nn

from . import experts, loss, mlp, norm, rotary
from . import recompute as again
from .become import is_changed, restore, state_of
from .report import Entry, NotKept, PatchError, Report
from .stand_in import likeness

_LAYERS: tuple[Any, ...] = (norm, mlp, experts)


def patch(model: nn.Module, *, skip_logits: bool = True, strict: bool = False, recompute: Literal["cheap"] | None = None) -> Report:
    """Puts Tigon's ops into a model, in place: its norms, gated MLPs and experts, rotary embeddings, and its loss without logits.

    Modules are found by what they compute for small tensors on the CPU, not by their names, so a model of a library that
    is not known here, or of your own, is patched as well. A module is replaced only if results and gradients of the
    replaced one agree with its own in float32, and are not worse in bfloat16. All else stays as it is; the report says
    what and why. Parameters, hooks and what is saved do not change. A patched model is patched anew.

    Arguments:
        model: any torch module; the loss is replaced in causal language models of Hugging Face transformers.
        skip_logits: in training with labels, compute the loss without logits; the result's logits are then None. In
            evaluation there are logits. model(..., skip_logits=True or False) decides for one call.
        strict: raise an error if anything that looks like one of these has to be left.
        recompute: "cheap": results of norms and gates, which one pass over memory makes again, are not kept for the
            layers behind them, but made again in backward. Results and gradients have the same bits.

    Returns:
        A report: `replaced` and `left` list kind, name and what was done or why not; print() shows them.

    Errors:
        PatchError (a RuntimeError): with strict=True, something was left, or there was nothing to replace. The model is
        then as it was. TypeError: `model` is no torch module. ValueError: no such `recompute`.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model is a {type(model).__name__}, but must be a torch.nn.Module")
    if recompute not in (None, "cheap"):
        raise ValueError(f"recompute is {recompute!r}, but must be 'cheap' or None")
    unpatch(model)
    with _usual_settings():
        changes, report = _plan(model, skip_logits, recompute is not None)
    if strict and (report.left or not report.replaced):
        raise PatchError(report)
    for change in changes:
        change()
    if recompute:
        report.not_kept = NotKept()
        again.watch(model, report.not_kept)
    return report


def unpatch(model: nn.Module) -> None:
    """Makes a patched model what it was before tigon.patch, with the parameters that it has now; another model stays as it is.

    Arguments:
        model: what tigon.patch was given, or a copy of it.
    """
    for module in list(model.modules()):
        again.unwatch(module)
        if is_changed(module):
            if isinstance(state_of(module), loss.State) and loss.looks_like(module):
                loss.restore_function(module)
            restore(module)


@contextlib.contextmanager
def _usual_settings() -> Iterator[None]:
    """Modules are tried as outside of all contexts that a caller may be in, and his random numbers stay as they are."""
    dtype = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        with torch.random.fork_rng(devices=[]), torch.inference_mode(False), torch.enable_grad(), torch.device("cpu"), \
                torch.autocast("cpu", enabled=False):
            yield
    finally:
        torch.set_default_dtype(dtype)


def _plan(model: nn.Module, skip_logits: bool, are_made_again: bool) -> tuple[list[Callable[[], None]], Report]:
    """What is to be done, without doing it."""
    changes: list[Callable[[], None]] = []
    report = Report()
    known: dict[Any, Any] = {}
    tables = rotary.tables_of(model)
    for name, module in model.named_modules():
        for kind in _LAYERS:
            if kind.looks_like(module):
                key = kind.KIND, likeness(module)
                found = known[key] if key in known else known.setdefault(key, kind.find(module))
                if are_made_again and not isinstance(found, str):
                    found = dataclasses.replace(found, again=name or "the model")
                _note(report, changes, kind.KIND, name, found, functools.partial(kind.apply, module, found))
        if rotary.looks_like(module):
            turns = rotary.find(module, tables)
            _note(report, changes, rotary.KIND, name, turns, functools.partial(rotary.apply, module, turns))
        if loss.looks_like(module):
            recipe = loss.find(module)
            _note(report, changes, loss.KIND, name, recipe, functools.partial(loss.apply, module, recipe, skip_logits))
    return changes, report


def _note(report: Report, changes: list[Callable[[], None]], kind: str, name: str, found: Any, change: Callable[[], None]) -> None:
    """Adds what was found, a recipe or a reason, to the report, and a change where it is a recipe."""
    if isinstance(found, str):
        report.left.append(Entry(kind, name, found))
    else:
        report.replaced.append(Entry(kind, name, str(found)))
        changes.append(change)
