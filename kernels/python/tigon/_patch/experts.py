# SPDX-License-Identifier: Apache-2.0
"""The gate of a mixture of experts: activation(gate) * up, a method of its own over packed halves [..., 2F].

A module's own code runs over experts that are as many as its own, but small, so routing and products are tried, too.
"""
import dataclasses
import itertools
from collections.abc import Iterator
from typing import Any, cast

import torch
from torch import Tensor, nn

from .. import ops
from . import twin
from .become import become, original, state_of
from .mlp import ACTIVATIONS, Activation, gated
from .plain import are_usable
from .stand_in import has_code_of_its_own, stand_in

KIND = "experts"
METHOD = "_apply_gate"
_WIDTH, _HIDDEN = 8, 16  # of the small experts: some products want rows of whole 16 bytes, in bfloat16, too
_ROWS, _CHOSEN = 10, 2


@dataclasses.dataclass(frozen=True)
class Recipe:
    """The op that does what a gate does."""
    activation: Activation
    layout: ops.Layout
    again: str | None = None  # the module's name, where the gate's result is made again for backward

    def __str__(self) -> str:
        return f"{'swiglu' if self.activation == 'silu' else 'geglu'}, activation={self.activation}, layout={self.layout}"


def apply_gate(self: nn.Module, packed: Tensor) -> Any:
    """The gate by Tigon's op; the module's own code for what the op does not take."""
    recipe: Recipe = state_of(self)
    if not are_usable(packed):
        return cast(Any, original(self))._apply_gate(self, packed)
    return gated(recipe, packed, None)


def looks_like(module: nn.Module) -> bool:
    """Whether a module has a gate that is a method of its own."""
    return hasattr(type(module), METHOD)


def find(module: nn.Module) -> Recipe | str:
    """The recipe for the gate of a mixture of experts, or the reason why there is none, as the end of a sentence."""
    if has_code_of_its_own(module) or METHOD in vars(module):
        return "has a forward or a gate of its own, bound by another tool"
    small = _small_weights(module)
    if small is None:
        return "has other parameters than gate and up [E, 2F, H] and down [E, H, F]"
    try:
        return _find(module, small)
    except Exception as error:  # noqa: BLE001 - whatever it is: its experts take something else
        return f"does not run on small tensors: {type(error).__name__}: {str(error)[:80]}"


def _small_weights(module: nn.Module) -> dict[str, nn.Parameter] | None:
    """Small experts, as many and of the same orientation as the module's; None where its parameters are others."""
    weights = {name: p.shape for name, p in module.named_parameters()}
    if len(weights) != 2 or any(len(shape) != 3 for shape in weights.values()):
        return None
    for first, last in itertools.permutations(weights):
        (experts, *packed), (others, *down) = weights[first], weights[last]
        for is_transposed in (False, True):
            width, hidden = down[::-1] if is_transposed else down
            if experts == others and packed == ([width, 2 * hidden] if is_transposed else [2 * hidden, width]):
                shapes = {first: (2 * _HIDDEN, _WIDTH), last: (_WIDTH, _HIDDEN)}
                random = torch.Generator().manual_seed(7)
                return {name: nn.Parameter(torch.randn(experts, *(shape[::-1] if is_transposed else shape), generator=random))
                        for name, shape in shapes.items()}
    return None


class _Routed(nn.Module):
    """Experts together with what they take, so that rows and weights are parameters among the others."""

    def __init__(self, module: nn.Module, experts: int):
        super().__init__()
        random = torch.Generator().manual_seed(8)
        self.module = module
        self.rows = nn.Parameter(torch.randn(_ROWS, _WIDTH, generator=random))
        self.chosen = torch.stack([torch.randperm(experts, generator=random)[:_CHOSEN] for _ in range(_ROWS)])
        self.weights = nn.Parameter(torch.rand(self.chosen.shape, generator=random))

    def run(self) -> Any:
        """What the experts give."""
        return type(self.module).forward(self.module, self.rows, self.chosen, self.weights)


def _run(module: nn.Module) -> Any:
    return cast(_Routed, module).run()


def _recipes() -> Iterator[Recipe]:
    layouts: tuple[ops.Layout, ...] = ("gate_first", "up_first")
    yield from (Recipe(activation, layout) for activation in ACTIVATIONS for layout in layouts)


def _find(module: nn.Module, weights: dict[str, nn.Parameter]) -> Recipe | str:
    small = stand_in(module, weights, dict(module.named_children()))
    gate = _Seen(getattr(small, METHOD))
    small.__dict__[METHOD] = gate
    experts = next(iter(weights.values())).shape[0]
    with torch.no_grad():
        _Routed(small, experts).run()
    if not gate.seen:
        return "does not call its gate: another implementation of its experts does"
    del small.__dict__[METHOD]
    why = None
    for recipe in _recipes():
        with torch.no_grad():
            if not all(_is_close(ops.gated(given, None, recipe.activation, recipe.layout), made) for given, made in gate.seen):
                continue
        patched = stand_in(small, weights, dict(small.named_children()))
        apply(patched, recipe)
        why = twin.why_not(_Routed(small, experts), _Routed(patched, experts), [_run])
        if why is None:
            return recipe
    return why or "has a gate that is no activation(gate) * up with silu or gelu"


class _Seen:
    """A gate, and what it was given and gave."""

    def __init__(self, gate: Any):
        self.gate = gate
        self.seen: list[tuple[Tensor, Tensor]] = []

    def __call__(self, packed: Tensor) -> Tensor:
        made: Tensor = self.gate(packed)
        self.seen.append((packed, made))
        return made


def _is_close(got: Tensor, want: Tensor) -> bool:
    return got.shape == want.shape and bool((got - want).abs().max() <= 1e-4 * want.abs().max())


def apply(module: nn.Module, recipe: Any) -> None:
    """Puts the op in the place of the gate."""
    become(module, apply_gate, cast(Recipe, recipe), name=METHOD)
