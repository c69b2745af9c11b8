# SPDX-License-Identifier: Apache-2.0
"""An op with its gradients for JAX, by the same plan as torch's. Knows no op."""
import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero

from .._gradients import Plan, ops_with_gradients, plan_of
from .call import run


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class _Facts:
    """Of the arguments of a call: which need a gradient, and the shapes and dtypes of these."""
    needed: tuple[bool, ...]
    like: tuple[Any, ...]


@functools.lru_cache(maxsize=1024)
def function_of(op: str, options: tuple[float, ...], want: int) -> Callable[..., tuple[Any, ...]]:
    """f(tensors...) -> the results of the op's forward pass, None where one is not wanted, with a rule for reverse-mode gradients."""
    def forward(*tensors: Any) -> tuple[Any, ...]:
        return tuple(run(f"{op}.forward", tensors, options, want))

    if op not in ops_with_gradients():
        return forward
    plan = plan_of(op)
    rule: Any = _MakesGradients(plan, options, want) if plan.makes_loss and plan.has_one_loss(options) else _KeepsArguments(plan, options, want)
    function: Any = jax.custom_vjp(forward)
    function.defvjp(rule.forward, rule.backward, symbolic_zeros=True)
    return function  # type: ignore[no-any-return]


class _KeepsArguments:
    """Keeps the tensors that the pass for gradients takes, and calls it in backward."""

    def __init__(self, plan: Plan, options: tuple[float, ...], want: int):
        self.plan, self.options, self.want = plan, options, want

    def forward(self, *primals: Any) -> tuple[tuple[Any, ...], Any]:
        tensors, facts = _split(primals)
        results = tuple(run(self.plan.forward.name, tensors, self.options, self.want))
        kept = [tensors[s.index] if s.kind == "argument" else results[s.index] for s in self.plan.sources if s.kind != "upstream"]
        return results, (kept, facts)

    def backward(self, residual: Any, upstream: Sequence[Any]) -> tuple[Any, ...]:
        kept, facts = iter(residual[0]), residual[1]
        if all(_is_zero(upstream[i]) for i in self.plan.differentiable):
            return (None,) * len(facts.needed)
        backward = self.plan.backward
        tensors = [_upstream(upstream[source.index], tensor.optional) if source.kind == "upstream" else next(kept)
                   for tensor, source in zip(backward.arguments, self.plan.sources)]
        made = run(backward.name, tensors, tuple(self.plan.options(self.options)), self.plan.want(facts.needed))
        return _gradients(self.plan, facts, made, 1)


class _MakesGradients:
    """Calls a pass that gives one loss and its gradients at once, in forward."""

    def __init__(self, plan: Plan, options: tuple[float, ...], want: int):
        self.plan, self.options, self.want = plan, options, want

    def forward(self, *primals: Any) -> tuple[tuple[Any, ...], Any]:
        tensors, facts = _split(primals)
        plan, given = self.plan, [tensors[s.index] if s.kind == "argument" else None for s in self.plan.sources]
        made = run(plan.backward.name, given, tuple(plan.options(self.options)), plan.want_with_results(self.want, facts.needed))
        results = tuple(made[plan.backward.result_places[name]] for name in plan.forward.result_places)
        used = {k for i, k in plan.gradients.items() if facts.needed[i]}
        return results, ([made[k] if k in used else None for k in range(len(made))], facts)

    def backward(self, residual: Any, upstream: Sequence[Any]) -> tuple[Any, ...]:
        made, facts = residual
        scale = upstream[self.plan.differentiable[0]]
        if _is_zero(scale):
            return (None,) * len(facts.needed)
        return _gradients(self.plan, facts, made, scale.reshape(()))


def _split(primals: Sequence[Any]) -> tuple[list[Any], _Facts]:
    """The values of arguments, and what of them backward has to know."""
    needed = tuple(p is not None and p.perturbed for p in primals)
    like = tuple(jax.ShapeDtypeStruct(p.value.shape, p.value.dtype) if n else None for n, p in zip(needed, primals))
    return [None if p is None else p.value for p in primals], _Facts(needed, like)


def _is_zero(upstream: Any) -> bool:
    return upstream is None or isinstance(upstream, SymbolicZero)


def _upstream(given: Any, optional: bool) -> Any:
    if not _is_zero(given):
        return given
    return None if optional else jnp.zeros(given.shape, given.dtype)


def _gradients(plan: Plan, facts: _Facts, made: Sequence[Any], scale: Any) -> tuple[Any, ...]:
    """One for each argument of forward, in the argument's shape and dtype: sums over rows come in float32."""
    found: list[Any] = [None] * len(facts.needed)
    for i, k in plan.gradients.items():
        if facts.needed[i]:
            found[i] = (made[k] * scale).reshape(facts.like[i].shape).astype(facts.like[i].dtype)
    return tuple(found)
