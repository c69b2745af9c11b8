# SPDX-License-Identifier: Apache-2.0
"""Tigon's fused kernels in Python.

tigon.ops.rms_norm(x, w)                   torch tensors on a CPU or a GPU, with gradients; needs torch
tigon.patch(model)                         a torch model's norms, gated MLPs and loss by these ops; tigon.unpatch(model)
tigon.testing.check(f, op="rms_norm")      Tigon's judge for functions, tigon.testing.verify_model(model) for a patched model
tigon.jax.rms_norm(x, w)                   JAX arrays on a CPU or a GPU, with gradients; needs jax and jax_tvm_ffi
tigon.run("rms_norm.forward", x=x, w=w)    NumPy arrays, needs NumPy; CuPy arrays, needs CuPy
tigon.describe("rms_norm.forward")         formula, tensors and options of an op
tigon.build_info()                         what this package was built for
"""
import importlib
from typing import TYPE_CHECKING, Any

from ._native import build_info
from ._numpy import describe, run

if TYPE_CHECKING:
    from ._patch.model import patch, unpatch

__all__ = ["build_info", "describe", "jax", "layers", "ops", "patch", "run", "testing", "unpatch"]


def __getattr__(name: str) -> Any:
    if name in ("ops", "testing", "layers"):
        importlib.import_module("._torch", __name__)  # it says what is missing where there is no torch
        return importlib.import_module(f".{name}", __name__)
    if name == "jax":
        return importlib.import_module(".jax", __name__)
    if name in ("patch", "unpatch"):
        importlib.import_module("._torch", __name__)
        return getattr(importlib.import_module("._patch.model", __name__), name)
    if name == "__version__":
        return build_info()["version"]
    raise AttributeError(f"module 'tigon' has no attribute {name!r}")
