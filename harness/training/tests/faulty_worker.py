# SPDX-License-Identifier: Apache-2.0
"""A worker whose rank 1 runs out of memory in the second step of a batch of 3, while the other ranks wait for it: python3 -m faulty_worker."""
import sys

import torch
from tigon_training import trained, worker

step_of = trained.Trained._step


def faulty_step(self, optimizer, round_number, step):
    if (self.place.rank, self.case.batch, step) == (1, 3, 1):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1 PiB.")
    return step_of(self, optimizer, round_number, step)


if __name__ == "__main__":
    trained.Trained._step = faulty_step
    worker.main(*sys.argv[1:])
