# SPDX-License-Identifier: Apache-2.0
"""The candidate's process: it gets inputs by file and gives results by file, and has neither reference nor expected values.

Started by process.py with the candidate's file and a pipe for requests and one for answers, a line of JSON each.
"""
import contextlib
import dataclasses
import importlib.util
import inspect
import json
import math
import os
import pathlib
import sys
import time
import types
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

_LATER = 0.02  # seconds after which a result must still be what it was


def _load(path: pathlib.Path, name: str) -> types.ModuleType:
    """A module from its file."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def entry(module: types.ModuleType, names: list[str]) -> Any:
    """What is judged of a file: the first of the names that it has, or its only function. LookupError: there is none."""
    for name in names:
        if hasattr(module, name):
            return getattr(module, name)
    own = [f for n, f in vars(module).items() if inspect.isfunction(f) and f.__module__ == module.__name__ and not n.startswith("_")]
    if len(own) != 1:
        raise LookupError(f"the candidate has none of {', '.join(names)}, and not one function alone")
    return own[0]


class Worker:
    """The candidate and what it was given."""

    def __init__(self, made: types.ModuleType):
        self.made: Any = made
        self.function: Any = None
        self.outputs: list[str] = []
        self.held: Any = None

    def load(self, request: dict[str, Any]) -> dict[str, Any]:
        """Loads the candidate's file; with `folder` it may import others from there."""
        sys.path[:0] = request["folder"]
        function, self.outputs = entry(_load(pathlib.Path(request["candidate"]), "candidate"), request["names"]), request["outputs"]
        self.function = (lambda *inputs: function(*inputs[:-1], **inputs[-1])) if request["keywords"] else function
        return {}

    def build(self, request: dict[str, Any]) -> dict[str, Any]:
        """Makes a module of the candidate's class. `state`: whether it has the reference's parameters, by name or by order."""
        given = torch.load(request["file"], weights_only=True)
        torch.manual_seed(request["seed"])
        module = self.function(*given["inputs"])
        dtype = getattr(torch, request["dtype"]) if request["dtype"] else None
        self.function = module.to(device=request["device"], dtype=dtype)
        own, state = module.state_dict(), given["state"]
        if len(own) != len(state) or [t.shape for t in own.values()] != [t.shape for t in state.values()]:
            return {"state": not state and not own}
        names = state if own.keys() == state.keys() else dict(zip(own, state.values()))
        module.load_state_dict(names)
        return {"state": True}

    def call(self, request: dict[str, Any]) -> dict[str, Any]:
        """Calls the candidate and writes what it made."""
        given = torch.load(request["file"], weights_only=True)
        inputs, backward = self._at(given["inputs"], request), given["upstream"] is not None
        function = self._called(request)
        called: Any = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
        with torch.set_grad_enabled(backward), _watched(function, called) if request["watch"] else contextlib.nullcontext(function) as function:
            made = self.made.call(function, inputs, given["upstream"])
        values = {name: _plain(value) for name, value in made.values.items()}
        time.sleep(_LATER)
        late = [name for name, value in made.values.items() if isinstance(values[name], Tensor) and not self._same(values[name], _plain(value))]
        late += [name for name, leaf, old in self._leaves(inputs, given["inputs"]) if name not in values and not self._same(leaf, old)]
        torch.save({"values": values, "facts": {n: dataclasses.asdict(f) for n, f in made.facts.items()}}, request["out"])
        _poison(made, {n for n in made.values if n in made.facts and not made.facts[n].inputs})
        return {"late": late, "calls": sorted({e.name for e in called.events() or () if not e.cpu_parent and e.name.startswith("aten::")})
                if request["watch"] else []}

    @staticmethod
    def _leaves(inputs: Any, given: Any) -> list[tuple[str, Tensor, Tensor]]:
        """Each tensor of the inputs with what it was."""
        pairs = enumerate(zip(pytree.tree_leaves(inputs), pytree.tree_leaves(given)))
        return [(f"input {i}", leaf.detach(), old.to(leaf.device)) for i, (leaf, old) in pairs if isinstance(leaf, Tensor)]

    def _called(self, request: dict[str, Any]) -> Any:
        """The candidate's function, whose results are in the order of their names if they have some."""
        if not self.outputs:
            return self.function
        destinations, device = request["destinations"], request["device"]

        def called(*inputs: Any) -> Any:
            if destinations is None:
                made = self.function(*inputs)
            else:
                made = [_unwritten(shape, getattr(torch, dtype), device) for shape, dtype in destinations]
                self.function(*inputs, *made)
            return [made[name] for name in self.outputs] if isinstance(made, dict) else list(made) if isinstance(made, (tuple, list)) else made
        return called

    def _same(self, one: Tensor, other: Any) -> bool:
        return isinstance(other, Tensor) and one.shape == other.shape and one.dtype == other.dtype and self.made.same_bits(one, other)

    def _at(self, inputs: Any, request: dict[str, Any]) -> Any:
        """Inputs on the device, at new addresses or at those of the call before."""
        device = request["device"]
        fresh = pytree.tree_map(lambda v: v.to(device) if isinstance(v, Tensor) else v, inputs)
        if self.held is None or request["fresh"]:
            self.held = self.made.copies(fresh, request["backward"])
            return self.held
        with torch.no_grad():
            for old, new in zip(pytree.tree_leaves(self.held), pytree.tree_leaves(fresh)):
                if isinstance(old, Tensor):
                    old.copy_(new)
        return self.held


@contextlib.contextmanager
def _watched(function: Any, called: Any) -> Iterator[Any]:
    """The function, while it runs under a profiler: without what comes before and after it."""
    if not isinstance(function, torch.nn.Module):
        def watched(*inputs: Any) -> Any:
            with called:
                return function(*inputs)
        yield watched
        return
    hooks = [function.register_forward_pre_hook(lambda *_: called.start()), function.register_forward_hook(lambda *_: called.stop())]
    yield function
    for hook in hooks:
        hook.remove()


def _plain(value: Any) -> Any:
    """A tensor of its own in the memory of the processor; other values as they are, if they are simple."""
    if isinstance(value, Tensor):
        try:
            return value.detach().as_subclass(Tensor).to_dense().cpu().contiguous().clone()
        except Exception as error:
            return f"a tensor without values: {type(error).__name__}"
    return value if value is None or isinstance(value, (bool, int, float, str)) else repr(value)[:200]


def _unwritten(shape: list[int], dtype: torch.dtype, device: str) -> Tensor:
    """A tensor for a result, full of what is none."""
    return torch.full(shape, math.nan if dtype.is_floating_point else 1, dtype=dtype, device=device)


def _poison(made: Any, names: set[str]) -> None:
    """What a result lay in is overwritten, so that it cannot be had again."""
    with torch.no_grad():
        for name in names:
            value = made.values[name]
            if type(value) is Tensor and value.layout == torch.strided and value.device.type != "meta":
                value.detach().fill_(math.nan if value.is_floating_point() else 1)


def _is_broken() -> bool:
    """Whether a device does nothing any more, as after an access that it cannot do."""
    try:
        if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
            torch.cuda.synchronize()
    except RuntimeError:
        return True
    return False


def _answer(worker: Worker, line: str) -> dict[str, Any]:
    request = json.loads(line)
    try:
        return {"ok": True, **getattr(worker, request["do"])(request)}
    except Exception as error:
        if isinstance(error, ImportError):
            return {"ok": False, "missing": str(error)}
        return {"ok": False, "error": f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:300]}", "broken": _is_broken()}


def main() -> None:
    """Answers requests until there are no more."""
    made, asked, answers = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    worker = Worker(_load(pathlib.Path(made), "made"))
    with os.fdopen(asked) as requests, os.fdopen(answers, "w") as out:
        for line in requests:
            print(json.dumps(_answer(worker, line)), file=out, flush=True)


if __name__ == "__main__":
    main()
