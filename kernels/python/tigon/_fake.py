# SPDX-License-Identifier: Apache-2.0
"""Fake kernels: shapes and dtypes of results, for torch.compile, torch.export and meta tensors. Derived; knows no op."""
from typing import Any

import torch

from . import _native
from ._describe import Result
from ._sizes import sizes_of
from ._torch import DTYPES, NAMES, Operator, is_of_activations


def _logical(shape: Any, rank: int) -> list[Any]:
    """A shape as an op of this rank sees it: more axes become rows."""
    lead = len(shape) - rank
    if lead <= 0:
        return list(shape)
    rows: Any = 1
    for size in shape[:lead + 1]:
        rows = rows * size
    return [rows, *shape[lead + 1:]]


class Fake:
    """The fake kernel of an operator."""

    def __init__(self, operator: Operator):
        self._operator, self._said = operator, operator.said

    def __call__(self, *arguments: Any) -> Any:
        said, count = self._said, len(self._said.arguments)
        filled = self._operator.fill(arguments)
        tensors, options = filled[:count], tuple(float(value) for value in filled[count:count + len(said.options)])
        want = filled[-1] if said.wanted else 0
        first = tensors[0]
        if first.dtype not in NAMES:
            raise RuntimeError(f"{self._operator.qualified_name}: {said.arguments[0].name} must be float32, bfloat16 or float16")
        sizes = sizes_of(_native.host(), said, options)
        axes = sizes.axes(self._shapes(tensors))
        lead = first.shape[:len(first.shape) - len(said.arguments[0].shape) + 1]
        made = []
        for result in said.results:
            dtype = self._dtype(result, first)
            if result.wanted_bit is not None and not want >> result.wanted_bit & 1:
                made.append(first.new_empty(0, dtype=dtype))
            elif result.is_copy:
                copied = tensors[self._operator.arguments[said.tensors[result.tensor].name]]
                made.append(first.new_empty(copied.shape, dtype=dtype))
            else:
                shape = said.tensors[result.tensor].shape
                own = [sizes.sum(result.tensor, axis)(axes) for axis in range(len(shape))]
                has_lead = len(shape) > 1 and shape[0] == said.rows
                made.append(first.new_empty([*lead, *own[1:]] if has_lead else own, dtype=dtype))
        return tuple(made) if len(made) > 1 else made[0]

    def _shapes(self, tensors: Any) -> dict[int, list[Any]]:
        """The given tensors' sizes by their place in a call."""
        said, found = self._said, {}
        for tensor, given in zip(said.arguments, tensors):
            if given is not None:
                takes_rows = tensor.shape[:1] == (said.rows,)
                found[said.index[tensor.name]] = _logical(given.shape, len(tensor.shape) if takes_rows else len(given.shape))
        return found

    def _dtype(self, result: Result, first: torch.Tensor) -> torch.dtype:
        tensor = self._said.tensors[result.tensor]
        return first.dtype if is_of_activations(self._said, tensor.name) else DTYPES[tensor.dtype]
