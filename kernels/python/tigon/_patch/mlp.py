# SPDX-License-Identifier: Apache-2.0
"""Gated MLPs: down(activation(gate(x)) * up(x)), with gate and up apart or as halves of one layer."""
import dataclasses
import functools
import itertools
from collections.abc import Iterator
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn

from .. import ops
from . import recompute, twin
from .become import become, original, state_of
from .plain import are_usable, only_one
from .stand_in import has_code_of_its_own, stand_in, takes_one_argument

KIND = "mlp"
Activation = Literal["silu", "gelu", "gelu_tanh"]
ACTIVATIONS: tuple[Activation, ...] = ("silu", "gelu_tanh", "gelu")
_IN, _HIDDEN = 8, 12  # of the small layers


@dataclasses.dataclass(frozen=True)
class Recipe:
    """The op that does what a gated MLP does; `gate`, `up` and `down` are names of its layers, `up` none where gate has both."""
    gate: str
    up: str | None
    down: str
    activation: Activation
    layout: ops.Layout
    again: str | None = None  # the module's name, where the gate's result is made again for backward

    def __str__(self) -> str:
        return f"{'swiglu' if self.activation == 'silu' else 'geglu'}, activation={self.activation}, layout={self.layout}"


def forward(self: nn.Module, *given: Any, **named: Any) -> Any:
    """The MLP with Tigon's op; the module's own code for what the op does not take."""
    recipe: Recipe = state_of(self)
    x = only_one(given, named)
    if x is None or not are_usable(x):
        return original(self).forward(self, *given, **named)
    gate = getattr(self, recipe.gate)(x)
    up = getattr(self, recipe.up)(x) if recipe.up else None
    return getattr(self, recipe.down)(gated(recipe, gate, up))


def gated(recipe: Any, gate: Tensor, up: Tensor | None) -> Any:
    """The op of a recipe."""
    op = functools.partial(ops.gated, activation=recipe.activation, layout=recipe.layout)
    return recompute.made(recipe.again, op, gate, up) if recipe.again else op(gate, up)


def _is_linear(module: nn.Module) -> bool:
    return all(hasattr(module, name) for name in ("in_features", "out_features", "weight"))


def _roles(module: nn.Module) -> list[tuple[str, ...]]:
    """The layers in all roles that their sizes allow: (gate, up, down) or (gate with up, down). Square ones are an attention's."""
    layers: dict[str, tuple[Any, Any]] = {n: (c.in_features, c.out_features) for n, c in module.named_children() if _is_linear(c)}
    if len(layers) not in (2, 3):
        return []
    fits = []
    for *first, down in itertools.permutations(layers):
        hidden, width = layers[down]
        if hidden != width and all(layers[name] == (width, hidden * (2 if len(first) == 1 else 1)) for name in first):
            fits.append((*first, down))
    return fits


def looks_like(module: nn.Module) -> bool:
    """Whether a module has the layers of a gated MLP, and not much else."""
    return bool(_roles(module)) and takes_one_argument(module)


def find(module: nn.Module) -> Recipe | str:
    """The recipe for a gated MLP, or the reason why there is none, as the end of a sentence."""
    roles = _roles(module)
    if has_code_of_its_own(module):
        return "has a forward of its own, bound by another tool"
    others = [c for n, c in module.named_children() if n not in roles[0]]
    if any(True for c in others for _ in (*c.parameters(), *c.buffers())) or module._parameters or module._buffers:
        return "has parameters beside those of its layers"
    why = "is no down(activation(gate(x)) * up(x)) with silu or gelu"
    for names in roles:
        try:
            found = _find(module, names)
        except Exception as error:  # noqa: BLE001 - these are not their roles
            why = f"does not run on small tensors: {type(error).__name__}: {str(error)[:80]}"
            continue
        if found is not None:
            return found
    return why


def _small(module: nn.Module, names: tuple[str, ...]) -> nn.Module:
    """The module's code over small layers."""
    random = torch.Generator().manual_seed(2)
    children = dict(module.named_children())
    for name in names:
        is_down = name == names[-1]
        sizes = (_HIDDEN, _IN) if is_down else (_IN, _HIDDEN * (2 if len(names) == 2 else 1))
        layer = nn.Linear(*sizes, bias=getattr(children[name], "bias", None) is not None)
        with torch.no_grad():
            for parameter in layer.parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=random))
        children[name] = layer
    return stand_in(module, {}, children)


def _recipes(names: tuple[str, ...]) -> Iterator[Recipe]:
    layouts: tuple[ops.Layout, ...] = ("gate_first", "up_first") if len(names) == 2 else ("separate",)
    for activation in ACTIVATIONS:
        for layout in layouts:
            yield Recipe(names[0], names[1] if len(names) == 3 else None, names[-1], activation, layout)


def _find(module: nn.Module, names: tuple[str, ...]) -> Recipe | str | None:
    small = _small(module, names)
    x = torch.randn(2, 5, _IN, generator=torch.Generator().manual_seed(3))
    small.training = False
    with torch.no_grad():
        want = type(small).forward(small, x)
        small.training = True
        if not torch.equal(type(small).forward(small, x), want):
            return "gives something else in training than in evaluation"
    why = None
    for recipe in _recipes(names):
        patched = stand_in(small, {}, dict(small.named_children()))
        become(patched, forward, recipe)
        with torch.no_grad():
            if not (type(patched).forward(patched, x) - want).abs().max() <= 1e-4 * want.abs().max():
                continue
        # Also gates near 0, and large ones, which some MLPs clamp.
        why = twin.why_not(twin.Fed(small, x), twin.Fed(patched, x), [twin.fed(factor) for factor in (1.0, 1e-2, 30.0)])
        if why is None:
            return recipe
    return why


def apply(module: nn.Module, recipe: Any) -> None:
    """Puts the op between the MLP's layers."""
    become(module, forward, cast(Recipe, recipe))
