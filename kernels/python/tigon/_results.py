# SPDX-License-Identifier: Apache-2.0
"""Shapes of a pass' results from those of its arguments, which may have symbols for sizes. Knows no op, and no framework."""
from collections.abc import Sequence
from typing import Any

from . import _native
from ._describe import Pass, Tensor
from ._sizes import sizes_of

Shape = Sequence[Any]


def logical_shape(said: Pass, tensor: Tensor, shape: Shape) -> list[Any]:
    """A shape as the op sees it: of a tensor of rows, leading axes become the rows."""
    lead = len(shape) - len(tensor.shape)
    if lead <= 0 or tensor.shape[:1] != (said.rows,):
        return list(shape)
    rows: Any = 1
    for size in shape[:lead + 1]:
        rows = rows * size
    return [rows, *shape[lead + 1:]]


def leading_axes(said: Pass, shapes: Sequence[Shape | None]) -> list[Any]:
    """The axes of the first argument that are its rows."""
    first = shapes[0]
    assert first is not None  # no op lets it be left out
    return list(first[:len(first) - len(said.arguments[0].shape) + 1])


def result_shapes(library: _native.Library, said: Pass, options: tuple[float, ...], shapes: Sequence[Shape | None],
                  want: int) -> list[list[Any] | None]:
    """Of each result; None: it is not wanted. Where results are rows of something, they have the first argument's leading axes.

    shapes: of the arguments; None: left out. RuntimeError: they do not say the size of an axis.
    """
    sizes = sizes_of(library, said, options)
    axes = sizes.axes({said.index[t.name]: logical_shape(said, t, shape) for t, shape in zip(said.arguments, shapes) if shape is not None})
    made: list[list[Any] | None] = []
    for result in said.results:
        tensor = said.tensors[result.tensor]
        if result.wanted_bit is not None and not want >> result.wanted_bit & 1:
            made.append(None)
        elif result.is_copy:
            copied = shapes[said.argument_places[tensor.name]]
            assert copied is not None  # what is changed in place and may be left out is not offered
            made.append(list(copied))
        else:
            own = [sizes.sum(result.tensor, axis)(axes) for axis in range(len(tensor.shape))]
            has_lead = len(tensor.shape) > 1 and tensor.shape[0] == said.rows
            made.append([*leading_axes(said, shapes), *own[1:]] if has_lead else own)
    return made
