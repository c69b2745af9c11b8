# SPDX-License-Identifier: Apache-2.0
"""A module gets another forward, or another method, and gets its own back. Its class is swapped for a subclass with the same name, so
parameters, hooks, copies, isinstance and what is saved stay as they were."""
import functools
from collections.abc import Callable
from typing import Any, cast

from torch import nn

STATE = "_tigon"


@functools.cache
def _subclass(original: Any, name: str, method: Callable[..., Any], call: Callable[..., Any] | None) -> Any:
    """One for all modules of a class: torch.compile then sees one class, too."""
    members: dict[str, Any] = {name: method, "__module__": original.__module__, "__doc__": original.__doc__,
                               "__qualname__": original.__qualname__}
    if call is not None:
        members["__call__"] = call
    return type(original.__name__, (original,), members)


def become(module: nn.Module, method: Callable[..., Any], state: Any, call: Callable[..., Any] | None = None,
           name: str = "forward") -> None:
    """Gives a module another method, in place.

    method: takes the module and what the method of this name takes; it finds the module's own class by original(module).
    state: what the method needs to know; it finds it by state_of(module).
    call: in place of nn.Module.__call__, which runs the hooks.
    """
    original = type(module)
    module.__class__ = _subclass(cast(Any, original), name, method, call)
    module.__dict__[STATE] = (original, state, type(module))


def is_changed(module: nn.Module) -> bool:
    """Whether become() changed the module."""
    return STATE in module.__dict__


def original(module: nn.Module) -> type[nn.Module]:
    """The class that a changed module had."""
    found: type[nn.Module] = module.__dict__[STATE][0]
    return found


def state_of(module: nn.Module) -> Any:
    """The state that become() was given."""
    return module.__dict__[STATE][1]


def restore(module: nn.Module) -> None:
    """Gives a changed module its own class back; what another tool, as FSDP2, made of that class since stays."""
    own, _, changed = module.__dict__.pop(STATE)
    module.__class__ = _with_base(type(module), changed, own)


def _with_base(cls: Any, changed: Any, own: Any) -> Any:
    """A class with `own` where it was made on top of `changed`."""
    if cls is changed:
        return own
    bases = tuple(_with_base(b, changed, own) if issubclass(b, changed) else b for b in cls.__bases__)
    return cls if bases == cls.__bases__ else _rebased(cls, bases)


@functools.cache
def _rebased(cls: Any, bases: tuple[Any, ...]) -> Any:
    """One for all modules of a class."""
    return type(cls.__name__, bases, {name: value for name, value in vars(cls).items() if name not in ("__dict__", "__weakref__")})
