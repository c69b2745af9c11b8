# SPDX-License-Identifier: Apache-2.0
"""How much of a profiled step NCCL's kernels take, and how much of that nothing else hides."""


def times(events):
    """{collective_s: in NCCL's kernels, exposed_s: the part of it in which no other kernel runs} of what torch's profiler saw."""
    from torch.autograd import DeviceType

    kernels = [event for event in events if event.device_type == DeviceType.CUDA and not event.is_user_annotation]
    theirs = [_span(event) for event in kernels if event.name.startswith("nccl")]
    others = [_span(event) for event in kernels if not event.name.startswith("nccl")]
    return {"collective_s": covered(theirs), "exposed_s": covered(theirs + others) - covered(others)}


def _span(event):
    return event.time_range.start / 1e6, event.time_range.end / 1e6  # from microseconds


def covered(spans):
    """How long at least one of them lasts."""
    total, until = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total
