# SPDX-License-Identifier: Apache-2.0
"""Ops on NumPy arrays, by the host library, and on CuPy arrays, by that for GPUs. Knows no op."""
import contextlib
import ctypes
from typing import TYPE_CHECKING, Any

from . import _native
from ._describe import Pass, Tensor

if TYPE_CHECKING:
    import numpy

NUMPY_NAMES = {"float64": "f64", "float32": "f32", "bfloat16": "bf16", "float16": "f16", "int64": "i64", "int32": "i32", "uint8": "u8"}


def run(name: str, *, dtype: str | None = None, want: tuple[str, ...] = (), **arguments: Any) -> "dict[str, numpy.ndarray]":
    """Runs one pass of one op on NumPy or CuPy arrays: tigon.run("rms_norm.forward", x=x, w=w, eps=1e-6)["y"].

    name: a pass, e.g. "rms_norm.forward"; tigon.describe(name) says its formula, tensors and options.
    dtype: of the activations, "f32", "f16" or "bf16"; left out, that of the first array. Arrays of uint16 are bf16's bits
    where the op takes bf16.
    want: names of results that are computed only on demand.
    arguments: its arrays, shaped as the op says, and its options; a choice by its name. Arrays are copied where the op
    wants them without gaps. Arrays are not changed. CuPy arrays lie on one GPU; the work goes to CuPy's current stream.

    Returns the results by name, arrays of the arguments' kind. LookupError: no such op or dtype. TypeError: an argument that the op does not have.
    ValueError: a choice that there is not. RuntimeError: a shape or dtype is wrong; the sentence names array and axis.
    """
    first = _native.host().describe(name, dtype or "f32").arguments[0].name
    if arguments.get(first) is None:
        raise TypeError(f"{name}: {first} is missing")
    arrays = _of(arguments[first])
    library = arrays.library()
    dtype = dtype or _dtype_name(arrays.module.asarray(arguments[first]), "bf16")
    said = library.describe(name, dtype)
    call = _Call(said, arrays, {k: arrays.module.asarray(v) if k in said.index and v is not None else v for k, v in arguments.items()})
    unknown = set(want) - set(said.wanted)
    if unknown:
        raise TypeError(f"{name}: nothing to want is called {', '.join(sorted(unknown))}; there are {', '.join(said.wanted) or 'none'}")
    with arrays.device(arguments[first]):
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


class _NumPy:
    """What a call asks of NumPy."""

    def __init__(self) -> None:
        import numpy

        self.module: Any = numpy

    def library(self) -> _native.Library:
        return _native.host()

    def device(self, array: Any) -> contextlib.AbstractContextManager[Any]:
        """Makes the array's device the current one."""
        return contextlib.nullcontext()

    def stream(self) -> int | None:
        return None

    def address(self, array: Any) -> int:
        return int(array.ctypes.data)


class _CuPy(_NumPy):
    """The same of CuPy."""

    def __init__(self) -> None:
        import cupy

        self.module = cupy

    def library(self) -> _native.Library:
        """RuntimeError: it is not there."""
        found = _native.cuda()
        if found is None:
            raise RuntimeError("this tigon was built without the library for CUDA; install it where nvcc is")
        return found

    def device(self, array: Any) -> contextlib.AbstractContextManager[Any]:
        return self.module.cuda.Device(array.device.id)  # type: ignore[no-any-return]

    def stream(self) -> int | None:
        return int(self.module.cuda.get_current_stream().ptr)

    def address(self, array: Any) -> int:
        return int(array.data.ptr)


def _of(array: Any) -> _NumPy:
    """Of the module whose array this is; what NumPy can make an array of is NumPy's."""
    return _CuPy() if type(array).__module__.split(".")[0] == "cupy" else _NumPy()


class _Call:
    """A call and the arrays that it refers to."""

    def __init__(self, said: Pass, arrays: _NumPy, arguments: dict[str, Any]):
        self.said, self.arrays = said, arrays
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
        if tensor.dtype == "bf16":
            self.bfloat16 = array.dtype
        rows_apart = tensor.strided and array.ndim > 0 and array.strides[-1] == array.itemsize and all(s > 0 for s in array.strides)
        return array if rows_apart else self.arrays.module.ascontiguousarray(array)

    def _bind(self, tensor: Tensor, array: "numpy.ndarray") -> None:
        sizes = (ctypes.c_int64 * _native.MAX_RANK)(*array.shape)
        strides = (ctypes.c_int64 * _native.MAX_RANK)(*(s // array.itemsize for s in array.strides))
        self.kept += [array, sizes, strides]
        dtype = _native.DTYPES.index(_dtype_name(array, tensor.dtype))
        self.tensors[self.said.index[tensor.name]] = _native.Tensor(self.arrays.address(array), sizes, strides, dtype, array.ndim)

    def _empty(self, tensor: Tensor, shape: list[int]) -> "numpy.ndarray":
        names = {ours: theirs for theirs, ours in NUMPY_NAMES.items()}
        dtype = self.bfloat16 if tensor.dtype == "bf16" else names[tensor.dtype]
        return self.arrays.module.empty(shape, dtype)  # type: ignore[no-any-return]

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
        library.run(op, self.call, self.arrays.stream())
        return results

    def _add_scratch(self, library: _native.Library, op: Any) -> None:
        self.call.scratch_bytes = library.workspace(op, self.call)
        scratch = self.arrays.module.empty(self.call.scratch_bytes + 255, "uint8")
        self.kept.append(scratch)
        self.call.scratch = (self.arrays.address(scratch) + 255) // 256 * 256
