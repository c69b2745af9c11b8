# SPDX-License-Identifier: Apache-2.0
"""Ops on NumPy arrays, by the host library. Knows no op."""
import ctypes
from typing import TYPE_CHECKING, Any

from . import _native
from ._describe import Pass, Tensor

if TYPE_CHECKING:
    import numpy

NUMPY_NAMES = {"float64": "f64", "float32": "f32", "bfloat16": "bf16", "float16": "f16", "int64": "i64", "int32": "i32", "uint8": "u8"}


def run(name: str, *, dtype: str | None = None, want: tuple[str, ...] = (), **arguments: Any) -> "dict[str, numpy.ndarray]":
    """Runs one pass of one op on NumPy arrays: tigon.run("rms_norm.forward", x=x, w=w, eps=1e-6)["y"].

    name: a pass, e.g. "rms_norm.forward"; tigon.describe(name) says its formula, tensors and options.
    dtype: of the activations, "f32", "f16" or "bf16"; left out, that of the first array. Arrays of uint16 are bf16's bits
    where the op takes bf16.
    want: names of results that are computed only on demand.
    arguments: its arrays, shaped as the op says, and its options; a choice by its name. Arrays are copied where the op
    wants them without gaps. Arrays are not changed.

    Returns the results by name. LookupError: no such op or dtype. TypeError: an argument that the op does not have.
    ValueError: a choice that there is not. RuntimeError: a shape or dtype is wrong; the sentence names array and axis.
    """
    import numpy

    library = _native.host()
    if dtype is None:
        first = library.describe(name, "f32").arguments[0].name
        if first not in arguments:
            raise TypeError(f"{name}: {first} is missing")
        dtype = _dtype_name(numpy.asarray(arguments[first]), "bf16")
    said = library.describe(name, dtype)
    call = _NumpyCall(said, {k: numpy.asarray(v) if k in said.index and v is not None else v for k, v in arguments.items()})
    unknown = set(want) - set(said.wanted)
    if unknown:
        raise TypeError(f"{name}: nothing to want is called {', '.join(sorted(unknown))}; there are {', '.join(said.wanted) or 'none'}")
    return call.run(library, library.op(name, dtype), set(want))


def describe(name: str, dtype: str = "f32") -> Pass:
    """What a pass takes and gives: formula, axes, tensors, options. LookupError: there is no such pass or dtype."""
    return _native.host().describe(name, dtype)


def _dtype_name(array: "numpy.ndarray", of_uint16: str) -> str:
    name = array.dtype.name
    if name == "uint16" and of_uint16 == "bf16":
        return "bf16"
    if name not in NUMPY_NAMES:
        raise TypeError(f"arrays of {name} have no kernel; there are {', '.join(NUMPY_NAMES)}")
    return NUMPY_NAMES[name]


class _NumpyCall:
    """A call and the arrays that it refers to."""

    def __init__(self, said: Pass, arguments: dict[str, Any]):
        self.said = said
        self.tensors = (_native.Tensor * len(said.tensors))()
        self.options = (_native.Option * len(said.options))()
        self.kept: list[Any] = []
        self.bfloat16: Any = None  # the dtype that the caller has for it
        given = {t.name for t in said.arguments} | {o.name for o in said.options}
        if set(arguments) - given:
            raise TypeError(f"{said.name} takes no {', '.join(sorted(set(arguments) - given))}; it takes {', '.join(sorted(given))}")
        for tensor in said.arguments:
            if arguments.get(tensor.name) is not None:
                self._bind(tensor, self._as_wanted(tensor, arguments[tensor.name]))
        self.arguments = arguments
        for i, option in enumerate(said.options):
            self.options[i] = _native.Option(i, 0, option.number(arguments.get(option.name, option.default)))
        self.call = _native.Call(self.tensors, self.options, None, 0, len(said.tensors), len(said.options))

    def _as_wanted(self, tensor: Tensor, array: "numpy.ndarray") -> "numpy.ndarray":
        import numpy

        if tensor.dtype == "bf16":
            self.bfloat16 = array.dtype
        rows_apart = tensor.strided and array.ndim > 0 and array.strides[-1] == array.itemsize and all(s > 0 for s in array.strides)
        return array if rows_apart else numpy.ascontiguousarray(array)

    def _bind(self, tensor: Tensor, array: "numpy.ndarray") -> None:
        sizes = (ctypes.c_int64 * _native.MAX_RANK)(*array.shape)
        strides = (ctypes.c_int64 * _native.MAX_RANK)(*(s // array.itemsize for s in array.strides))
        self.kept += [array, sizes, strides]
        dtype = _native.DTYPES.index(_dtype_name(array, tensor.dtype))
        self.tensors[self.said.index[tensor.name]] = _native.Tensor(array.ctypes.data, sizes, strides, dtype, array.ndim)

    def _empty(self, tensor: Tensor, shape: list[int]) -> "numpy.ndarray":
        import numpy

        names = {ours: theirs for theirs, ours in NUMPY_NAMES.items()}
        dtype = self.bfloat16 if tensor.dtype == "bf16" else names[tensor.dtype]
        return numpy.empty(shape, dtype)

    def run(self, library: _native.Library, op: Any, want: set[str]) -> "dict[str, numpy.ndarray]":
        results = {}
        for result in self.said.results:
            tensor = self.said.tensors[result.tensor]
            if result.wanted_bit is not None and result.name not in want:
                continue
            if result.is_copy:
                made = self.arguments[tensor.name].copy(order="C")
            else:
                made = self._empty(tensor, library.shape(op, self.call, result.tensor))
            self._bind(tensor, made)
            results[result.name] = made
        self._add_scratch(library, op)
        library.run(op, self.call)
        return results

    def _add_scratch(self, library: _native.Library, op: Any) -> None:
        import numpy

        self.call.scratch_bytes = library.workspace(op, self.call)
        scratch = numpy.empty(self.call.scratch_bytes + 255, "uint8")
        self.kept.append(scratch)
        self.call.scratch = (scratch.ctypes.data + 255) // 256 * 256
