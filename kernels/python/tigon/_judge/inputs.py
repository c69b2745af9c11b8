# SPDX-License-Identifier: Apache-2.0
"""Inputs that a candidate cannot know: drawn by a seed after it is loaded, and of kinds that easy code gets wrong."""
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from .._testing.made import relaid
from .failures import BadProblem

Change = Callable[[Tensor, torch.Generator], Tensor]
_BETWEEN = 16  # elements between rows: their alignment stays


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


def _contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    return torch.empty(tuple(shape), device="meta").stride()


def _rows_apart(x: Tensor) -> Tensor:
    """As columns of a wider tensor are."""
    return relaid(x, _contiguous((*x.shape[:-1], x.shape[-1] + _BETWEEN))) if x.dim() > 1 else x


def _transposed(x: Tensor) -> Tensor:
    """As a transposed tensor is, and vectors as columns are."""
    return x.mT.contiguous().mT if x.dim() > 1 else relaid(x, (2,)) if x.dim() == 1 else x


def _unaligned(x: Tensor) -> Tensor:
    """Contiguous, from an odd element on."""
    return relaid(x, _contiguous(x.shape), 1)


UNALIGNED = "unaligned inputs"
LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {"strided inputs, rows apart": _rows_apart, "strided inputs, transposed": _transposed,
                                                  UNALIGNED: _unaligned}


def _is_laid_out(old: Tensor, new: Tensor) -> bool:
    """Whether a layout is another one. Strides of dimensions of one element say nothing."""
    strides = [tuple(stride for stride, size in zip(t.stride(), t.shape) if size > 1) for t in (old, new)]
    return old.numel() > 0 and (strides[0] != strides[1] or new.storage_offset() > 0)


def _layouts(first: Any, kinds: Sequence[str]) -> "Iterator[Call]":
    """The same values in other layouts; none where a layout changes nothing."""
    for kind in kinds:
        change = LAYOUTS[kind]
        changed = pytree.tree_map(lambda v: change(v) if type(v) is Tensor and v.layout == torch.strided else v, first)
        pairs = zip(pytree.tree_leaves(first), pytree.tree_leaves(changed))
        if any(old is not new and _is_laid_out(old, new) for old, new in pairs):
            yield Call(kind, True, changed, first)


def _is_distribution(x: Tensor) -> bool:
    """Rows of probabilities stay as they are drawn."""
    return x.dim() > 0 and bool((x >= 0).all()) and bool((x.sum(-1).float() - 1).abs().max() < 0.01) if x.numel() else False


class Call(NamedTuple):
    """What kind of inputs; whether they are at new addresses or at those of the call before; positional arguments; and of the same values
    in another layout those as they were drawn."""
    kind: str
    fresh: bool
    inputs: Any
    relaid_of: Any = None


class Source(Protocol):
    """What draws inputs. `sizes`: by name, where others may be tried."""
    sizes: dict[str, int]

    def inputs(self, seed: int, **sizes: int) -> Any:
        """Positional arguments as they are drawn by a seed. BadProblem: there are none of these sizes."""


def variants(problem: Source, seed: int) -> Iterator[Call]:
    """Each call. Unaligned inputs are the last: the device may do nothing after them."""
    first = problem.inputs(seed)
    yield Call("drawn", True, first)
    yield Call("drawn again, at the same addresses", False, problem.inputs(seed + 1))
    yield Call("the first, at other addresses", True, first)
    yield from _layouts(first, [kind for kind in LAYOUTS if kind != UNALIGNED])
    generator = torch.Generator().manual_seed(seed)
    for number, (kind, change) in enumerate(KINDS.items()):
        drawn = problem.inputs(seed + 2 + number)
        yield Call(kind, number % 2 == 0, pytree.tree_map(
            lambda v, c=change: c(v, generator) if isinstance(v, Tensor) and v.is_floating_point() and not _is_distribution(v) else v, drawn))
    yield from _other_sizes(problem, seed, generator)
    yield from _layouts(first, [UNALIGNED])


def _other_sizes(problem: Source, seed: int, generator: torch.Generator) -> Iterator[Call]:
    """Where the problem names its sizes and allows others."""
    other = {name: max(1, size + int(torch.randint(-size // 2, size // 2 + 1, (), generator=generator)) | 1) for name, size in problem.sizes.items()}
    try:
        drawn = problem.inputs(seed + 9, **other) if other else None
    except BadProblem:
        return
    if other:
        yield Call("sizes " + ", ".join(f"{n}={v}" for n, v in other.items()), True, drawn)
