# SPDX-License-Identifier: Apache-2.0
"""torch's operators torch.ops.tigon.*: loads them, and says how their arguments and results match the library's passes."""
import functools
from typing import Any

from . import _native
from ._describe import Pass

try:
    import torch
except ImportError as error:
    raise ImportError("tigon.ops needs torch 2.10 or later; without torch, tigon.run takes NumPy arrays") from error

DTYPES = {"f64": torch.float64, "f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16, "i64": torch.int64,
          "i32": torch.int32, "u8": torch.uint8}
NAMES = {torch.float32: "f32", torch.bfloat16: "bf16", torch.float16: "f16"}


def _load() -> None:
    import ctypes

    path = _native.folder() / "libtigon_torch.so"
    if not path.is_file():
        raise ImportError("this tigon was built where there was no torch 2.10 or later; install torch, then tigon again: "
                          "pip install --force-reinstall .")
    if hasattr(torch.ops.tigon, "rms_norm_forward"):
        raise ImportError(f"another copy of tigon is loaded, whose operators are torch.ops.tigon; {path} can only take their place in a new process")
    torch.ops.load_library(str(path))  # type: ignore[no-untyped-call]
    error = ctypes.CDLL(str(path)).tigon_torch_error
    error.restype = ctypes.c_char_p
    if error():
        raise ImportError(f"{path}: {error().decode()}")


_load()


class Operator:
    """torch.ops.tigon.<op>_<pass> and what the pass says of itself, the same for all dtypes but for their names."""

    def __init__(self, name: str):
        self.name = name
        self.said = pass_of(name)
        self.overload: Any = getattr(torch.ops.tigon, name.replace(".", "_")).default
        self.qualified_name = "tigon::" + name.replace(".", "_")
        self.defaults = tuple(option.number(option.default) for option in self.said.options) + ((0,) if self.said.wanted else ())
        self.arguments = self.said.argument_places
        self.results = self.said.result_places

    def fill(self, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """All arguments: the dispatcher takes trailing ones away that have their defaults."""
        given = len(arguments) - len(self.arguments)
        if given < 0:
            return (*arguments, *[None] * -given, *self.defaults)
        return (*arguments, *self.defaults[given:])

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        """Its results, without autograd: always a tuple."""
        with torch._C._AutoDispatchBelowAutograd():
            made = self.overload(*arguments)
        return made if isinstance(made, tuple) else (made,)


def pass_of(name: str, dtype: str = "f32") -> Pass:
    """What the pass says, for activations of a dtype."""
    return _native.host().describe(name, dtype)


@functools.cache
def operator(name: str) -> Operator:
    """The operator of a pass, e.g. "rms_norm.forward"."""
    return Operator(name)


def is_of_activations(said: Pass, name: str) -> bool:
    """Whether a tensor has the dtype of the activations, whatever that is."""
    return pass_of(said.name, "bf16").tensors[said.index[name]].dtype == "bf16"
