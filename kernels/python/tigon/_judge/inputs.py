# SPDX-License-Identifier: Apache-2.0
"""Inputs that a candidate cannot know: drawn by a seed after it is loaded, and of kinds that easy code gets wrong."""
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from .failures import BadProblem

Change = Callable[[Tensor, torch.Generator], Tensor]


def _scaled(x: Tensor, g: torch.Generator) -> Tensor:
    """Smaller, by another power of two in each row."""
    rows = x.shape[:-1] if x.dim() > 1 else x.shape
    factors = 2.0 ** -torch.randint(1, 6, (*rows, *([1] * (x.dim() - len(rows)))), generator=g)
    return x * factors.to(x.device, x.dtype)


def _outliers(x: Tensor, g: torch.Generator) -> Tensor:
    """A few elements much larger; values between 0 and 1 stay there."""
    some = (torch.rand(x.shape, generator=g) < 0.02).to(x.device)
    bounded = bool((x >= 0).all() and (x <= 1).all())
    return torch.where(some, torch.ones_like(x) if bounded else x * 30, x)


def _zeros(x: Tensor, g: torch.Generator) -> Tensor:
    """A third of the rows is 0."""
    some = torch.rand(x.shape[:-1] if x.dim() > 1 else x.shape, generator=g) < 0.34
    return x.masked_fill(some.to(x.device)[..., None] if x.dim() > 1 else some.to(x.device), 0.0)


def _ties(x: Tensor, _: torch.Generator) -> Tensor:
    """Few different values."""
    return (x * 2).round() / 2


KINDS: dict[str, Change] = {"scaled": _scaled, "outliers": _outliers, "zeros": _zeros, "ties": _ties}


def _is_distribution(x: Tensor) -> bool:
    """Rows of probabilities stay as they are drawn."""
    return x.dim() > 0 and bool((x >= 0).all()) and bool((x.sum(-1).float() - 1).abs().max() < 0.01) if x.numel() else False


class Source(Protocol):
    """What draws inputs. `sizes`: by name, where others may be tried."""
    sizes: dict[str, int]

    def inputs(self, seed: int, **sizes: int) -> Any:
        """Positional arguments as they are drawn by a seed. BadProblem: there are none of these sizes."""


def variants(problem: Source, seed: int) -> Iterator[tuple[str, bool, Any]]:
    """(kind, whether at new addresses, inputs) of each call."""
    first = problem.inputs(seed)
    yield "drawn", True, first
    yield "drawn again, at the same addresses", False, problem.inputs(seed + 1)
    yield "the first, at other addresses", True, first
    generator = torch.Generator().manual_seed(seed)
    for number, (kind, change) in enumerate(KINDS.items()):
        drawn = problem.inputs(seed + 2 + number)
        yield kind, number % 2 == 1, pytree.tree_map(
            lambda v, c=change: c(v, generator) if isinstance(v, Tensor) and v.is_floating_point() and not _is_distribution(v) else v, drawn)
    if problem.sizes:
        other = {name: max(1, size + int(torch.randint(-size // 2, size // 2 + 1, (), generator=generator)) | 1) for name, size in problem.sizes.items()}
        try:
            drawn = problem.inputs(seed + 9, **other)
        except BadProblem:  # it allows no such sizes
            return
        yield "sizes " + ", ".join(f"{n}={v}" for n, v in other.items()), True, drawn
