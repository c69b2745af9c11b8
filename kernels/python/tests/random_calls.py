# SPDX-License-Identifier: Apache-2.0
"""Random arguments for any pass of any op, from what it says of itself. Knows no op."""
import itertools
from collections.abc import Iterator
from typing import Any

import tigon.ops  # noqa: F401 - it registers the operators
import torch
from tigon import _native
from tigon._describe import Pass, Tensor
from tigon._sizes import sizes_of
from tigon._torch import DTYPES, pass_of

LEAD = (2, 3)  # what stands for the rows
SIZE = 8
NEEDED = {"classes"}  # options without which there is no call


def passes() -> list[str]:
    """All passes of the library."""
    return _native.host().names


def options_of(said: Pass) -> Iterator[tuple[float, ...]]:
    """The defaults, and every combination of choices; of an option that is a size, or needed, one with room for any of LEAD and SIZE."""
    sizes = NEEDED | {text for t in said.tensors for text in t.shape}
    values = [range(len(o.choices)) if o.choices else [64 if o.name in sizes else o.number(o.default)] for o in said.options]
    yield from itertools.product(*values)


def arguments(name: str, dtype: str, options: tuple[float, ...], optional: bool, needs_grad: bool = False) -> list[Any]:
    """Tensors, options and, where the pass has it, `want`; optional: all tensors and results, else only those that must be.

    Whole numbers are 0: a target, a position.
    """
    said = pass_of(name, dtype)
    axes = {axis: SIZE + 2 * i for i, axis in enumerate(sorted(said.axes))}
    axes[said.rows] = LEAD[0] * LEAD[1]
    sizes = sizes_of(_native.host(), said, options)

    def make(tensor: Tensor) -> Any:
        if tensor.optional and not optional:
            return None
        shape = [sizes.sum(said.index[tensor.name], axis)(axes) for axis in range(len(tensor.shape))]
        if tensor.shape[:1] == (said.rows,):
            shape = [*LEAD, *shape[1:]]
        if tensor.dtype == "i64":
            return torch.zeros(shape, dtype=torch.int64)
        values = torch.rand(shape) + 0.5
        return values.to(DTYPES[tensor.dtype]).requires_grad_(needs_grad)

    # Of several places for one gradient only the first.
    bits = {said.tensors[said.index[result]].gradient_of or result: bit for result, bit in reversed(said.wanted.items())}
    want = [sum(bits.values()) if optional else 0] if said.wanted else []
    return [*map(make, said.arguments), *options, *want]
