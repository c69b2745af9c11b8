# SPDX-License-Identifier: Apache-2.0
"""Processes on the CPU that are a process group, for tests of what ranks do together."""
import pathlib
import tempfile

import torch
import torch.distributed as dist


def _work(rank, ranks, folder, functions):
    """One of the processes."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=ranks)
    try:
        for function in functions:
            function()
    finally:
        dist.destroy_process_group()


def is_there():
    return dist.is_available() and dist.is_gloo_available()


def run_in_all(ranks, *functions):
    """Calls the functions in each process; fails with the traceback of the process that failed."""
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(_work, (ranks, pathlib.Path(folder), functions), nprocs=ranks)
