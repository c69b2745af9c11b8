# SPDX-License-Identifier: Apache-2.0
"""tigon.patch(recompute="cheap"): what an op makes in one pass over memory is not kept for what takes it, but made again in backward.

What the op itself keeps for its backward is enough to make its result again, so a linear layer behind it need not keep that
result. In eager mode hooks for saved tensors keep, in place of a result, how it is made; results are told by an attribute of
theirs, which is there as long as they are. A made one is shared by all that asked for it, and goes with the last of these.
With torch.compile the op is marked, and the compiler does the same.
"""
import dataclasses
import threading
import weakref
from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from .become import is_changed, state_of
from .plain import without_autocast
from .report import NotKept

_MADE = "_tigon_made"  # an attribute of a result, and an entry in the metadata of its node


class _Made:
    """An op's call, whose results its inputs make again."""

    def __init__(self, name: str, function: Callable[..., Any], inputs: tuple[Tensor | None, ...], results: tuple[Tensor, ...]):
        self.name, self._function = name, function
        self.moved = sum(t.numel() * t.element_size() for t in (*inputs, *results) if t is not None)  # bytes, to make them again
        self._inputs = [None if t is None else _part_of(t) or t.detach() for t in inputs]
        self._versions = [None if t is None else t._version for t in inputs]
        self._again: tuple[Tensor, ...] | None = None
        self.counted: set[int] = set()

    def again(self) -> tuple[Tensor, ...]:
        """The results. RuntimeError: an input has been changed since."""
        if self._again is None:
            given = [t.tensor() if isinstance(t, _Part) else t for t in self._inputs]
            if any(isinstance(t, Tensor) and t._version != v for t, v in zip(self._inputs, self._versions)):
                raise RuntimeError(f"{self.name} cannot be made again for backward: what it was made of was changed in place")
            first = cast(Tensor, given[0])
            with torch.no_grad(), without_autocast(first):
                self._again = _tuple(self._function(*given))
        return self._again


@dataclasses.dataclass(frozen=True)
class _Part:
    """A view of a result, perhaps in another dtype, which is what a layer would keep."""
    made: _Made
    index: int
    is_cast: bool
    dtype: torch.dtype
    size: torch.Size
    stride: tuple[int, ...]
    offset: int

    def tensor(self) -> Tensor:
        """The view, made again."""
        whole = self.made.again()[self.index].to(self.dtype)
        return whole.as_strided(self.size, self.stride, self.offset)


class _Active(threading.local):
    """How deep a thread is in modules whose saved tensors go through our hooks."""
    depth = 0
    hooks: Any = None


_active = _Active()


def made(name: str, function: Callable[..., Any], *inputs: Tensor | None) -> Any:
    """function(*inputs), whose results are not kept for backward where `inputs`, which are kept anyway, make them again.

    name: of the module. function: one of tigon.ops with its options.
    """
    if torch.compiler.is_compiling():
        return checkpoint(function, *inputs, use_reentrant=False) if torch.is_grad_enabled() else function(*inputs)
    result = function(*inputs)
    if _active.depth and torch.is_grad_enabled():
        _note(_Made(name, function, inputs, _tuple(result)), inputs, _tuple(result))
    return result


def known_as(*tensors: Tensor) -> str | None:
    """The name of the module that made the first, if each of them can be made again."""
    if torch.compiler.is_compiling() or not _active.depth:
        return None
    parts = [_part_of(t) for t in tensors]
    return parts[0].made.name if parts[0] is not None and None not in parts else None


def _note(call: _Made, inputs: tuple[Tensor | None, ...], results: tuple[Tensor, ...]) -> None:
    dtype = cast(Tensor, inputs[0]).dtype
    for index, result in enumerate(results):
        whole = result if result._base is None else result._base
        node: Any = whole.grad_fn
        if result.dtype == dtype and node is not None:  # else autocast changed what goes in
            whole.__dict__[_MADE] = call, index, whole._version
            node.metadata[_MADE, whole.output_nr] = weakref.ref(call), index


def _part_of(t: Tensor) -> _Part | None:
    """What is kept in place of a tensor; None where it is no result, or was changed."""
    whole = t if t._base is None else t._base
    call, index, version = whole.__dict__.get(_MADE) or (*_before_cast(whole), 0)
    if call is None or whole._version != version or t.dtype != whole.dtype:
        return None
    return _Part(call, index, _MADE not in whole.__dict__, t.dtype, t.size(), t.stride(), cast(int, t.storage_offset()))


def _before_cast(t: Tensor) -> tuple[_Made | None, int]:
    """The call whose result autocast gave another dtype."""
    cast_node: Any = t.grad_fn
    if cast_node is None or cast_node.name() != "ToCopyBackward0":
        return None, 0
    node, output = cast_node.next_functions[0]
    found = None if node is None else node.metadata.get((_MADE, output))
    return (None, 0) if found is None else (found[0](), found[1])


def _tuple(results: Any) -> tuple[Tensor, ...]:
    return results if isinstance(results, tuple) else (results,)


class _Hooks:
    """Hooks for saved tensors, and what was not kept; all else goes to the hooks that were there before."""

    def __init__(self, not_kept: NotKept):
        self._not_kept = not_kept
        outer = torch._C._autograd._top_saved_tensors_default_hooks(False)
        self._pack, self._unpack = outer or (lambda t: t, lambda kept: kept)
        self.enter = torch.autograd.graph.saved_tensors_hooks(self._kept, self._tensor)

    def _kept(self, t: Tensor) -> Any:
        part = _part_of(t)
        if part is None:
            return self._pack(t)
        if part.is_cast or part.index not in part.made.counted:  # each layer has a cast result for itself
            if not part.made.counted:
                self._not_kept.moved += part.made.moved
                self._not_kept.device = t.device
            part.made.counted.add(part.index)
            self._not_kept[part.made.name] = self._not_kept.get(part.made.name, 0) + t.untyped_storage().nbytes()
        return part

    def _tensor(self, kept: Any) -> Tensor:
        return kept.tensor() if isinstance(kept, _Part) else self._unpack(kept)


class _Enter:
    """Runs before a module's forward."""

    def __init__(self, not_kept: NotKept):
        self.not_kept = not_kept

    def __call__(self, module: nn.Module, given: Any) -> None:
        if torch.compiler.is_compiling():
            return
        _active.depth += 1
        if _active.depth == 1 and torch.is_grad_enabled():
            self.not_kept.clear()
            _active.hooks = _Hooks(self.not_kept)
            _active.hooks.enter.__enter__()


class _Leave:
    """Runs after a module's forward, and where that raised an error."""

    def __call__(self, module: nn.Module, given: Any, result: Any) -> None:
        if torch.compiler.is_compiling() or not _active.depth:
            return
        _active.depth -= 1
        if _active.depth == 0 and _active.hooks is not None:
            _active.hooks.enter.__exit__()
            _active.hooks = None


def watch(model: nn.Module, not_kept: NotKept) -> None:
    """Keeps no results of noted calls in the model's forward. `not_kept`: gets the bytes of the last one by the modules' names.

    Who calls a model's forward, or its body alone, passes by the hooks of the model, so they are on the parts right below it, too.
    """
    for module in (model, *(child for child in model.children() if any(map(_is_made_again, child.modules())))):
        module.register_forward_pre_hook(_Enter(not_kept), prepend=True)
        module.register_forward_hook(_Leave(), always_call=True)


def _is_made_again(module: nn.Module) -> bool:
    return is_changed(module) and getattr(state_of(module), "again", None) is not None


def unwatch(module: nn.Module) -> None:
    """Takes the hooks of watch() away."""
    for hooks in (module._forward_pre_hooks, module._forward_hooks):
        for key in [key for key, hook in hooks.items() if isinstance(hook, (_Enter, _Leave))]:
            del hooks[key]
            module._forward_hooks_always_called.pop(key, None)
