# SPDX-License-Identifier: Apache-2.0
"""Registers fake kernels, autograd and autocast of all operators, when torch's side is loaded. Knows no op."""
from typing import Any

import torch

from . import _native
from ._autograd import autocast_kernel, autograd_kernel, function_of
from ._fake import Fake
from ._gradients import ops_with_gradients
from ._torch import operator

_library: Any = torch.library.Library("tigon", "IMPL")  # type: ignore[no-untyped-call]
FUNCTIONS: dict[str, type[torch.autograd.Function]] = {}  # by op


def _register() -> None:
    for name in _native.host().names:
        torch.library.register_fake(operator(name).qualified_name, Fake(operator(name)))
    for op in ops_with_gradients():
        forward = operator(f"{op}.forward")
        FUNCTIONS[op] = function_of(op)
        _library.impl(forward.overload, autograd_kernel(forward, FUNCTIONS[op]), "Autograd")
        for device in ("cpu", "cuda"):
            _library.impl(forward.overload, autocast_kernel(forward, device), f"Autocast{device.upper()}")


_register()
