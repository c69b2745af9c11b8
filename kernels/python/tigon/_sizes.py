# SPDX-License-Identifier: Apache-2.0
"""Sizes of a pass' tensors as sums over its axes, so that they can be computed with symbols, too.

The library evaluates sizes (tigon_shape) of numbers only. For given options every size is a sum of axes with factors
and a constant; both are found by asking for trial sizes. Knows no op.
"""
import ctypes
import dataclasses
import functools
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from . import _native
from ._describe import Pass

TRIAL = 24  # divisible by what sizes are divided by


@dataclasses.dataclass(frozen=True)
class Sum:
    """constant + the sum of factor * axis."""
    constant: Fraction
    factors: Mapping[str, Fraction]

    def __call__(self, axes: Mapping[str, Any]) -> Any:
        """Its value, for sizes that may be symbols."""
        size: Any = int(self.constant)
        for axis, factor in self.factors.items():
            size = size + axes[axis] * factor.numerator // factor.denominator
        return size

    def solve(self, size: Any) -> Any:
        """The value of its only axis where it has this size."""
        (factor,) = self.factors.values()
        return (size - int(self.constant)) * factor.denominator // factor.numerator


class Sizes:
    """The sizes of a pass for given options, which are numbers in the pass' order."""

    def __init__(self, library: _native.Library, said: Pass, options: Sequence[float]):
        self._library, self._said, self._op = library, said, library.op(said.name, said.dtype)
        self._options = (_native.Option * len(options))(*(_native.Option(i, 0, value) for i, value in enumerate(options)))
        self._sums: dict[tuple[int, int], Sum] = {}

    def sum(self, tensor: int, axis: int) -> Sum:
        """Axis number `axis` of tensor number `tensor`."""
        text = self._said.tensors[tensor].shape[axis]
        if text in self._said.axes:
            return Sum(Fraction(0), {text: Fraction(1)})
        if (tensor, axis) not in self._sums:
            self._sums[tensor, axis] = self._fit(tensor, axis)
        return self._sums[tensor, axis]

    def axes(self, given: Mapping[int, Sequence[Any]]) -> dict[str, Any]:
        """The axes' sizes from those of the given tensors. RuntimeError: they do not say one of them."""
        found: dict[str, Any] = {}
        for tensor, sizes in given.items():
            for text, size in zip(self._said.tensors[tensor].shape, sizes):
                if text in self._said.axes:
                    found.setdefault(text, size)
        if len(found) < len(self._said.axes):
            self._solve(given, found)
        return found

    def _solve(self, given: Mapping[int, Sequence[Any]], found: dict[str, Any]) -> None:
        for tensor, sizes in given.items():
            for axis, size in enumerate(sizes):
                total = self.sum(tensor, axis)
                unknown = [name for name in total.factors if name not in found]
                if len(unknown) == 1 and len(total.factors) == 1:
                    found[unknown[0]] = total.solve(size)
        missing = [name for name in self._said.axes if name not in found]
        if missing:
            raise RuntimeError(f"{self._said.name}: nothing tells the size of {', '.join(missing)}")

    def _fit(self, tensor: int, axis: int) -> Sum:
        names = list(self._said.axes)
        at = functools.partial(self._trial, tensor, axis)
        base = dict.fromkeys(names, TRIAL)
        constant = Fraction(at(base))
        factors = {}
        for name in names:
            factor = Fraction(at({**base, name: 2 * TRIAL}) - at(base), TRIAL)
            constant -= factor * TRIAL
            if factor:
                factors[name] = factor
        fitted, far = Sum(constant, factors), {name: (3 + i) * TRIAL for i, name in enumerate(names)}
        if fitted(far) != at(far):
            raise RuntimeError(f"{self._said.name}: the size {self._said.tensors[tensor].shape[axis]} is no sum of axes")
        return fitted

    def _trial(self, tensor: int, axis: int, axes: Mapping[str, int]) -> int:
        """The size that the library tells for these axes: every tensor that names one says it."""
        tensors = (_native.Tensor * len(self._said.tensors))()
        kept = []
        for i, t in enumerate(self._said.tensors):
            if set(t.shape) & set(self._said.axes):
                sizes = (ctypes.c_int64 * _native.MAX_RANK)(*(axes.get(text, TRIAL) for text in t.shape))
                kept.append(sizes)
                tensors[i] = _native.Tensor(None, sizes, None, _native.DTYPES.index(t.dtype), len(t.shape))
        call = _native.Call(tensors, self._options, None, 0, len(tensors), len(self._options))
        return self._library.shape(self._op, call, tensor)[axis]


@functools.lru_cache(maxsize=1024)
def sizes_of(library: _native.Library, said: Pass, options: tuple[float, ...]) -> Sizes:
    """Sizes(library, said, options), kept."""
    return Sizes(library, said, options)
