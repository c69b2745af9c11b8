# SPDX-License-Identifier: Apache-2.0
"""A pass of an op as a custom call of XLA: jax_tvm_ffi hands XLA's buffers to the library's adapter (csrc/tvm_ffi.cpp). Knows no op.

XLA allocates results and scratch, so their sizes are told when a function is traced.
"""
import ctypes
import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import jax_tvm_ffi
import numpy
import tvm_ffi

from .. import _native
from .._describe import Pass, Tensor
from .._numpy import NUMPY_NAMES
from .._results import logical_shape, result_shapes

SCRATCH, NO_PART = -1, -2  # places of csrc/tvm_ffi.cpp
ALIGNED = 256  # bytes: where scratch begins
DTYPES = {ours: theirs for theirs, ours in NUMPY_NAMES.items()}


@functools.cache
def _module() -> Any:
    """The adapter. ImportError: it is not there."""
    path = _native.folder() / "libtigon_tvm_ffi.so"
    if not path.is_file():
        raise ImportError(f"{path} is missing: install the package with pip, or name the libraries' folder in TIGON_PYTHON_LIBRARIES")
    return tvm_ffi.load_module(str(path))


@functools.cache
def target_of(text: str) -> str:
    """The name by which XLA knows a call of the adapter. It is that of the same call in every process."""
    name, function = f"tigon/{text.replace(' ', '/')}", _module()["tigon_bind"](text)
    for platform in ("cpu", "gpu"):
        jax_tvm_ffi.register_ffi_target(name, function, ["args", "rets"], platform=platform)
    return name


def dtype_of(array: Any) -> str:
    """"f32", ... TypeError: there is no such dtype."""
    name = jnp.result_type(array).name
    if name not in NUMPY_NAMES:
        raise TypeError(f"arrays of {name} have no kernel; there are {', '.join(NUMPY_NAMES)}")
    return NUMPY_NAMES[name]


def run(name: str, tensors: Sequence[Any], options: tuple[float, ...], want: int) -> list[Any]:
    """The results of a pass, None for one that `want` does not ask for. Arguments are in the pass' order, None where left out.

    TypeError: an argument is missing or has a dtype that no kernel has. What else is wrong is said when it runs.
    """
    first = tensors[0]
    if first is None:
        raise TypeError(f"{name}: its first argument is missing")
    said = _native.host().describe(name, dtype_of(first))
    shapes = result_shapes(_native.host(), said, options, [None if t is None else t.shape for t in tensors], want)
    call = _Call(said, options)
    for tensor, given in zip(said.arguments, tensors):
        if given is not None:
            call.add_argument(tensor, given)
    for result, shape in zip(said.results, shapes):
        if shape is not None:
            call.add_result(said.tensors[result.tensor], shape, result.is_copy)
    made = iter(call.run())
    return [None if shape is None else next(made).reshape(shape) for shape in shapes]


class _Call:
    """What XLA is told of a call."""

    def __init__(self, said: Pass, options: tuple[float, ...]):
        self._said, self._options = said, options
        self._arguments: dict[str, Any] = {}
        self._results: list[jax.ShapeDtypeStruct] = []
        self._words: list[str] = []  # of each argument, then of each result
        self._aliases: dict[int, int] = {}
        self._tensors = (_native.Tensor * len(said.tensors))()
        self._kept: list[Any] = []

    def _add(self, tensor: Tensor, shape: Sequence[int], dtype: str) -> None:
        place = self._said.index[tensor.name]
        sizes = (ctypes.c_int64 * _native.MAX_RANK)(*shape)
        self._kept.append(sizes)
        self._tensors[place] = _native.Tensor(ALIGNED, sizes, None, _native.DTYPES.index(dtype), len(shape))  # an address that nobody reads
        self._words.append(f"{place} {dtype} {len(shape)}")

    def add_argument(self, tensor: Tensor, given: Any) -> None:
        array, dtype = jnp.asarray(given), dtype_of(given)
        shape = logical_shape(self._said, tensor, array.shape)
        array = array.reshape(shape)
        if tensor.dtype == "i64" and jnp.issubdtype(array.dtype, jnp.integer):
            array, dtype = _as_int64(array), "i64"
        self._arguments[tensor.name] = array
        self._add(tensor, shape, dtype)

    def add_result(self, tensor: Tensor, shape: Sequence[int], is_copy: bool) -> None:
        if is_copy:  # XLA copies the argument into the result's memory, if it has to; then the argument is in there
            argument = list(self._arguments).index(tensor.name)
            self._aliases[argument] = len(self._results)
            self._words[argument] = f"{NO_PART} u8 0"
        logical = logical_shape(self._said, tensor, shape)
        self._results.append(jax.ShapeDtypeStruct(tuple(logical), DTYPES[tensor.dtype]))
        self._add(tensor, logical, tensor.dtype)

    def run(self) -> Sequence[Any]:
        """The results, as the op sees their shapes."""
        scratch = jax.ShapeDtypeStruct((self._scratch_bytes() + ALIGNED,), jnp.uint8)
        self._words.append(f"{SCRATCH} u8 1")
        said, options = self._said, [repr(float(value)) for value in self._options]
        text = " ".join([said.name, said.dtype, str(len(said.tensors)), str(len(options)), *options, *self._words])
        call = jax.ffi.ffi_call(target_of(text), [*self._results, scratch], vmap_method="sequential", input_output_aliases=self._aliases)
        return call(*self._arguments.values())[:-1]  # type: ignore[no-any-return]

    def _scratch_bytes(self) -> int:
        """Enough for each library that is here: where a function will run is not known yet."""
        options = (_native.Option * len(self._options))(*(_native.Option(i, 0, value) for i, value in enumerate(self._options)))
        call = _native.Call(self._tensors, options, None, 0, len(self._tensors), len(self._options))
        libraries = [library for library in (_native.host(), _native.cuda()) if library is not None]
        return max(library.workspace(library.op(self._said.name, self._said.dtype), call) for library in libraries)


def _as_int64(array: Any) -> Any:
    """Where JAX has no int64, each number as two of int32, the low half first: in memory that is the same."""
    if jax.config.jax_enable_x64:
        return array.astype(jnp.int64)
    low = array.astype(jnp.int32)
    return jnp.stack([low, low >> numpy.int32(31)], -1)
