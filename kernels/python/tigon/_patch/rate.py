# SPDX-License-Identifier: Apache-2.0
"""How fast a device copies memory, measured once."""
import functools
import time

import torch

_REPEATS = 5


@functools.cache
def copy_rate(device: torch.device) -> float:
    """Bytes read and written per second."""
    count = (256 if device.type == "cuda" else 16) * 2**20  # more than caches hold
    source, target = (torch.zeros(count, dtype=torch.uint8, device=device) for _ in range(2))
    seconds = min(_seconds(source, target) for _ in range(_REPEATS))
    return 2 * count / seconds


def _seconds(source: torch.Tensor, target: torch.Tensor) -> float:
    began = _now(source.device)
    target.copy_(source)
    return max(_now(source.device) - began, 1e-9)


def _now(device: torch.device) -> float:
    """When all work of the device is done: its launches are short beside what is copied."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()
