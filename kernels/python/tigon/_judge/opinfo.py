# SPDX-License-Identifier: Apache-2.0
"""BackendBench's format (github.com/meta-pytorch/BackendBench, its suite of OpInfo): the reference is an operator of torch by name, as
aten.add.Tensor, the inputs are the samples of torch's own tests that come down to that operator alone, drawn by other seeds than there, and the
candidate is a function {op}_kernel_impl of the operator's arguments."""
import contextlib
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from .failures import BadProblem, NotJudged
from .inputs import Call
from .problem import placed
from .submission import Submission, of_file

PREFIX = "aten."
_MOST = 24  # samples that are judged, about
_SIMPLE = (Tensor, bool, int, float, str, type(None), torch.dtype)


class _Traced(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes which operators run, with their arguments."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Any:
        self.seen.append((func, args, kwargs or {}))
        return func(*args, **(kwargs or {}))


class Operator:
    """An operator of torch with the samples of its OpInfos. An input is the arguments, the last a dict of those by keyword."""
    build = False

    def __init__(self, name: str, dtype: torch.dtype | None, device: str):
        """BadProblem: torch has no such operator, or no sample of it. NotJudged: torch's samples cannot be imported here."""
        self.name, self.dtype, self.device = name, dtype or torch.float32, device
        base, _, overload = name.removeprefix(PREFIX).partition(".")
        self.base = base
        try:
            self.operator = getattr(getattr(torch.ops.aten, base), overload or "default")
        except AttributeError:
            raise BadProblem(f"torch has no operator {name}") from None
        self.infos = self._infos(base)
        self.places = self._places()

    def _infos(self, base: str) -> list[Any]:
        try:
            from torch.testing._internal.common_methods_invocations import op_db
        except ImportError as error:
            raise NotJudged(f"torch's samples of operators need what is not here: {error}") from None
        plain = base.strip("_")
        near = [op for op in op_db if plain in (op.name.rpartition(".")[2].strip("_"), op.aten_name.strip("_"))]
        return [op for op in near if self.dtype in op.supported_dtypes("cpu")]  # type: ignore[no-untyped-call]

    def _drawn(self, seed: int) -> dict[tuple[int, int], list[Any]]:
        """The operator's arguments in each sample that comes down to it alone, by OpInfo and number."""
        found = {}
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            for i, info in enumerate(self.infos):
                for j, sample in enumerate(info.sample_inputs("cpu", self.dtype, set_seed=False)):
                    with _Traced() as traced, contextlib.suppress(Exception):  # samples may be those of errors
                        info.op(sample.input, *sample.args, **sample.kwargs)
                    arguments = [[*args, dict(kwargs)] for _, args, kwargs in traced.seen]
                    if [func for func, _, _ in traced.seen] == [self.operator] and all(isinstance(v, _SIMPLE) for v in pytree.tree_leaves(arguments)):
                        found[i, j] = pytree.tree_map(lambda value: placed(value, self.device, None), arguments[0])
        return found

    def _places(self) -> list[tuple[int, int]]:
        """Some of the samples from first to last, but the largest before the others."""
        sizes = {place: sum(leaf.numel() for leaf in pytree.tree_leaves(inputs) if isinstance(leaf, Tensor)) for place, inputs in self._drawn(0).items()}
        if not sizes:
            raise BadProblem(f"torch's samples have none that is {self.name} alone in {self.dtype}")
        places, step = list(sizes), max(1, len(sizes) / _MOST)
        largest = max(sizes, key=lambda place: sizes[place])
        return [largest, *(place for n in range(int(len(places) / step)) if (place := places[int(n * step)]) != largest)]

    def calls(self, seed: int) -> Iterator[Call]:
        """Each call; the first sample twice, with new values at the same addresses."""
        again, drawn = self._drawn(seed + 1), self._drawn(seed)
        yield Call("a sample", True, again[self.places[0]])
        yield Call("a sample again, at the same addresses", False, drawn[self.places[0]])
        for number, place in enumerate(self.places[1:], 1):
            yield Call(f"sample {number}", True, drawn[place])

    def init_inputs(self) -> Any:
        """There are no modules."""
        return []

    def reference(self, seed: int, init_inputs: Any) -> Callable[..., Any]:
        """The operator."""
        return lambda *inputs: self.operator(*inputs[:-1], **inputs[-1])

    def outputs(self, inputs: Any) -> list[tuple[list[int], str]]:
        """Candidates return their results."""
        return []

    def submission(self, file: pathlib.Path) -> Submission:
        """The candidate's file as it is. OSError: it cannot be read."""
        return of_file(file, [f"{self.base}_kernel_impl", "candidate"])._replace(has_keywords=True)
