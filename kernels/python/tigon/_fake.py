# SPDX-License-Identifier: Apache-2.0
"""Fake kernels: shapes and dtypes of results, for torch.compile, torch.export and meta tensors. Derived; knows no op."""
from typing import Any

import torch

from . import _native
from ._describe import Result
from ._results import result_shapes
from ._torch import DTYPES, NAMES, Operator, is_of_activations


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
        shapes = result_shapes(_native.host(), said, options, [None if t is None else t.shape for t in tensors], want)
        made = [first.new_empty(0 if shape is None else shape, dtype=self._dtype(result, first)) for result, shape in zip(said.results, shapes)]
        return tuple(made) if len(made) > 1 else made[0]

    def _dtype(self, result: Result, first: torch.Tensor) -> torch.dtype:
        tensor = self._said.tensors[result.tensor]
        return first.dtype if is_of_activations(self._said, tensor.name) else DTYPES[tensor.dtype]
