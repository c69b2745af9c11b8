# SPDX-License-Identifier: Apache-2.0
"""FlashInfer-Bench's format (github.com/flashinfer-ai/flashinfer-bench, docs/flashinfer-trace): a Definition is the reference, a Workload of it
gives sizes and inputs, a Solution is the candidate; trace.py writes what came of it as a Trace."""
import contextlib
import json
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from .failures import BadProblem, Failed, NotJudged
from .inputs import Call, variants
from .problem import from_source, placed
from .submission import Submission

_INTEGERS = {"int64": 1024, "int32": 1024, "int16": 1024, "int8": 128}
_FLOATS = ("float32", "float16", "bfloat16")
_SMALL_FLOATS = {"float8_e4m3fn": 2.0, "float8_e4m3": 2.0, "float8_e5m2": 2.0}


def load(file: pathlib.Path) -> dict[str, Any]:
    """A JSON object of a file. BadProblem: there is none."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadProblem(f"{file}: {getattr(error, 'strerror', None) or 'it is no JSON'}") from None
    if not isinstance(found, dict):
        raise BadProblem(f"{file}: it is no JSON object")
    return found


@contextlib.contextmanager
def _described(what: str) -> Iterator[None]:
    """BadProblem in place of what a description raises that is not what it should be."""
    try:
        yield
    except (BadProblem, NotJudged):
        raise
    except Exception as error:
        raise BadProblem(f"{what} is not as the format has it: {type(error).__name__}: {error}") from error


class Definition:
    """A Definition with one of its Workloads."""
    build = False

    def __init__(self, file: pathlib.Path, workload: dict[str, Any], folder: pathlib.Path, device: str):
        """`folder`: what paths of safetensors are relative to. BadProblem: one of them is none, or they do not fit."""
        self.definition, self.workload, self.folder, self.device = load(file), workload, folder, device
        missing = [name for name in ("name", "axes", "inputs", "outputs", "reference") if name not in self.definition]
        if missing:
            raise BadProblem(f"{file}: a Definition has {missing[0]}")
        self.run = from_source(self.definition["reference"], f"{file}: its reference", "run")
        self.names = ["run"]
        with _described(f"{file} or its workload"):
            self.axes = {name: axis["value"] if axis["type"] == "const" else workload["axes"].get(name) for name, axis in self.definition["axes"].items()}
            self.sizes = self._free_axes()
        unknown = [name for name, value in self.axes.items() if value is None]
        if unknown:
            raise BadProblem(f"the workload has no value for the axis {unknown[0]}")

    def _free_axes(self) -> dict[str, int]:
        """Variable axes of drawn inputs alone."""
        shapes = {name: spec["shape"] or [] for name, spec in self.definition["inputs"].items()}
        fixed = {axis for name, shape in shapes.items() if self._source(name)["type"] == "safetensors" for axis in shape}
        used = {axis for shape in shapes.values() for axis in shape}
        return {name: self.axes[name] for name, axis in self.definition["axes"].items() if axis["type"] == "var" and name in used - fixed}

    def _source(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.workload.get("inputs", {}).get(name, {"type": "random"})
        return found

    def init_inputs(self) -> Any:
        """There are no modules."""
        return []

    def reference(self, seed: int, init_inputs: Any) -> Callable[..., Any]:
        """The Definition's run, whose results are in the order of its outputs."""
        names = list(self.definition["outputs"])

        def ordered(*inputs: Any) -> Any:
            made = self.run(*inputs)
            return [made[name] for name in names] if isinstance(made, dict) else list(made) if isinstance(made, (tuple, list)) else made
        return ordered

    def inputs(self, seed: int, **sizes: int) -> Any:
        """Inputs of the workload, or of other sizes. BadProblem: there are none."""
        axes = {**self.axes, **sizes}
        with _described("the Definition or its workload"), torch.random.fork_rng(devices=[]):
            for rule in self.definition.get("constraints") or []:
                if not eval(rule, {}, dict(axes)):  # the reference's text is run, too
                    raise BadProblem(f"the axes do not fit {rule}")
            torch.manual_seed(seed)
            return [placed(self._input(name, spec, axes), self.device, None) for name, spec in self.definition["inputs"].items()]

    def calls(self, seed: int) -> Iterator[Call]:
        """Kinds of inputs that easy code gets wrong (inputs.py)."""
        return variants(self, seed)

    def _input(self, name: str, spec: dict[str, Any], axes: dict[str, int]) -> Any:
        source = self._source(name)
        if source["type"] == "scalar":
            return source["value"]
        if source["type"] == "safetensors":
            return self._stored(source)
        if spec["shape"] is None:
            return _drawn([], spec["dtype"]).item()
        value = _drawn([axes[axis] for axis in spec["shape"]], spec["dtype"])
        return value.softmax(-1) if self.definition.get("op_type") == "sampling" and name == "probs" else value

    def _stored(self, source: dict[str, Any]) -> Tensor:
        try:
            from safetensors.torch import load_file
        except ImportError:
            raise NotJudged("its inputs are in files of safetensors, which is not installed") from None
        places = [folder / source.get("path", "") for folder in (self.folder, *self.folder.resolve().parents)]  # the root of a set of Traces, or a file's own
        try:
            stored: Tensor = load_file(next((place for place in places if place.is_file()), places[0]))[source["tensor_key"]]
        except (OSError, KeyError, ValueError) as error:
            raise BadProblem(f"the workload's {source.get('path')}: {type(error).__name__}: {error}") from error
        return stored

    def outputs(self, inputs: Any) -> list[tuple[list[int], str]]:
        """Shape and dtype of each result for these inputs."""
        axes = dict(self.axes)
        for value, spec in zip(inputs, self.definition["inputs"].values()):
            if isinstance(value, Tensor):
                axes |= dict(zip(spec["shape"], value.shape))
        return [([axes[axis] for axis in spec["shape"] or []], str(_dtype(spec["dtype"])).split(".")[1]) for spec in self.definition["outputs"].values()]

    def submission(self, file: pathlib.Path) -> Submission:
        """A Solution. Failed: it is none. NotJudged: it is in a language that is not run here."""
        try:
            solution = load(file)
            spec = solution["spec"]
            language, (entry, name) = spec["language"].lower(), spec["entry_point"].split("::")
            files = {source["path"]: source["content"].encode() for source in solution["sources"]}
            solves = solution["definition"]
        except (BadProblem, KeyError, TypeError, ValueError, AttributeError) as error:
            raise Failed(f"it is no Solution: {type(error).__name__}: {error}") from None
        if solves != self.definition["name"]:
            raise BadProblem(f"the Solution is for {solves}, not for {self.definition['name']}")
        if language != "python" and not (language == "triton" and self.device.startswith("cuda")):
            raise NotJudged(f"a Solution in {language} is not run here: " + ("--device cuda does" if language == "triton" else "it would have to be built"))
        if entry not in files or any(pathlib.PurePath(path).is_absolute() or ".." in pathlib.PurePath(path).parts for path in files):
            raise Failed(f"it is no Solution: no source {entry}, or a path that leaves its folder")
        return Submission(files, entry, [name], tuple(self.definition["outputs"]), spec.get("destination_passing_style", True) is True)


def _dtype(name: str) -> torch.dtype:
    dtype = getattr(torch, {"float8_e4m3": "float8_e4m3fn"}.get(name, name), None)
    if not isinstance(dtype, torch.dtype):
        raise NotJudged(f"torch has no {name} here")
    return dtype


def _drawn(shape: list[int], name: str) -> Tensor:
    """What FlashInfer-Bench draws: normal floats, integers of a range."""
    dtype = _dtype(name)
    if name in _FLOATS:
        return torch.randn(shape).to(dtype)
    if name in _SMALL_FLOATS:
        return torch.randn(shape).clamp(-_SMALL_FLOATS[name], _SMALL_FLOATS[name]).to(dtype)
    if name == "bool":
        return torch.randint(0, 2, shape, dtype=dtype)
    if name in _INTEGERS:
        return torch.randint(-_INTEGERS[name], _INTEGERS[name], shape, dtype=dtype)
    raise NotJudged(f"nothing draws inputs of {name} here")
