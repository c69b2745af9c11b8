# SPDX-License-Identifier: Apache-2.0
"""tigon.h for ctypes: an op of a library, found and called as a C program would."""
import ctypes

DTYPES = {"f64": (0, 8), "f32": (1, 4), "bf16": (2, 2), "f16": (3, 2), "i64": (4, 8), "i32": (5, 4), "u8": (6, 1)}  # code, bytes
SIZES = ctypes.POINTER(ctypes.c_int64)


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("sizes", SIZES), ("strides", SIZES), ("dtype", ctypes.c_int32), ("rank", ctypes.c_int32)]


class Option(ctypes.Structure):
    _fields_ = [("index", ctypes.c_int32), ("reserved", ctypes.c_int32), ("value", ctypes.c_double)]


class Call(ctypes.Structure):
    _fields_ = [("tensors", ctypes.POINTER(Tensor)), ("options", ctypes.POINTER(Option)), ("scratch", ctypes.c_void_p),
                ("scratch_bytes", ctypes.c_size_t), ("tensor_count", ctypes.c_int32), ("option_count", ctypes.c_int32)]


class Status(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int32), ("message", ctypes.c_char_p)]


class Op(ctypes.Structure):
    pass


OP, CALL = ctypes.POINTER(Op), ctypes.POINTER(Call)
Op._fields_ = [("abi", ctypes.c_uint32), ("dtype", ctypes.c_int32), ("device", ctypes.c_int32), ("reserved", ctypes.c_int32),
               ("name", ctypes.c_char_p), ("implementation", ctypes.c_char_p), ("workspace", ctypes.CFUNCTYPE(ctypes.c_size_t, OP, CALL)),
               ("prepare", ctypes.CFUNCTYPE(Status, OP, CALL)), ("run", ctypes.CFUNCTYPE(Status, OP, CALL, ctypes.c_void_p)),
               ("describe", ctypes.CFUNCTYPE(ctypes.c_char_p, OP)), ("state", ctypes.c_void_p)]


def find(library, name, dtype):
    """The op as a pointer, null where the library has none."""
    library.tigon_find.restype = OP
    library.tigon_find.argtypes = [ctypes.c_char_p, ctypes.c_int32]
    return library.tigon_find(name.encode(), DTYPES[dtype][0])
