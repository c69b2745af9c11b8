# SPDX-License-Identifier: Apache-2.0
"""One rank's part of a measurement. All ranks do the same; what is said is of the slowest, or of the one that takes most memory."""

import torch
import torch.distributed as dist
from tigon_training import collectives
from tigon_training.marks import between, mark
from tigon_training.variants import Unavailable

from . import exact
from .losses import LOSSES

WARM_UP = 3  # steps that are not timed
SPREAD = 0.02  # of the weights


class Head:
    """Inputs of a case on this rank. The first ranks have a class more where classes do not divide."""

    def __init__(self, case, device, seed):
        rank, ranks = dist.get_rank(), dist.get_world_size()
        bounds = [r * (case.classes // ranks) + min(r, case.classes % ranks) for r in range(ranks + 1)]
        self.first, self.classes = bounds[rank], case.classes
        of_all, of_rank = (torch.Generator(device).manual_seed(s) for s in (seed, seed + 1 + rank))
        self.x = torch.empty(case.tokens, case.hidden, dtype=torch.bfloat16, device=device).normal_(generator=of_all).requires_grad_()
        self.target = torch.randint(case.classes, (case.tokens,), device=device, generator=of_all)
        shape = bounds[rank + 1] - self.first, case.hidden
        self.w = torch.empty(shape, dtype=torch.bfloat16, device=device).normal_(0.0, SPREAD, generator=of_rank).requires_grad_()

    def step(self, way):
        """Forward and backward; the loss, with gradients in x and w."""
        self.x.grad = self.w.grad = None
        return way(self.x, self.w, self.target, self.first, self.classes)

    def products(self):
        """The three products that no way can do without."""
        logits = self.x.detach() @ self.w.detach().T
        return logits @ self.w.detach(), logits.T @ self.x.detach()


def measure(case, names, rounds, steps, seed, device):
    """Yields (name, number of the round, what was measured) of each way in turn, then of the products alone as 'products'."""
    head = Head(case, device, seed)
    want = exact.gradients(head.x, head.w, head.target, head.first)
    alone, failed = [], set()
    for number in range(rounds):
        for name in names:
            if name in failed:
                continue
            found = _tried(head, LOSSES[name], steps, want)
            if found["verdict"] != "passed":
                failed.add(name)
            yield name, number, found
        alone += _times(head.products, steps, device)
    yield "products", 0, {"seconds_s": alone}


def _tried(head, way, steps, want):
    """What is measured of a way, or why it is not; the same on all ranks."""
    found = {"verdict": "passed", "reason": ""}
    try:
        found.update(_measured(head, way, steps, want))
    except Unavailable as error:
        found = {"verdict": "unsupported", "reason": str(error)}
    except torch.OutOfMemoryError as error:
        found = {"verdict": "oom", "reason": str(error).partition(". ")[0]}
    head.x.grad = head.w.grad = None
    told = [None] * dist.get_world_size()
    dist.all_gather_object(told, found)
    return next((one for one in told if one["verdict"] != "passed"), None) or _merged(told)


def _measured(head, way, steps, want):
    head.step(way)
    on_gpu = head.x.is_cuda
    loss = head.step(way)
    errors = {"loss_error": exact.error(loss, want["loss"]), "dx_error": exact.error(head.x.grad, want["dx"]),
              "dw_error": exact.error(head.w.grad, want["dw"])}
    head.x.grad = head.w.grad = None
    before = torch.cuda.memory_allocated() if on_gpu else 0
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    seconds = _times(lambda: head.step(way), steps, head.x.device)
    peak = torch.cuda.max_memory_allocated() - before if on_gpu else None
    return {**errors, "seconds_s": seconds, "peak_bytes": peak, **(_collectives(head, way) if on_gpu else {})}


def _times(work, steps, device):
    """Of steps one behind the other."""
    on_gpu, marks = device.type == "cuda", []
    for _ in range(WARM_UP):
        work()
    dist.barrier()
    for _ in range(steps):
        marks.append(mark(on_gpu))
        work()
    return between([*marks, mark(on_gpu)], on_gpu)


def _collectives(head, way):
    """Of a step that all ranks begin together, behind one that starts the profiler."""
    with torch.profiler.profile(schedule=torch.profiler.schedule(wait=0, warmup=1, active=1, repeat=1)) as profiler:
        for _ in range(2):
            head.step(way)
            dist.barrier()
            torch.cuda.synchronize()
            profiler.step()
    return collectives.times(profiler.events())


def _merged(told):
    """Times of the slowest rank, step by step; memory and errors of the rank with the most."""
    merged = {**told[0], "seconds_s": [max(of_step) for of_step in zip(*(one["seconds_s"] for one in told))]}
    for key in ("loss_error", "dx_error", "dw_error", "peak_bytes"):
        merged[key] = max((one[key] for one in told if one[key] is not None), default=None)
    return merged
