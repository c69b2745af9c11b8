# SPDX-License-Identifier: Apache-2.0
"""Autograd and autocast of every op. Knows no op.

An op with a backward pass saves what that takes. One whose forward_backward pass makes loss and gradients at once makes
them in forward, for an upstream gradient of 1, and scales them in backward; where its loss is more than one number,
backward makes them anew.
"""
from collections.abc import Sequence
from typing import Any

import torch

from ._gradients import Plan, Source, plan_of
from ._in_place import InPlace
from ._torch import Operator, is_of_activations, operator

Arguments = tuple[Any, ...]


def function_of(op: str) -> type[torch.autograd.Function]:
    """The autograd.Function of an op: apply() takes all arguments of the operator of forward and gives a tuple."""
    plan = plan_of(op)
    keeps: Any = _MakesGradients(plan) if plan.makes_loss else _KeepsArguments(plan)

    def forward(ctx: Any, *arguments: Any) -> Any:
        return keeps.forward(ctx, arguments)

    def backward(ctx: Any, *upstream: Any) -> Any:
        if torch.is_grad_enabled():  # torch would take the gradients for constants
            raise RuntimeError(f"tigon::{op} has no second derivative: its backward cannot run with create_graph=True")
        return keeps.backward(ctx, upstream)

    name = "".join(word.capitalize() for word in op.split("_"))
    return type(name, (torch.autograd.Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})


class _KeepsArguments:
    """Saves the tensors that the pass for gradients takes, and calls it in backward."""

    def __init__(self, plan: Plan):
        self.plan = plan
        self._forward, self._backward = operator(plan.forward.name), operator(plan.backward.name)
        self._count = len(plan.forward.arguments)
        self._in_place = InPlace(self._backward, [i for i, s in enumerate(plan.sources) if s.kind != "upstream"])
        self._differentiable = frozenset(plan.differentiable)

    def forward(self, ctx: Any, arguments: Arguments) -> Arguments:
        results = self._forward(*arguments)
        kept = [arguments[s.index] if s.kind == "argument" else results[s.index] for s in self.plan.sources if s.kind != "upstream"]
        self.finish_forward(ctx, arguments, results, kept)
        return results

    def finish_forward(self, ctx: Any, arguments: Arguments, results: Arguments, kept: Sequence[Any]) -> None:
        differentiable = self._differentiable
        ctx.save_for_backward(*kept)
        ctx.mark_non_differentiable(*[r for i, r in enumerate(results) if i not in differentiable])
        ctx.set_materialize_grads(False)
        ctx.dtypes = [None if a is None else a.dtype for a in arguments[:self._count]]
        if len(differentiable) > 1:  # of one, there is a gradient, or nothing is done
            ctx.upstream_like = {i: (results[i].shape, results[i].dtype, results[i].device) for i in differentiable}
        ctx.options = self.plan.options(arguments[self._count:])

    def backward(self, ctx: Any, upstream: Arguments) -> Arguments:
        needed = ctx.needs_input_grad
        if not any(needed) or all(upstream[i] is None for i in self.plan.differentiable):
            return (None,) * len(needed)
        saved = list(ctx.saved_tensors)
        run = self._in_place if self._in_place.are_free(saved) else self._backward
        kept = iter(saved)
        tensors = [self._upstream(ctx, tensor.optional, source, upstream) if source.kind == "upstream" else next(kept)
                   for tensor, source in zip(self.plan.backward.arguments, self.plan.sources)]
        want = [self.plan.want(needed)] if self.plan.backward.wanted else []
        return self.gradients(ctx, run(*tensors, *ctx.options, *want))

    def _upstream(self, ctx: Any, optional: bool, source: Source, upstream: Arguments) -> Any:
        given = upstream[source.index]
        if given is not None or optional:
            return given
        shape, dtype, device = ctx.upstream_like[source.index]
        return torch.zeros(shape, dtype=dtype, device=device)

    def gradients(self, ctx: Any, made: Arguments) -> Arguments:
        """One for each argument of forward, in the argument's dtype: sums over rows come in float32."""
        found: list[Any] = [None] * len(ctx.needs_input_grad)
        for i, k in self.plan.gradients.items():
            if ctx.needs_input_grad[i]:
                gradient, dtype = made[k], ctx.dtypes[i]
                found[i] = gradient if gradient.dtype is dtype else gradient.to(dtype)
        return tuple(found)


class _MakesGradients(_KeepsArguments):
    """Calls a pass that gives loss and gradients at once, in forward where the loss is one number."""

    def forward(self, ctx: Any, arguments: Arguments) -> Arguments:
        plan = self.plan
        options = arguments[self._count:self._count + len(plan.forward.options)]
        ctx.are_made = plan.has_one_loss(tuple(float(value) for value in options))
        if not ctx.are_made:
            return super().forward(ctx, arguments)
        want = plan.want_with_results(arguments[-1], ctx.needs_input_grad)
        made = self._backward(*self._tensors(arguments), *plan.options(options), want)
        results = tuple(made[plan.backward.result_places[name]] for name in plan.forward.result_places)
        needed = sorted({k for i, k in plan.gradients.items() if ctx.needs_input_grad[i]})
        self.finish_forward(ctx, arguments, results, [made[k] for k in needed])
        ctx.made = needed
        return results

    def backward(self, ctx: Any, upstream: Arguments) -> Arguments:
        scale = upstream[self.plan.differentiable[0]]
        if not ctx.are_made or scale is None:
            return super().backward(ctx, upstream)
        scaled: list[Any] = [None] * len(self.plan.backward.results)
        for k, gradient in zip(ctx.made, ctx.saved_tensors):
            scaled[k] = gradient * scale.reshape(()).to(gradient.dtype)
        return self.gradients(ctx, tuple(scaled))

    def _tensors(self, arguments: Arguments) -> list[Any]:
        return [arguments[s.index] if s.kind == "argument" else None for s in self.plan.sources]


def autograd_kernel(operator: Operator, function: type[torch.autograd.Function]) -> Any:
    """What the dispatcher calls for the operator before all devices."""
    def kernel(*arguments: Any) -> Any:
        filled = operator.fill(arguments)
        with_gradients = torch.is_grad_enabled() and torch._C._any_requires_grad(*filled)
        results = function.apply(*filled) if with_gradients else operator(*filled)  # type: ignore[no-untyped-call]
        return results if len(results) > 1 else results[0]

    return kernel


def autocast_kernel(operator: Operator, device: str) -> Any:
    """What the dispatcher calls where autocast is on: activations get its dtype, and all that is float32 for every dtype gets that."""
    keys = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, f"Autocast{device.upper()}"))
    of_activations = [is_of_activations(operator.said, t.name) for t in operator.said.arguments]

    def kernel(*arguments: Any) -> Any:
        wanted = torch.get_autocast_dtype(device)
        cast = list(arguments)
        for i, varies in enumerate(of_activations[:len(cast)]):
            if cast[i] is not None and cast[i].is_floating_point():
                cast[i] = cast[i].to(wanted if varies else torch.float32)
        with torch._C._ExcludeDispatchKeyGuard(keys):
            return operator.overload(*cast)

    return kernel
