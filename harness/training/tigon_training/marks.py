# SPDX-License-Identifier: Apache-2.0
"""Points in time, and the seconds between them."""
import time

import torch


def mark(on_gpu):
    """A point in time: of the GPU's stream, so the processor may run ahead as in any training."""
    if not on_gpu:
        return time.perf_counter()
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


def between(marks, on_gpu):
    """Seconds from each to the next."""
    if on_gpu:
        torch.cuda.synchronize()
        return [a.elapsed_time(b) / 1e3 for a, b in zip(marks, marks[1:])]
    return [b - a for a, b in zip(marks, marks[1:])]
