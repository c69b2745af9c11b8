# SPDX-License-Identifier: Apache-2.0
"""What a function of tensors does, operation by operation, to be done again in float64.

The function runs once as it is, in its own dtypes, under a mode that notes each of torch's operations below autograd, so
that gradients, in-place operations and casts are noted, too. The tape does them again with float64 in place of every
floating dtype; what each result was rounded to the first time is kept beside it.
"""
import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.weak import WeakIdKeyDictionary

from .made import copied

_FUSED = ("_softmax", "_log_softmax")  # their last argument casts from 16 bits, which float64 does not need


class Unjudgeable(ValueError):
    """The function cannot be an oracle: why, in one line."""


@dataclasses.dataclass(frozen=True)
class Ref:
    """A tensor of the tape."""
    index: int


class Step(NamedTuple):
    """One operation: `dtypes` are those of its results, `loses` tells whether a copy goes to a smaller dtype."""
    func: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    results: tuple[int | None, ...]
    dtypes: tuple[torch.dtype | None, ...]
    loses: bool


Operation = Callable[[Step, tuple[Any, ...], dict[str, Any]], Any]


class _Notes(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes what runs."""

    def __init__(self, tape: "Tape"):
        super().__init__()  # type: ignore[no-untyped-call]
        self.tape = tape

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Any:
        if torch.Tag.nondeterministic_seeded in func.tags:
            raise Unjudgeable(f"the reference draws random numbers ({func}), so there is no one right result")
        return self.tape.note(func, args, kwargs or {})


class Tape:
    """What a function did, by one run of it."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._index: Any = WeakIdKeyDictionary()
        self._constants: dict[int, Tensor] = {}
        self._count = 0

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        """What runs inside is noted. Attention and recurrent layers run as the operations that they stand for."""
        reduced = torch.backends.cuda.fp16_bf16_reduction_math_sdp_allowed()  # type: ignore[no-untyped-call]
        torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(True)
        try:
            with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH), torch.backends.mkldnn.flags(enabled=False), \
                    torch.backends.cudnn.flags(enabled=False), _Notes(self):
                yield
        finally:
            torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(reduced)

    def note(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Runs an operation and notes it."""
        named_args, named = pytree.tree_map(self._named, (args, kwargs))
        loses = _loses(func, args, kwargs)
        out = func(*args, **kwargs)
        leaves = pytree.tree_leaves(out)
        results = tuple(self.ref(leaf).index if isinstance(leaf, Tensor) else None for leaf in leaves)
        dtypes = tuple(leaf.dtype if isinstance(leaf, Tensor) else None for leaf in leaves)
        self.steps.append(Step(func, named_args, named, results, dtypes, loses))
        return out

    def ref(self, tensor: Tensor) -> Ref:
        """The name of a tensor on the tape; one that is new gets one."""
        if tensor not in self._index:
            self._index[tensor] = self._count
            self._count += 1
        return Ref(self._index[tensor])

    def constant(self, tensor: Tensor) -> Ref:
        """A tensor that was there before: its values are kept."""
        ref = self.ref(tensor)
        with torch.utils._python_dispatch._disable_current_modes():
            self._constants.setdefault(ref.index, copied(tensor, torch.float64 if tensor.is_floating_point() else None))
        return ref

    def has(self, ref: Ref) -> bool:
        """Whether an operation made it or its values are kept."""
        return ref.index in self._constants or any(ref.index in step.results for step in self.steps)

    def _named(self, value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        return Ref(self._index[value]) if value in self._index else self.constant(value)

    def play(self, wanted: Sequence[Ref], operation: Operation) -> list[Tensor]:
        """Does it all again by `operation`, which gets each step with its arguments: the tensors that are wanted."""
        values = {index: copied(tensor) for index, tensor in self._constants.items()}
        for step in self.steps:
            args, kwargs = pytree.tree_map(lambda v: values[v.index] if isinstance(v, Ref) else _wide(v), (step.args, step.kwargs),
                                           is_leaf=lambda v: isinstance(v, Ref))
            if step.func._schema.name.split("::")[1] in _FUSED:
                args = (*args[:-1], False)
            out = operation(step, args, kwargs)
            for index, leaf in zip(step.results, pytree.tree_leaves(out)):
                if index is not None:
                    values[index] = leaf
        return [values[ref.index] for ref in wanted]


def _loses(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether an operation that copies rounds what it copies."""
    name = func._schema.name.split("::")[1]
    if name == "_to_copy":
        source, target = args[0].dtype, kwargs.get("dtype") or args[0].dtype
    elif name == "copy_":
        source, target = args[1].dtype, args[0].dtype
    else:
        return False
    return bool(target.is_floating_point and (not source.is_floating_point or torch.finfo(source).eps < torch.finfo(target).eps
                                              or torch.finfo(source).tiny < torch.finfo(target).tiny))


def _wide(value: Any) -> Any:
    """float64 in place of a floating dtype."""
    return torch.float64 if isinstance(value, torch.dtype) and value.is_floating_point else value
