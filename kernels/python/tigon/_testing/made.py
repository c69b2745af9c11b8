# SPDX-License-Identifier: Apache-2.0
"""A call of somebody's function, and what it made. Imports nothing but torch, so that a process without a judge can use it."""
import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

_LEAD = 16  # elements: so many keep every alignment to 16 bytes


@dataclasses.dataclass(frozen=True)
class Fact:
    """What can be said of a result without its values. `inputs`: those whose memory it lies in."""
    type: str
    dtype: str
    shape: tuple[int, ...]
    device: str
    layout: str
    inputs: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True)
class Made:
    """What a call made: results, gradients and changed inputs by name, and facts of those that are tensors."""
    values: dict[str, Any]
    facts: dict[str, Fact]


def fact(value: Tensor, inputs: Sequence[Any]) -> Fact:
    """The fact of a tensor that a function of these inputs returned."""
    memory = [_memory(leaf) if isinstance(leaf, Tensor) else None for leaf in inputs]
    own = _memory(value)
    return Fact(f"{type(value).__module__}.{type(value).__qualname__}", str(value.dtype), tuple(value.shape), value.device.type,
                str(value.layout), tuple(i for i, place in enumerate(memory) if own is not None and own == place))


def _memory(tensor: Tensor) -> int | None:
    """Where its storage begins; None where it has none."""
    try:
        return tensor.untyped_storage().data_ptr() or None
    except (RuntimeError, NotImplementedError):
        return None


def same_bits(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors of one shape and dtype have the same bytes."""
    flat = [tensor.detach().contiguous().reshape(-1).view(torch.uint8) for tensor in (one, other)]
    return torch.equal(*flat)


def call(function: Callable[..., Any], inputs: Any, upstream: Sequence[Tensor] | None) -> Made:
    """Calls a function on inputs, a sequence, and with upstream gradients asks autograd for those of inputs and parameters."""
    leaves, tree = pytree.tree_flatten(tuple(inputs))
    before = [leaf.detach().clone() if isinstance(leaf, Tensor) else None for leaf in leaves]
    made = function(*pytree.tree_unflatten(leaves, tree))
    results = pytree.tree_leaves(made)
    values = {("result" if len(results) == 1 else f"result {i}"): value for i, value in enumerate(results)}
    facts = {name: fact(value, leaves) for name, value in values.items() if isinstance(value, Tensor)}
    if upstream is not None:
        values |= _gradients(function, results, leaves, upstream)
    for i, (leaf, old) in enumerate(zip(leaves, before)):
        if old is not None and not same_bits(leaf, old):
            values[f"input {i}"] = leaf.detach()
    return Made(values, facts)


def _gradients(function: Callable[..., Any], results: list[Any], leaves: list[Any], upstream: Sequence[Tensor]) -> dict[str, Any]:
    named = {f"input {i}": leaf for i, leaf in enumerate(leaves) if isinstance(leaf, Tensor) and leaf.requires_grad}
    if isinstance(function, nn.Module):
        named |= {f"parameter {n}": p for n, p in function.named_parameters() if p.requires_grad}
    pairs = [(r, u) for r, u in zip([r for r in results if isinstance(r, Tensor) and r.is_floating_point()], upstream) if r.requires_grad]
    if not pairs or not named:
        return {}
    gradients = torch.autograd.grad([r for r, _ in pairs], list(named.values()), [u for _, u in pairs], allow_unused=True)
    return {f"gradient of {name}": gradient for name, gradient in zip(named, gradients)}


def relaid(tensor: Tensor, strides: Sequence[int], lead: int = 0, dtype: torch.dtype | None = None) -> Tensor:
    """Its values, as `dtype` if given, in memory of its own, with these strides and after `lead` elements; what lies between them is no value."""
    span = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, strides)) if tensor.numel() else 0
    memory = torch.full((lead + span,), math.nan if tensor.is_floating_point() else 1, dtype=dtype or tensor.dtype, device=tensor.device)
    with torch.no_grad():
        own = torch.empty(0, dtype=memory.dtype, device=tensor.device)  # no view, which autograd would know
        return own.set_(memory.untyped_storage(), lead, tensor.shape, tuple(strides)).copy_(tensor.detach())


def _is_apart(tensor: Tensor) -> bool:
    """Whether other memory lies between or before its elements, and no two of them share some."""
    if tensor.layout != torch.strided or not tensor.numel():
        return False
    span = 1
    for stride, size in sorted(pair for pair in zip(tensor.stride(), tensor.shape) if pair[1] > 1):
        if stride < span:
            return False
        span += (size - 1) * stride
    return span > tensor.numel() or tensor.storage_offset() % _LEAD > 0


def copied(tensor: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """A copy in memory of its own, with the same strides and alignment; as `dtype` if given."""
    if type(tensor) is Tensor and _is_apart(tensor):
        return relaid(tensor, tensor.stride(), int(tensor.storage_offset()) % _LEAD, dtype)
    return tensor.detach().to(dtype, copy=True)


def copies(inputs: Any, backward: bool) -> tuple[Any, ...]:
    """Inputs in memory of their own, laid out as they are; with backward floating ones ask for gradients."""
    def own(leaf: Any) -> Any:
        if not isinstance(leaf, Tensor):
            return leaf
        return copied(leaf).requires_grad_(backward and leaf.is_floating_point())
    return tuple(pytree.tree_map(own, tuple(inputs)))
