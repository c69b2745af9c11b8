# SPDX-License-Identifier: Apache-2.0
"""A module's own code over tensors of our own, so that its weights, their device, and how they are sharded do not matter."""
import inspect
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

_OF_TORCH = frozenset(vars(nn.Module())) | {"training"}


def stand_in(module: nn.Module, parameters: Mapping[str, nn.Parameter], children: Mapping[str, nn.Module]) -> nn.Module:
    """A copy of a module, without its hooks, that has these parameters and children in place of its own."""
    copied = shallow(module)
    fresh = vars(nn.Module())
    for name, value in fresh.items():
        if name.endswith("_hooks") or "_hooks_" in name:
            copied.__dict__[name] = value
    copied.__dict__["_parameters"] = {**dict.fromkeys(module._parameters), **parameters}
    copied.__dict__["_modules"] = dict(children)
    return copied


def shallow(module: nn.Module) -> nn.Module:
    """A copy that shares all that the module has. copy.copy would make a class of FSDP2 run the module's __init__."""
    copied: nn.Module = object.__new__(type(module))
    copied.__dict__.update(vars(module))
    return copied


def takes_one_argument(module: nn.Module) -> bool:
    """Whether forward can be called with one tensor and nothing else."""
    try:
        parameters = list(inspect.signature(type(module).forward).parameters.values())[1:]
    except (TypeError, ValueError):
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    required = [p for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    return len(required) == 1 and required[0].kind in positional and required[0] is parameters[0]


def has_code_of_its_own(module: nn.Module) -> bool:
    """Whether another tool bound a forward on the instance, which another class would not replace."""
    return "forward" in vars(module)


def likeness(module: nn.Module) -> tuple[Any, ...]:
    """Modules for which this is the same run the same code with the same settings over weights of the same shapes."""
    return tuple((type(m), name, _settings(m), _shapes(m)) for name, m in module.named_modules())


def _settings(module: nn.Module) -> tuple[tuple[str, Any], ...]:
    found = ((k, v) for k, v in vars(module).items() if k not in _OF_TORCH)
    return tuple((k, v if isinstance(v, (int, float, str, bool, type(None))) else id(v)) for k, v in found)


def _shapes(module: nn.Module) -> tuple[tuple[str, torch.Size], ...]:
    return tuple((n, p.shape) for n, p in module.named_parameters(recurse=False))
