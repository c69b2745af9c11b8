# SPDX-License-Identifier: Apache-2.0
"""A Python function for every op: arguments and options by name, choices by name, results as tensors. Knows no op."""
import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from . import _native
from ._docs import docstring, signature
from ._register import FUNCTIONS
from ._torch import operator, pass_of


class Function:
    """An op's forward pass with gradients."""

    def __init__(self, op: str):
        self.op = op
        self.operator = operator(f"{op}.forward")
        said = self.operator.said
        self.extras = tuple(said.wanted)
        self._options = {o.name: (i, o) for i, o in enumerate(said.options)}
        self._visible = [self.operator.results[name] for name in said.visible]
        self._autograd: Any = FUNCTIONS.get(op)
        self._autocast_is_on = torch._C._is_any_autocast_enabled

    def __call__(self, tensors: Sequence[Any], options: dict[str, Any], extras: Sequence[str] = ()) -> tuple[torch.Tensor, ...]:
        """Its visible results and the extras."""
        values: list[Any] = list(self.operator.defaults)
        for name, value in options.items():
            if name not in self._options:
                raise TypeError(f"{self.op} has no option {name}; it has {', '.join(self._options)}")
            place, option = self._options[name]
            values[place] = option.number(value)
        for name in extras:
            if name not in self.extras:
                raise TypeError(f"{self.op} has no extra {name}; it has {', '.join(self.extras) or 'none'}")
            values[-1] |= self.operator.said.wanted[name]
        results = self._run((*tensors, *values))
        return tuple(results[i] for i in (*self._visible, *(self.operator.results[name] for name in extras)))

    def _run(self, arguments: tuple[Any, ...]) -> tuple[torch.Tensor, ...]:
        """The operator; past the dispatcher's Python where nothing but autograd would be done there."""
        if torch.compiler.is_compiling() or self._autocast_is_on():
            made = self.operator.overload(*arguments)
            return made if isinstance(made, tuple) else (made,)
        if self._autograd is not None and torch.is_grad_enabled() and torch._C._any_requires_grad(*arguments):
            made = self._autograd.apply(*arguments)
            return made if isinstance(made, tuple) else (made,)
        return self.operator(*arguments)


# All ops, made at once: torch.compile can look into a dict.
OPS = {name.removesuffix(".forward"): Function(name.removesuffix(".forward"))
       for name in _native.host().names if name.endswith(".forward")}


def described(op: str) -> str:
    """The docstring of an op."""
    return docstring(pass_of(f"{op}.forward", "bf16"))


@functools.cache
def generic(op: str, module: str) -> Callable[..., Any]:
    """op(tensors..., options..., extras=()) as the library describes it, for a module; one result is no tuple. KeyError: there is no such op."""
    forward = OPS[op]
    said = forward.operator.said
    takes = signature(said)

    def call(*args: Any, **kwargs: Any) -> Any:
        given = takes.bind(*args, **kwargs).arguments
        extras = given.pop("extras", ())
        tensors = [given.pop(t.name, None) for t in said.arguments]
        results = forward(tensors, given, extras)
        return results if len(results) > 1 else results[0]

    call.__name__ = call.__qualname__ = op
    call.__module__, call.__doc__ = module, described(op)
    call.__signature__ = takes  # type: ignore[attr-defined]
    return call
