# SPDX-License-Identifier: Apache-2.0
"""What torch's tensor parallelism gives a loss over ranks: DTensors whose classes lie in shards."""
from typing import Any

import torch.distributed as dist
from torch import Tensor


def is_dtensor(tensor: Any) -> bool:
    """Whether it is a DTensor; False where torch has none."""
    if not dist.is_available():
        return False
    from torch.distributed.tensor import DTensor

    return isinstance(tensor, DTensor)


def whole(name: str, what: str, tensor: Any) -> Any:
    """What every rank has all of, as a tensor. ValueError: a DTensor in shards."""
    if not is_dtensor(tensor):
        return tensor
    if not all(placement.is_replicate() for placement in tensor.placements):
        raise ValueError(f"{name}: {what} has placements {tensor.placements}, but every rank must have all of it (Replicate)")
    return tensor.to_local()


def shard(name: str, what: str, tensor: Any, axis: int) -> Tensor:
    """This rank's part of a DTensor whose classes lie along an axis. ValueError: it is not in such shards, on a mesh of one axis."""
    axis %= tensor.ndim
    if tensor.device_mesh.ndim != 1 or not tensor.placements[0].is_shard(axis):
        raise ValueError(f"{name}: {what} has placements {tensor.placements} on a mesh of {tensor.device_mesh.ndim} axes, but must have "
                         f"(Shard(dim={axis}),) on one of 1")
    local: Tensor = tensor.to_local()
    return local


def place(tensor: Any, axis: int) -> tuple[Any, int, int]:
    """(group, first class, classes) of a DTensor in shards, which are torch.chunk's: as wide as each other but for the last ones."""
    group, classes = tensor.device_mesh.get_group(), tensor.shape[axis]
    width = -(-classes // dist.get_world_size(group))
    return group, min(dist.get_rank(group) * width, classes), classes
