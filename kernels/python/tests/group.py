# SPDX-License-Identifier: Apache-2.0
"""Processes that are a process group, on the CPU or each on a GPU of its own, for tests of what ranks do together."""
import pathlib
import tempfile
import unittest

import torch
import torch.distributed as dist
from tigon import _native


def is_there(device="cpu"):
    """Whether two ranks can meet on devices of this type."""
    if not dist.is_available():
        return False
    if device == "cpu":
        return dist.is_gloo_available()
    return dist.is_nccl_available() and torch.cuda.device_count() >= 2 and _native.cuda() is not None


on_gpus = unittest.skipUnless(is_there("cuda"), "SKIPPED: torch sees fewer than two GPUs, or the package was built without the library for GPUs")


def sizes(device):
    """How many ranks there are in turn: two and four, but no more than GPUs."""
    return [ranks for ranks in (2, 4) if device == "cpu" or ranks <= torch.cuda.device_count()]


def device():
    """Where the calling rank has its tensors; the CPU outside of a group."""
    on_gpu = dist.is_available() and dist.is_initialized() and dist.get_backend() == "nccl"
    return torch.device("cuda", torch.cuda.current_device()) if on_gpu else torch.device("cpu")


def _join(rank, ranks, folder, device):
    """Makes the calling process a rank of the group."""
    meeting = {"init_method": f"file://{folder}/meeting", "rank": rank, "world_size": ranks}
    if device == "cpu":
        dist.init_process_group("gloo", **meeting)
    else:
        torch.cuda.set_device(rank)
        dist.init_process_group("nccl", device_id=torch.device(device, rank), **meeting)


def _work(rank, ranks, folder, device, functions):
    """One of the processes. Behind an error it leaves the group as it is: with NCCL leaving it would wait for the others."""
    torch.set_num_threads(1)
    _join(rank, ranks, folder, device)
    for function in functions:
        function()
    dist.destroy_process_group()


def run_in_all(ranks, *functions, device="cpu"):
    """Calls the functions in each process; fails with the traceback of the process that failed."""
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(_work, (ranks, pathlib.Path(folder), device, functions), nprocs=ranks)
