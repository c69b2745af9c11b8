# SPDX-License-Identifier: Apache-2.0
"""Somebody's function for an op: its arguments by the names of tigon.ops or of the contract, and results that fit."""
import collections
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from .. import ops
from .._torch import pass_of

# Of a flag in tigon.ops, the option and the choice for which it is True.
_FLAGS = {"interleaved": ("pairing", "interleaved")}


class Unsupported(Exception):
    """The function does not do this call: why, in one line."""


class Misfit(Exception):
    """The function's results are none of the op: why, in one line."""


class Function:
    """A function with the arguments and results of an op's forward pass."""

    def __init__(self, function: Callable[..., Any], op: str):
        """TypeError: it has an argument that the op does not have."""
        self.function, self.op, self.forward = function, op, pass_of(f"{op}.forward")
        self.visible = [t.name for t in self.forward.tensors if t.role in ("out", "inout") and not t.optional]
        self.name = getattr(function, "__name__", type(function).__name__).strip("<>")
        self._signature = inspect.signature(function.forward if isinstance(function, nn.Module) else function)
        self._options = {option.name: option for option in self.forward.options}
        self._in_ops = self._names_in_ops()
        self._means = self._meanings()
        self.takes = {*self._means.values(), *(_FLAGS[p][0] for p in self._means if p in _FLAGS)}

    def _names_in_ops(self) -> dict[str, str]:
        """What tigon.ops calls the op's tensors, which has them in the order of the contract."""
        tensors = [t.name for t in self.forward.arguments]
        names = [p for p in inspect.signature(getattr(ops, self.op)).parameters if p not in self._options]
        return {t: t for t in tensors} if set(tensors) <= set(names) else dict(zip(tensors, names))

    def _meanings(self) -> dict[str, str]:
        """For each parameter, the tensor or option of the contract that it takes."""
        known = {**{n: n for n in (*self._options, *self._in_ops)}, **{ours: name for name, ours in self._in_ops.items()}}
        known |= {flag: flag for flag, (option, _) in _FLAGS.items() if option in self._options}
        found: dict[str, str] = {}
        for parameter in self._signature.parameters.values():
            if parameter.kind is parameter.VAR_KEYWORD:
                found |= {self._in_ops.get(n, n): n for n in (*self._in_ops, *self._options) if n not in found.values()}
            elif parameter.name in known:
                found[parameter.name] = known[parameter.name]
            elif parameter.default is parameter.empty and parameter.kind is not parameter.VAR_POSITIONAL:
                raise TypeError(f"{self.name} has the argument {parameter.name}, but {self.op} has {', '.join(known)}")
        return found

    def __call__(self, tensors: Mapping[str, Tensor | None], options: Mapping[str, Any], needed: set[str]) -> dict[str, Tensor]:
        """Its results by name. `needed`: tensors that it may not leave out. Unsupported, Misfit: why there are none."""
        for name, option in self._options.items():
            if options[name] != option.default and name not in self.takes:
                raise Unsupported(f"it has no {name}, which is {options[name]}")
        for name in needed - self.takes:
            raise Unsupported(f"it takes no {name}")
        words: collections.OrderedDict[str, Any] = collections.OrderedDict()
        rest = {}
        for parameter, meaning in self._means.items():
            in_signature = self._signature.parameters.get(parameter)
            value = self._value(parameter, meaning, tensors, options)
            if value is not None and in_signature is None:
                rest[parameter] = value
            elif value is not None:
                words[parameter] = value
            elif in_signature is not None and in_signature.default is in_signature.empty:
                raise Unsupported(f"it needs {parameter}")
        bound = inspect.BoundArguments(self._signature, words)
        return self._results(self.function(*bound.args, **bound.kwargs, **rest))

    def _value(self, parameter: str, meaning: str, tensors: Mapping[str, Tensor | None], options: Mapping[str, Any]) -> Any:
        if parameter in _FLAGS:
            option, choice = _FLAGS[parameter]
            return options[option] == choice
        if meaning in self._options:
            return int(options[meaning]) if self._options[meaning].type == "int" else options[meaning]
        tensor = tensors[meaning]
        # In tigon.ops a second half that lies in the first tensor is left out.
        return None if tensor is not None and parameter != meaning and not tensor.shape[-1] else tensor

    def _results(self, result: Any) -> dict[str, Tensor]:
        values = tuple(result) if isinstance(result, (tuple, list)) else (result,)
        if len(values) != len(self.visible) or not all(isinstance(value, torch.Tensor) for value in values):
            kinds = ", ".join(type(value).__name__ for value in values)
            raise Misfit(f"it returned {kinds}, but {self.op} returns {', '.join(self.visible)}, each a tensor")
        return dict(zip(self.visible, values))
