# SPDX-License-Identifier: Apache-2.0
"""Tigon's fused kernels in Python.

tigon.ops.rms_norm(x, w)                   torch tensors on a CPU or a GPU, with gradients; needs torch
tigon.run("rms_norm.forward", x=x, w=w)    NumPy arrays; needs NumPy
tigon.describe("rms_norm.forward")         formula, tensors and options of an op
tigon.build_info()                         what this package was built for
"""
import importlib
from typing import Any

from ._native import build_info
from ._numpy import describe, run

__all__ = ["build_info", "describe", "ops", "run"]


def __getattr__(name: str) -> Any:
    if name == "ops":
        importlib.import_module("._torch", __name__)  # it says what is missing where there is no torch
        return importlib.import_module(".ops", __name__)
    if name == "__version__":
        return build_info()["version"]
    raise AttributeError(f"module 'tigon' has no attribute {name!r}")
