# SPDX-License-Identifier: Apache-2.0
"""A function as the passes of an op, on calls in memory that is shared with the judge. Gradients are autograd's. Knows no op."""
import dataclasses
import functools
import mmap
import pathlib
import traceback
from typing import Any

import torch
from torch import Tensor

from .. import _native
from .._describe import Pass
from .._torch import pass_of
from .function import Function, Misfit, Unsupported

_OK, _INVALID, _UNSUPPORTED = range(3)  # of tigon.h


@dataclasses.dataclass(frozen=True)
class _Judged:
    """A pass in one dtype; `source` are inputs whose gradient is judged in place of another's that must be the same."""
    said: Pass
    dtype: str
    implementation: str
    source: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def is_forward(self) -> bool:
        return self.said.name.endswith(".forward")


def gradient_pass(op: str) -> str | None:
    """The pass that gives an op's gradients."""
    names = _native.host().names
    return next((p for p in ("backward", "forward_backward") if f"{op}.{p}" in names), None)


class Passes:
    """What the judge asks."""

    def __init__(self, function: Function, protocol: Any, passes: list[str], dtypes: list[str], roundings: int, device: str):
        self.function, self.protocol = function, protocol
        self.roundings, self.device = roundings, device
        self.error: Exception | None = None  # the last that the function raised
        self._inputs = {t.name: t for t in function.forward.tensors if t.role in ("in", "inout")}
        self._kept = {t.name for t in function.forward.tensors if t.role == "saved"}
        self._judged = [j for p in passes for dtype in dtypes for j in self._of(pass_of(f"{function.op}.{p}", dtype), dtype)]

    def _of(self, said: Pass, dtype: str) -> list[_Judged]:
        name = "".join(c if c.isalnum() or c in "_-." else "_" for c in self.function.name)[:40] or "function"
        found = [_Judged(said, dtype, name)]
        for t in self._inputs.values():
            if not found[0].is_forward and t.same_gradient_as and t.name in self.function.takes:
                found.append(_Judged(said, dtype, f"{name}.{t.name}", {t.same_gradient_as: t.name}))
        return found

    @property
    def implementations(self) -> list[str]:
        """The names under which the judge knows them."""
        return list(dict.fromkeys(j.implementation for j in self._judged))

    def described(self) -> list[dict[str, Any]]:
        """Each pass and dtype. A gradient comes in the dtype of its tensor, which is one rounding where the op has it in float32."""
        return [{"name": j.said.name, "dtype": _native.DTYPES.index(j.dtype), "implementation": j.implementation, "device": 0,
                 "roundings": self.roundings + (not j.is_forward), "differentiated": True} for j in self._judged]

    def run(self, index: int, call: dict[str, Any], memory: mmap.mmap) -> dict[str, Any]:
        """Runs the function on a call; never raises what the function raises."""
        judged = self._judged[index]
        tensors, options = self.protocol.named(call, self._names(judged.said))
        shared = self.protocol.TorchTensors(torch)
        shared.map(memory)
        try:
            self._run(_Call(judged, {n: t for n, t in tensors.items() if t["at"] is not None}, shared, self.device), options)
        except (Unsupported, self.protocol.Unsupported) as error:
            return {"code": _UNSUPPORTED, "message": str(error)}
        except (Misfit, self.protocol.WrongShape) as error:
            return {"code": _INVALID, "message": str(error)}
        except Exception as error:  # noqa: BLE001 - whatever the function raises
            self.error = error
            frame = traceback.extract_tb(error.__traceback__)[-1]
            return {"code": _INVALID, "message": f"it raised {type(error).__name__}: {error} ({pathlib.Path(frame.filename).name}:{frame.lineno})"}
        return {"code": _OK, "message": ""}

    @functools.cache  # noqa: B019 - as long as the function is judged
    def _names(self, said: Pass) -> dict[str, Any]:
        """Names in the order of a call: the pass' own, then those of forward's inputs and options that it does not have."""
        forward = self.function.forward
        tensors = [*said.tensors, *(t for n, t in self._inputs.items() if n not in said.index)]
        own = {option.name for option in said.options}
        options = [*said.options, *(o for o in forward.options if o.name not in own)]
        return {"tensors": [{"name": t.name, "role": t.role if t.name in said.index else "in"} for t in tensors],
                "options": [{"name": o.name, "default": o.default, "choices": list(o.choices)} for o in options]}

    def _run(self, call: "_Call", options: dict[str, Any]) -> None:
        wanted = self._wanted_gradients(call)
        sources = {of: call.judged.source.get(of, of) for of in wanted.values()}
        results_of = [n for n in self.function.visible if n in call.outputs() and n not in wanted]
        for name in call.outputs():
            if not {name, name.removesuffix("_out")} & {*wanted, *self._kept, *results_of}:
                raise Unsupported(f"it has no {name}")
        given = {n: call.given(n, n in sources.values()) for n in self._inputs}
        needed = {n for n in given if n in call.judged.said.index and given[n] is not None} | set(sources.values())
        with torch.set_grad_enabled(bool(wanted)):
            results = self.function(given, options, needed)
            gradients = self._gradients(call, results, {of: given[source] for of, source in sources.items()}) if wanted else {}
        for name in results_of:
            call.require_dtype(name, results[name])
            call.take(name, results[name])
        for name, of in wanted.items():
            call.take(name, gradients[of])

    def _wanted_gradients(self, call: "_Call") -> dict[str, str]:
        """For each output that is the gradient of an input, that input; of several such outputs the first."""
        said = call.judged.said
        found: dict[str, str] = {}
        if call.judged.is_forward:
            return {}
        for t in said.tensors:
            is_place_of_another = t.name.endswith("_out") and t.name.removesuffix("_out") in said.index
            if t.role in ("out", "inout") and t.gradient_of in self._inputs and not is_place_of_another:
                found.setdefault(t.gradient_of, t.name)
        return {name: of for of, name in found.items() if call.has(name)}

    def _gradients(self, call: "_Call", results: dict[str, Tensor], leaves: dict[str, Tensor | None]) -> dict[str, Tensor]:
        """By input. One that no gradient reaches is wrong."""
        ends, upstream = [], []
        for name, value in results.items():
            given = call.upstream(name)
            if given is not None:
                call.require_like(name, value, given)
            elif len(results) > 1:
                continue  # nothing uses this result
            ends.append(value)
            upstream.append(torch.ones_like(value) if given is None else given.reshape(value.shape))
        used = {of: leaf for of, leaf in leaves.items() if leaf is not None}
        found = torch.autograd.grad(ends, list(used.values()), upstream, allow_unused=True)
        for (of, leaf), gradient in zip(used.items(), found):
            if gradient is None and leaf.numel():
                raise Misfit(f"no gradient reaches {call.judged.source.get(of, of)}")
        return {of: torch.zeros_like(leaf) if g is None else g for (of, leaf), g in zip(used.items(), found)}


class _Call:
    """One call: its tensors as torch's."""

    def __init__(self, judged: _Judged, places: dict[str, Any], shared: Any, device: str):
        self.judged, self._places, self._shared, self._device = judged, places, shared, device

    def has(self, name: str) -> bool:
        return name in self._places

    def outputs(self) -> list[str]:
        return [n for n, t in self._places.items() if t["role"] != "in"]

    def given(self, name: str, is_leaf: bool) -> Tensor | None:
        if name not in self._places:
            return None
        tensor: Tensor = self._shared.view(self._places[name]).to(self._device)
        return tensor.detach().requires_grad_() if is_leaf else tensor

    def upstream(self, result: str) -> Tensor | None:
        """The gradient of a result of forward; None where it is left out."""
        for t in self.judged.said.tensors:
            if t.role in ("in", "inout") and t.gradient_of == result and t.name in self._places:
                return self.given(t.name, False)
        return None

    def require_dtype(self, name: str, value: Tensor) -> None:
        want = self._shared.view(self._places[name]).dtype
        if value.dtype != want:
            raise Misfit(f"{name} is {value.dtype}, but must be {want}")

    def require_like(self, name: str, value: Tensor, upstream: Tensor) -> None:
        if value.numel() != upstream.numel() or value.dtype != upstream.dtype:
            raise Misfit(f"{name} is {value.dtype} of shape {list(value.shape)}, but must be {upstream.dtype} of shape {list(upstream.shape)}")

    def take(self, name: str, value: Tensor) -> None:
        """Writes a result to its place: NAME_out, where that is asked for. A loss may be a scalar."""
        place = self._places[f"{name}_out" if f"{name}_out" in self._places else name]
        shape = (1,) if list(place["sizes"]) == [1] and not value.dim() else value.shape
        self._shared.take(place, value.detach().reshape(shape))
