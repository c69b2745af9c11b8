# SPDX-License-Identifier: Apache-2.0
"""Which tensors Tigon's ops take at once, and which autocast would change."""
import contextlib
from typing import Any

import torch
from torch import Tensor, nn

_DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def only_one(given: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """The argument of a call that has one, by place or by name; None where there are others."""
    both = (*given, *named.values())
    return both[0] if len(both) == 1 else None


def are_usable(x: Any, *others: Tensor | None) -> bool:
    """Whether the ops take these: tensors (none of a subclass, which may be sharded or quantised) of one dtype that has kernels, rows of x."""
    return x.dtype in _DTYPES and x.dim() > 1 and all(t is None or (type(t) in (Tensor, nn.Parameter) and t.dtype == x.dtype) for t in (x, *others))


def without_autocast(x: Tensor) -> contextlib.AbstractContextManager[Any]:
    """Norms do not follow autocast: torch computes them in the dtype of their input."""
    if torch.is_autocast_enabled(x.device.type):
        return torch.autocast(x.device.type, enabled=False)
    return contextlib.nullcontext()
