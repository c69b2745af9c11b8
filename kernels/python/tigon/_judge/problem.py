# SPDX-License-Identifier: Apache-2.0
"""The reference's file: what is computed, and of which inputs.

KernelBench's format: a class Model, get_inputs() and get_init_inputs(); the candidate has ModelNew. Or a function `reference`
and get_inputs(); the candidate has a function `candidate`. Integer arguments of get_inputs with defaults are sizes.
"""
import importlib.util
import inspect
import pathlib
import types
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from .failures import BadProblem
from .inputs import Call, variants
from .submission import Submission, of_file


def _module(path: pathlib.Path) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location(f"tigon_reference_{path.stem}", path)
    if not path.is_file() or not spec or not spec.loader:
        raise BadProblem(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise BadProblem(f"{path} cannot be loaded: {type(error).__name__}: {error}") from error
    return module


def from_source(text: str, what: str, name: str) -> Any:
    """What a text defines by a name. BadProblem: it does not."""
    module = types.ModuleType(f"tigon_{name}")
    try:
        exec(compile(text, what, "exec"), vars(module))
    except Exception as error:
        raise BadProblem(f"{what} cannot be loaded: {type(error).__name__}: {error}") from error
    if not callable(getattr(module, name, None)):
        raise BadProblem(f"{what} has no function {name}")
    return getattr(module, name)


def placed(value: Any, device: str, dtype: torch.dtype | None) -> Any:
    """An input where it is needed; floating ones as `dtype`, unless that is None."""
    if not isinstance(value, Tensor):
        return value
    return value.to(device, dtype if value.is_floating_point() else None)


class Problem(Protocol):
    """A reference with its inputs. `build`: whether it makes modules."""
    build: bool

    def init_inputs(self) -> Any:
        """The arguments of modules."""

    def calls(self, seed: int) -> Iterator[Call]:
        """Each call of a candidate. BadProblem: there are none."""

    def reference(self, seed: int, init_inputs: Any) -> Callable[..., Any]:
        """The function, or a module with random parameters. BadProblem: it cannot be made."""

    def outputs(self, inputs: Any) -> list[tuple[list[int], str]]:
        """Shape and dtype of each result, for candidates that write into what they are given."""

    def submission(self, file: pathlib.Path) -> Submission:
        """A candidate's file. Failed: it is none. NotJudged: it is in a language that is not run here."""


class PythonFile:
    """Such a file. `names`: what a candidate's file calls its own. `build`: whether these are classes."""

    def __init__(self, path: pathlib.Path, dtype: torch.dtype | None = None, device: str = "cpu"):
        """BadProblem: the file is none."""
        self.module, self.dtype, self.device = _module(path), dtype, device
        self.build = hasattr(self.module, "Model")
        self.names = ["ModelNew", "Model"] if self.build else ["candidate", "solution"]
        if not callable(getattr(self.module, "get_inputs", None)):
            raise BadProblem(f"{path} has no get_inputs()")
        if not self.build and not callable(getattr(self.module, "reference", None)):
            raise BadProblem(f"{path} has neither a class Model nor a function reference")
        self.sizes = {n: p.default for n, p in inspect.signature(self.module.get_inputs).parameters.items() if type(p.default) is int}

    def init_inputs(self) -> Any:
        """The arguments of the modules."""
        return self.module.get_init_inputs() if hasattr(self.module, "get_init_inputs") else []

    def inputs(self, seed: int, **sizes: int) -> Any:
        """Inputs as the file draws them. BadProblem: it cannot."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            try:
                given = self.module.get_inputs(**sizes)
            except Exception as error:
                raise BadProblem(f"get_inputs raised {type(error).__name__}: {error}") from error
        return pytree.tree_map(lambda value: placed(value, self.device, self.dtype), list(given))

    def calls(self, seed: int) -> Iterator[Call]:
        """Kinds of inputs that easy code gets wrong (inputs.py)."""
        return variants(self, seed)

    def outputs(self, inputs: Any) -> list[tuple[list[int], str]]:
        """Candidates return their results."""
        return []

    def submission(self, file: pathlib.Path) -> Submission:
        """The candidate's file as it is. OSError: it cannot be read."""
        return of_file(file, self.names)

    def reference(self, seed: int, init_inputs: Any) -> Callable[..., Any]:
        """The function, or a module with random parameters. BadProblem: it cannot be made."""
        if not self.build:
            function: Callable[..., Any] = self.module.reference
            return function
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            try:
                made: nn.Module = self.module.Model(*init_inputs)
            except Exception as error:
                raise BadProblem(f"Model raised {type(error).__name__}: {error}") from error
            _randomise(made)
        return made.to(device=self.device, dtype=self.dtype)


def _randomise(module: nn.Module) -> None:
    """No parameter and no statistic is left at a constant, which a candidate could know: of ones, values around 1."""
    with torch.no_grad():
        for tensor in (*module.parameters(), *module.buffers()):
            if tensor.is_floating_point() and tensor.numel():
                constant = bool((tensor == tensor.reshape(-1)[0]).all())
                if constant:
                    tensor.add_(torch.rand_like(tensor) * 0.5 - 0.25)
