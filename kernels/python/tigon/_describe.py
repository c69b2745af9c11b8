# SPDX-License-Identifier: Apache-2.0
"""What a pass of an op says of itself, from the JSON of tigon_describe(): tensors, options, formula. Knows no op."""
import dataclasses
import functools
import json
from typing import Any


@dataclasses.dataclass(frozen=True)
class Tensor:
    """A tensor of a call; `shape` has a text for each axis, `role` is "in", "out", "inout" or "saved"."""
    name: str
    role: str
    dtype: str
    shape: tuple[str, ...]
    optional: bool
    gradient_of: str | None
    same_gradient_as: str | None
    strided: bool
    may_alias: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Option:
    """An option of a call; `type` is "float", "int" or "choice"."""
    name: str
    type: str
    default: float | int | str
    choices: tuple[str, ...]

    def number(self, value: Any) -> float | int:
        """The number that a call takes: of a choice, which may be given by its name, its index."""
        if self.type == "float":
            return float(value)
        if self.type == "int":
            return int(value)
        if value in self.choices:
            return self.choices.index(value)
        if isinstance(value, int) and 0 <= value < len(self.choices):
            return value
        raise ValueError(f"{self.name} is {value!r}, but must be one of {', '.join(self.choices)}")


@dataclasses.dataclass(frozen=True)
class Result:
    """What a call gives: memory that is made for tensor number `tensor`."""
    name: str
    tensor: int
    is_copy: bool  # of the argument with the tensor's name, which the pass changes in place
    wanted_bit: int | None  # its bit in `want`; None: it is always there


@dataclasses.dataclass(frozen=True, eq=False)
class Pass:
    """One pass of one op for one dtype of activations."""
    name: str  # "rms_norm.forward"
    dtype: str
    formula: str
    axes: dict[str, str]
    tensors: tuple[Tensor, ...]
    options: tuple[Option, ...]

    @functools.cached_property
    def op(self) -> str:
        return self.name.split(".")[0]

    @functools.cached_property
    def index(self) -> dict[str, int]:
        return {t.name: i for i, t in enumerate(self.tensors)}

    @functools.cached_property
    def arguments(self) -> tuple[Tensor, ...]:
        """What a caller gives. A tensor that is changed in place and may be left out is not offered."""
        return tuple(t for t in self.tensors if t.role == "in" or (t.role == "inout" and not t.optional))

    @functools.cached_property
    def argument_places(self) -> dict[str, int]:
        return {t.name: i for i, t in enumerate(self.arguments)}

    def has_out_form(self, tensor: Tensor) -> bool:
        """True for a tensor NAME that is changed in place, beside which NAME_out is another place for its new values."""
        return tensor.role == "inout" and f"{tensor.name}_out" in self.index

    @functools.cached_property
    def results(self) -> tuple[Result, ...]:
        """What a caller gets, in the order of the tensors."""
        out_forms = {f"{t.name}_out" for t in self.tensors if self.has_out_form(t)}
        found, bits = [], 0
        for i, t in enumerate(self.tensors):
            if t.role == "inout" and not t.optional and not self.has_out_form(t):
                found.append(Result(f"{t.name}_out", i, True, None))
            elif t.role in ("out", "saved"):
                on_demand = t.optional and t.name not in out_forms
                found.append(Result(t.name, i, False, bits if on_demand else None))
                bits += on_demand
        return tuple(found)

    @functools.cached_property
    def result_places(self) -> dict[str, int]:
        return {r.name: i for i, r in enumerate(self.results)}

    @functools.cached_property
    def visible(self) -> tuple[str, ...]:
        """The results that a caller of the op sees: not what is made on demand, or for the pass for gradients."""
        return tuple(r.name for r in self.results if r.wanted_bit is None and self.tensors[r.tensor].role != "saved")

    @functools.cached_property
    def wanted(self) -> dict[str, int]:
        """The bits in `want` of the results that are there only if they are asked for."""
        return {r.name: 1 << r.wanted_bit for r in self.results if r.wanted_bit is not None}

    @functools.cached_property
    def rows(self) -> str:
        """The axis whose place any number of leading axes may take."""
        return self.tensors[0].shape[0]


def parse(text: str) -> Pass:
    """A pass from the JSON of tigon_describe()."""
    said = json.loads(text)
    tensors = tuple(Tensor(t["name"], t["role"], t["dtype"], tuple(t["shape"]), t["optional"], t["gradient_of"],
                           t["same_gradient_as"], t["strided"], tuple(t["may_alias"])) for t in said["tensors"])
    options = tuple(Option(o["name"], o["type"], o["default"], tuple(o["choices"])) for o in said["options"])
    return Pass(said["name"], said["dtype"], said["formula"], said["axes"], tensors, options)
