# SPDX-License-Identifier: Apache-2.0
"""A call in shared memory, in a worker in Python; in C++ it is shared_call.h.

A call has no names: they come from the description of its op, {"tensors": [{"name", "role", ...}], "options": [{"name",
"default", "choices"}]}. Tensors are numpy's, in float32 where elements have 16 bits, or torch's.
"""
DTYPES = ("f64", "f32", "bf16", "f16", "i64", "i32", "u8")
NUMPY = {"f64": "f8", "f32": "f4", "bf16": "u2", "f16": "f2", "i64": "i8", "i32": "i4", "u8": "u1"}
TORCH = {"f64": "float64", "f32": "float32", "bf16": "bfloat16", "f16": "float16", "i64": "int64", "i32": "int32", "u8": "uint8"}


class Unsupported(Exception):
    """Somebody's function does not do this call: why, in one line."""


class WrongShape(ValueError):
    """A result that does not fit its tensor."""


def named(call, op):
    """(tensors, options) of a call by name. A tensor has what the description says of it, and no address where it is left out; an
    option that is not in the call has its default."""
    tensors = {said["name"]: {**said, "at": None, **(t or {})} for said, t in zip(op["tensors"], call["tensors"])}
    options = {said["name"]: said["default"] for said in op["options"]}
    for given in call["options"]:
        said = op["options"][given["index"]]
        options[said["name"]] = said["choices"][int(given["value"])] if said["choices"] else given["value"]
    return tensors, options


class NumpyTensors:
    """In host memory."""

    def __init__(self):
        import numpy
        self.numpy, self.memory = numpy, None

    def map(self, memory):
        self.memory = memory

    def view(self, t):
        kind = self.numpy.dtype(NUMPY[DTYPES[t["dtype"]]])
        return self.numpy.ndarray(t["sizes"], kind, self.memory, t["at"], [s * kind.itemsize for s in t["strides"]])

    def given(self, t):
        """What a function gets of a tensor."""
        name, view = DTYPES[t["dtype"]], self.view(t)
        if name == "bf16":
            return (view.astype("u4") << 16).view("f4")
        return view.astype("f4") if name == "f16" else view

    def take(self, t, value):
        """Rounds a result into its tensor. Raises WrongShape."""
        np, view = self.numpy, self.view(t)
        value = np.asarray(value)
        require_shape(t, value)
        if DTYPES[t["dtype"]] != "bf16":
            view[...] = value
            return
        bits = np.ascontiguousarray(value, "f4").view("u4")
        rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("u2")
        view[...] = np.where(np.isnan(value), np.uint16(0x7FFF), rounded)


class TorchTensors:
    """In host memory, or in `memory` of the same layout elsewhere."""

    def __init__(self, torch):
        self.torch, self.memory = torch, None

    def map(self, memory):
        self.memory = self.torch.frombuffer(memory, dtype=self.torch.uint8)

    def kind(self, t):
        return getattr(self.torch, TORCH[DTYPES[t["dtype"]]])

    def view(self, t):
        kind = self.kind(t)
        size = self.torch.empty((), dtype=kind).element_size()  # torch before 2.1 has no kind.itemsize
        extent = 0 if 0 in t["sizes"] else sum((n - 1) * s for n, s in zip(t["sizes"], t["strides"])) + 1
        if t["at"] % size:
            raise Unsupported("an address that is no multiple of the element's size")
        return self.memory[t["at"]:t["at"] + extent * size].view(kind).as_strided(t["sizes"], t["strides"])

    def given(self, t):
        """What a function gets of a tensor."""
        return self.view(t)

    def take(self, t, value):
        """Rounds a result into its tensor. Raises WrongShape."""
        view = self.view(t)
        require_shape(t, value)
        if value.data_ptr() != view.data_ptr():
            view.copy_(value)


def require_shape(t, value):
    if list(value.shape) != list(t["sizes"]):
        raise WrongShape(f"{t['name']} has the shape {list(value.shape)}, not {t['sizes']}")
