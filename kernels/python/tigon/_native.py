# SPDX-License-Identifier: Apache-2.0
"""The library of kernels by ctypes: the functions of tigon.h. Needs neither torch nor NumPy."""
import ctypes
import functools
import json
import os
import pathlib
from typing import Any

from . import _describe

ABI = 1
MAX_RANK = 8
DTYPES = ("f64", "f32", "bf16", "f16", "i64", "i32", "u8")


class Tensor(ctypes.Structure):
    """tigon_tensor"""
    _fields_ = [("data", ctypes.c_void_p), ("sizes", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("dtype", ctypes.c_int32), ("rank", ctypes.c_int32)]


class Option(ctypes.Structure):
    """tigon_option"""
    _fields_ = [("index", ctypes.c_int32), ("reserved", ctypes.c_int32), ("value", ctypes.c_double)]


class Call(ctypes.Structure):
    """tigon_call"""
    _fields_ = [("tensors", ctypes.POINTER(Tensor)), ("options", ctypes.POINTER(Option)), ("scratch", ctypes.c_void_p),
                ("scratch_bytes", ctypes.c_size_t), ("tensor_count", ctypes.c_int32), ("option_count", ctypes.c_int32)]


class Status(ctypes.Structure):
    """tigon_status"""
    _fields_ = [("code", ctypes.c_int32), ("message", ctypes.c_char_p)]


class Op(ctypes.Structure):
    """The first members of tigon_op"""
    _fields_ = [("abi", ctypes.c_uint32), ("dtype", ctypes.c_int32), ("device", ctypes.c_int32), ("reserved", ctypes.c_int32),
                ("name", ctypes.c_char_p)]


OpPointer = ctypes.POINTER(Op)


class Library:
    """A library of kernels and the ops in it."""

    def __init__(self, path: pathlib.Path):
        """Loads it. OSError: it cannot be loaded. ImportError: it is of another ABI than this package."""
        self._c = ctypes.CDLL(str(path))
        call = ctypes.POINTER(Call)
        for name, result, arguments in (
                ("tigon_op_at", OpPointer, [ctypes.c_int32]),
                ("tigon_workspace", ctypes.c_size_t, [OpPointer, call]),
                ("tigon_run", Status, [OpPointer, call, ctypes.c_void_p]),
                ("tigon_describe", ctypes.c_char_p, [OpPointer]),
                ("tigon_shape", Status, [OpPointer, call, ctypes.c_int32, ctypes.POINTER(ctypes.c_int64), ctypes.POINTER(ctypes.c_int32)]),
                ("tigon_build_info", ctypes.c_char_p, [])):
            function = getattr(self._c, name)
            function.restype, function.argtypes = result, arguments
        self.build_info: dict[str, Any] = json.loads(self._c.tigon_build_info())
        if self.build_info["abi"] != ABI:
            raise ImportError(f"{path} has ABI {self.build_info['abi']}, but this package speaks ABI {ABI}: install both from one tree")
        self._described: dict[tuple[str, str], _describe.Pass] = {}
        self._ops = {(op.contents.name.decode(), DTYPES[op.contents.dtype]): op for op in self._list()}

    def _list(self) -> list[Any]:
        found, index = [], 0
        while op := self._c.tigon_op_at(index):
            found.append(op)
            index += 1
        return found

    @property
    def names(self) -> list[str]:
        """All passes, e.g. "rms_norm.forward"."""
        return list(dict.fromkeys(name for name, _ in self._ops))

    def op(self, name: str, dtype: str) -> Any:
        """The op of this name for activations of this dtype. LookupError: there is none."""
        if (name, dtype) in self._ops:
            return self._ops[name, dtype]
        dtypes = [d for n, d in self._ops if n == name]
        if dtypes:
            raise LookupError(f"{name} has no kernel for {dtype}, only for {', '.join(dtypes)}")
        raise LookupError(f"no op is called {name}; there are {', '.join(self.names)}")

    def describe(self, name: str, dtype: str) -> _describe.Pass:
        """What the op of this name and dtype takes and gives. LookupError: there is none."""
        if (name, dtype) not in self._described:
            self._described[name, dtype] = _describe.parse(self._c.tigon_describe(self.op(name, dtype)).decode())
        return self._described[name, dtype]

    def workspace(self, op: Any, call: Call) -> int:
        """Bytes of scratch that the call needs."""
        return int(self._c.tigon_workspace(op, ctypes.byref(call)))

    def run(self, op: Any, call: Call, stream: int | None = None) -> None:
        """On the host, or on a stream of the current GPU (None: the default one). RuntimeError with the library's sentence: the call is wrong."""
        self._check(self._c.tigon_run(op, ctypes.byref(call), stream))

    def shape(self, op: Any, call: Call, tensor: int) -> list[int]:
        """The sizes of a tensor beside the others of a call. RuntimeError: the call does not say."""
        sizes, rank = (ctypes.c_int64 * MAX_RANK)(), ctypes.c_int32()
        self._check(self._c.tigon_shape(op, ctypes.byref(call), tensor, sizes, ctypes.byref(rank)))
        return list(sizes[:rank.value])

    @staticmethod
    def _check(status: Status) -> None:
        if status.code:
            raise RuntimeError(status.message.decode())


def folder() -> pathlib.Path:
    """Where the libraries lie: in the package, or where TIGON_PYTHON_LIBRARIES says."""
    return pathlib.Path(os.environ.get("TIGON_PYTHON_LIBRARIES") or pathlib.Path(__file__).parent / "lib")


@functools.cache
def host() -> Library:
    """The kernels for host memory. ImportError: they are not there."""
    path = folder() / "libtigon-host.so"
    if not path.is_file():
        raise ImportError(f"{path} is missing: install the package with pip, or name the libraries' folder in TIGON_PYTHON_LIBRARIES")
    return Library(path)


@functools.cache
def cuda() -> Library | None:
    """The kernels for the memory of GPUs; None where the package was built without nvcc."""
    path = folder() / "libtigon.so"
    return Library(path) if path.is_file() else None


def build_info() -> dict[str, Any]:
    """What this package was built from and for.

    Returns {"version", "abi", "host": what libtigon-host says of itself, "cuda": the same of libtigon or None where the
    package was built without nvcc, "torch": whether it has torch's operators}. Needs no GPU.
    """
    of_host, of_cuda = host().build_info, cuda()
    return {"version": of_host["version"], "abi": of_host["abi"], "host": of_host, "cuda": of_cuda.build_info if of_cuda else None,
            "torch": (folder() / "libtigon_torch.so").is_file()}
