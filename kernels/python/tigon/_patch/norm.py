# SPDX-License-Identifier: Apache-2.0
"""RMSNorm and LayerNorm: found by what they give for random weights, and which eps, offset and roundings they have."""
import dataclasses
import itertools
from collections.abc import Iterator
from typing import Any, cast

import torch
from torch import Tensor, nn

from .. import ops
from . import recompute, twin
from .become import become, original, state_of
from .plain import are_usable, only_one, without_autocast
from .stand_in import has_code_of_its_own, stand_in, takes_one_argument

KIND = "norm"
_CASTINGS: tuple[ops.Casting, ...] = ("llama", "gemma", "none")
_USUAL_EPS = (1e-5, 1e-6, 1e-8, 1e-12, torch.finfo(torch.float32).eps)


@dataclasses.dataclass(frozen=True)
class Recipe:
    """The op that does what a norm does; `weight` and `bias` are names of the module's parameters."""
    op: str
    eps: float
    weight: str | None = None
    bias: str | None = None
    offset: float = 0.0
    casting: ops.Casting = "llama"
    again: str | None = None  # the module's name, where its result is made again for backward

    def __str__(self) -> str:
        return f"{self.op}, eps={self.eps:.3g}" + (f", offset={self.offset:.0f}, casting={self.casting}" if self.op == "rms_norm" else "")

    def run(self, x: Tensor, w: Tensor | None, b: Tensor | None) -> Tensor:
        """The op."""
        if self.op == "rms_norm":
            return ops.rms_norm(x, w, self.eps, offset=self.offset, casting=self.casting)
        return ops.layer_norm(x, w, b, self.eps)


def forward(self: nn.Module, *given: Any, **named: Any) -> Any:
    """The norm by Tigon's op; the module's own code for what the op does not take."""
    recipe: Recipe = state_of(self)
    w = self._parameters[recipe.weight] if recipe.weight else None
    b = self._parameters[recipe.bias] if recipe.bias else None
    x = only_one(given, named)
    if x is None or not are_usable(x, w, b) or _is_made_float32(recipe, x):
        return original(self).forward(self, *given, **named)
    with without_autocast(x):
        return recompute.made(recipe.again, recipe.run, x, w, b) if recipe.again else recipe.run(x, w, b)


def _is_made_float32(recipe: Recipe, x: Tensor) -> bool:
    """Autocast on a GPU has a list of functions that give float32; torch's layer norm is one of them."""
    return recipe.op == "layer_norm" and x.dtype != torch.float32 and torch.is_autocast_enabled(x.device.type)


def _shape(p: nn.Parameter) -> Any:
    """A parameter's own: ZeRO-3 keeps no elements in it."""
    return getattr(p, "ds_shape", p.shape)


def looks_like(module: nn.Module) -> bool:
    """Whether a module is worth a try: one or two vectors, nothing below it; a name only decides whether it is worth a word."""
    shapes = [_shape(p) for p in module.parameters(recurse=False)]
    vectors = 0 < len(shapes) <= 2 and all(len(s) == 1 for s in shapes) and len(set(shapes)) == 1
    return not list(module.children()) and (vectors or "norm" in type(module).__name__.lower())


def find(module: nn.Module) -> Recipe | str:
    """The recipe for a norm, or the reason why there is none, as the end of a sentence."""
    parameters = dict(module.named_parameters())
    if has_code_of_its_own(module):
        return "has a forward of its own, bound by another tool"
    if len(parameters) > 2 or any(len(_shape(p)) != 1 for p in parameters.values()) or any(True for _ in (*module.children(), *module.buffers())):
        return "has more than a weight [H] and a bias [H]"
    if not takes_one_argument(module):
        return "takes more than one tensor"
    sizes = {_shape(p)[0] for p in parameters.values()} or {64}
    if len(sizes) > 1:
        return "has parameters of two sizes"
    try:
        return _find(_Probe(module, tuple(parameters), sizes.pop()))
    except Exception as error:  # noqa: BLE001 - whatever it is: the module is no norm
        return f"does not run on small tensors: {type(error).__name__}: {str(error)[:80]}"


class _Probe:
    """A norm's code over random weights and inputs."""

    def __init__(self, module: nn.Module, names: tuple[str, ...], size: int):
        random = torch.Generator().manual_seed(1)
        self.names = names
        self.parameters = {n: nn.Parameter(torch.randn(size, generator=random)) for n in names}
        self.module = stand_in(module, self.parameters, {})
        self.x = torch.randn(24, size, generator=random)
        self.eps = sorted({v for v in vars(module).values() if isinstance(v, float) and 0 < v <= 0.1} | set(_USUAL_EPS), reverse=True)

    def candidates(self) -> Iterator[Recipe]:
        """All recipes with parameters in any roles, but for roundings, which float32 does not show."""
        for eps in self.eps:
            if len(self.names) < 2:
                weight = self.names[0] if self.names else None
                for offset in (0.0, 1.0) if weight else (0.0,):
                    yield Recipe("rms_norm", eps, weight, offset=offset)
            for weight, bias in itertools.permutations((*self.names, *[None] * (2 - len(self.names))), 2):
                yield Recipe("layer_norm", eps, weight, bias)

    @torch.no_grad()
    def fits(self, recipe: Recipe) -> bool:
        """Whether the recipe gives the module's values, also where eps is as large as the mean of the squares."""
        w, b = (self.parameters[n] if n else None for n in (recipe.weight, recipe.bias))
        for factor in (1.0, recipe.eps**0.5):
            want, got = type(self.module).forward(self.module, self.x * factor), recipe.run(self.x * factor, w, b)
            if not isinstance(want, Tensor) or want.shape != got.shape or not (want - got).abs().max() <= 1e-4 * want.abs().max():
                return False
        return True

    @torch.no_grad()
    def same_bits(self, recipe: Recipe) -> float:
        """The part of results in bfloat16 that have the module's bits."""
        parameters = {n: nn.Parameter(p.bfloat16()) for n, p in self.parameters.items()}
        w, b = (parameters[n] if n else None for n in (recipe.weight, recipe.bias))
        x = (self.x * 3).bfloat16()
        shadow = stand_in(self.module, parameters, {})
        want, got = type(shadow).forward(shadow, x), recipe.run(x, w, b)
        return (want == got).float().mean().item() if want.dtype == got.dtype else 0.0


def _find(probe: _Probe) -> Recipe | str:
    recipe = next((r for r in probe.candidates() if probe.fits(r)), None)
    if recipe is None:
        return "is neither RMSNorm nor LayerNorm: no eps and offset give its values"
    why = ""
    for likely in sorted((dataclasses.replace(recipe, casting=c) for c in _castings(recipe)), key=probe.same_bits, reverse=True):
        patched = stand_in(probe.module, probe.parameters, {})
        become(patched, forward, likely)
        # Also rows in which eps decides, and long ones.
        calls = [twin.fed(factor) for factor in (1.0, likely.eps**0.5, 1e3)]
        found = twin.why_not(twin.Fed(probe.module, probe.x), twin.Fed(patched, probe.x), calls)
        if found is None:
            return likely
        why = why or found
    return why


def _castings(recipe: Recipe) -> tuple[ops.Casting, ...]:
    return _CASTINGS if recipe.op == "rms_norm" else _CASTINGS[:1]


def apply(module: nn.Module, recipe: Any) -> None:
    """Puts the op in the place of the norm's code."""
    become(module, forward, cast(Recipe, recipe))
