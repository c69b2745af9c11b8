# SPDX-License-Identifier: Apache-2.0
"""Where a process stands among the ranks that train one model."""
import dataclasses
import json

from .variants import Unavailable


@dataclasses.dataclass(frozen=True)
class Place:
    """A rank of so many, each with a batch of its own."""
    rank: int = 0
    ranks: int = 1
    layout: str = ""  # who has what of the model; '': it is whole
    meeting: str = ""  # the file in which the ranks find each other

    def __str__(self):
        return json.dumps(dataclasses.asdict(self))

    def take_device(self):
        """Before anything asks for the GPU that torch uses."""
        import torch

        if self.rank < torch.cuda.device_count():
            torch.cuda.set_device(self.rank)

    def join(self):
        """Meets the other ranks, if it has not yet. Unavailable: they have too few GPUs."""
        import torch
        from torch import distributed

        gpus = torch.cuda.device_count()
        if 0 < gpus < self.ranks:
            raise Unavailable(f"{self.ranks} ranks need a GPU each; there {'is' if gpus == 1 else 'are'} {gpus}")
        if not distributed.is_initialized():
            distributed.init_process_group("nccl" if gpus else "gloo", init_method=f"file://{self.meeting}", rank=self.rank, world_size=self.ranks,
                                           device_id=torch.device("cuda", self.rank) if gpus else None)

    def leave(self):
        """Leaves the others, if it met them."""
        from torch import distributed

        if distributed.is_initialized():
            distributed.destroy_process_group()


ALONE = Place()
