# SPDX-License-Identifier: Apache-2.0
"""The processes of the ranks."""
import tempfile

import torch
from tigon_training.place import Place

from .measured import measure


def _work(rank, options, meeting, results):
    """The process of a rank."""
    place = Place(rank, options.ranks, "classes", meeting)
    place.take_device()
    place.join()
    device = torch.device("cuda", rank) if torch.cuda.is_available() else torch.device("cpu")
    for case in options.cases:
        for found in measure(case, options.ways, options.rounds, options.steps, options.seed, device):
            if rank == 0:
                results.put((case, *found))
    if rank == 0:
        results.put(None)
    place.leave()


def measured(options):
    """Yields (case, way, round, what was measured)."""
    context = torch.multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="tigon-heads-") as folder:
        results = context.Queue()
        ranks = torch.multiprocessing.spawn(_work, (options, f"{folder}/meeting", results), nprocs=options.ranks, join=False)
        while True:
            while results.empty():
                ranks.join(timeout=0.1)  # raises what a rank raised
            if (found := results.get()) is None:
                break
            yield found
        while not ranks.join():
            pass
