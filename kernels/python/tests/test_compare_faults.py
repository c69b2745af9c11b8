# SPDX-License-Identifier: Apache-2.0
"""Faults planted into the references of all ops, one operation at a time: which of them does tigon.testing.compare notice?

    PYTHONPATH=kernels/python python kernels/python/tests/test_compare_faults.py --table    shares by kind, beside torch.allclose

A fault that leaves every value of results and gradients as it was is none, and is not counted.
"""
import os
import random
import sys
import unittest
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from references import PROBLEMS
from test_compare import inputs
from tigon._testing.made import Made, call, copies
from tigon._testing.oracle import Oracle
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

SEED = int(os.environ.get("TIGON_SEED") or random.randrange(1 << 30))
TOLERANCE = 1e-2  # KernelBench's, absolute and relative
SUMS = ("sum", "mean", "mm", "bmm", "addmm", "_softmax", "_log_softmax", "native_layer_norm", "logsumexp")
FUNCTIONS = ("exp", "log", "rsqrt", "sqrt", "sigmoid", "silu", "tanh", "gelu", "reciprocal")
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}


def floating(value: Any) -> bool:
    """Whether it is a tensor of floats with a dimension at least."""
    return isinstance(value, Tensor) and value.is_floating_point() and value.dim() > 0


def last_lost(name: str, func: Any, args: Any, kwargs: Any) -> Any:
    """A loop over columns that ends one early."""
    if name in SUMS and floating(args[0]) and args[0].shape[-1] > 1:
        cut = args[0].clone()
        cut[..., -1] = -torch.inf if "softmax" in name or name == "logsumexp" else 0
        return func(cut, *args[1:], **kwargs)
    return None


def wrong_count(name: str, func: Any, args: Any, kwargs: Any) -> Any:
    """1 / (n - 1) in place of 1 / n."""
    if name != "mean":
        return None
    out = func(*args, **kwargs)
    n = args[0].numel() / max(1, out.numel())
    return out * (n / (n - 1)) if n > 1 else None


def in_bf16(name: str, func: Any, args: Any, kwargs: Any) -> Any:
    """Terms rounded to bf16 before they are added; in bf16 that is none."""
    if name in SUMS and all(a.dtype == torch.float32 for a in args if isinstance(a, Tensor)) and floating(args[0]):
        return func(*(a.bfloat16().float() if isinstance(a, Tensor) else a for a in args), **kwargs)
    return None


def eps_forgotten(name: str, func: Any, args: Any, kwargs: Any) -> Any:
    """An eps that is 0."""
    if name == "add" and isinstance(args[1], float) and 0 < args[1] < 1e-3:
        return args[0].clone()
    return func(*args[:4], 0.0) if name == "native_layer_norm" else None


def operand_forgotten(name: str, func: Any, args: Any, kwargs: Any) -> Any:
    """A factor or a term that is not there, and is no eps."""
    if name in ("mul", "add", "sub", "div") and floating(args[0]) and isinstance(args[1], Tensor):
        return args[0].expand_as(func(*args, **kwargs)).clone()
    return None


def sign(name: str, func: Any, args: Any, kwargs: Any) -> Any:
    """+ in place of -."""
    if name == "sub" and floating(args[0]):
        return args[0] + args[1]
    return args[0].clone() if name == "neg" else None


def coarse(name: str, func: Any, args: Any, kwargs: Any) -> Any:
    """A function of 11 bits, as fast hardware has some."""
    return func(*args, **kwargs) * (1 + 2 ** -11) if name in FUNCTIONS else None


def other_index(name: str, func: Any, args: Any, kwargs: Any) -> Any:
    """The next column."""
    return func(args[0], args[1], (args[2] + 1) % args[0].shape[args[1]], **kwargs) if name == "gather" else None


def stale_row(name: str, func: Any, args: Any, kwargs: Any) -> Any:
    """The last row is the first."""
    out = func(*args, **kwargs) if name in (*SUMS, *FUNCTIONS, "mul", "add", "sub") else None
    if not floating(out) or out.shape[0] < 2:
        return None
    out[-1] = out[0].clone()
    return out


def constant_off(name: str, func: Any, args: Any, kwargs: Any) -> Any:
    """A constant factor that is 1% too large."""
    return func(args[0], args[1] * 1.01, **kwargs) if name in ("mul", "div") and isinstance(args[1], float) else None


KINDS: dict[str, Callable[..., Any]] = {f.__name__: f for f in (
    last_lost, wrong_count, in_bf16, eps_forgotten, operand_forgotten, sign, coarse, other_index, stale_row, constant_off)}
# As small as a rounding where values are ordinary: noticed or not.
MAY_BE_SMALL = ("eps_forgotten",)


class Planted(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """One fault of a kind, in the n-th place where it can be; `count` is how many places there were."""

    def __init__(self, kind: str, place: int):
        super().__init__()  # type: ignore[no-untyped-call]
        self.kind, self.place, self.count = kind, place, 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.is_view or func._schema.is_mutable:
            return func(*args, **(kwargs or {}))
        changed = KINDS[self.kind](func._schema.name.split("::")[1], func, args, kwargs or {})
        if changed is not None:
            self.count += 1
            if self.count - 1 == self.place:
                return changed
        return func(*args, **(kwargs or {}))


def is_same(one: Made, other: Made) -> bool:
    """Whether every value is the same."""
    return one.values.keys() == other.values.keys() and all(
        torch.allclose(value, other.values[name], 0, 0, equal_nan=True) if isinstance(value, Tensor) and isinstance(other.values[name], Tensor)
        and value.shape == other.values[name].shape else value is other.values[name] for name, value in one.values.items())


def allclose(one: Made, other: Made) -> bool:
    """What torch.allclose says with KernelBench's tolerances, of results and gradients."""
    return all(not isinstance(value, Tensor) or isinstance(other.values.get(name), Tensor) and value.shape == other.values[name].shape
               and torch.allclose(value.float(), other.values[name].float(), TOLERANCE, TOLERANCE) for name, value in one.values.items())


def faults(name: str, dtype: torch.dtype, seed: int, kinds: Any = KINDS) -> list[tuple[str, int, bool, bool]]:
    """(kind, place, whether compare notices it, whether allclose does) of each fault of an op's reference."""
    problem = PROBLEMS[name]
    given = inputs(problem.parameters, dtype, seed)
    oracle = Oracle(problem.reference, given, backward=True, seed=seed)
    right = call(problem.reference, copies(given, True), oracle.upstream)
    found = []
    for kind in kinds:
        place, count = 0, 1
        while place < count:
            with Planted(kind, place) as planted:
                made = call(problem.reference, copies(given, True), oracle.upstream)
            if not is_same(right, made):
                found.append((kind, place, any(case.is_failure for case in oracle.cases(made)), not allclose(right, made)))
            place, count = place + 1, planted.count
    return found


class FaultsTest(unittest.TestCase):
    def test_faults_of_ops_drawn_by_a_seed(self):
        chance = random.Random(SEED)
        count = 0
        for name in chance.sample(sorted(PROBLEMS), 4):
            for kind, place, noticed, _ in faults(name, torch.float32, SEED, [kind for kind in KINDS if kind not in MAY_BE_SMALL]):
                count += 1
                with self.subTest(op=name, kind=kind, place=place, seed=SEED):
                    self.assertTrue(noticed)
        self.assertGreater(count, 4)


def table() -> None:
    """Prints the shares by kind and dtype, and the faults that compare does not notice."""
    planted, noticed, close = Counter(), Counter(), Counter()
    for label, dtype in DTYPES.items():
        for name in PROBLEMS:
            for kind, place, is_noticed, is_close in faults(name, dtype, SEED):
                row = (kind, label)
                planted[row], noticed[row], close[row] = planted[row] + 1, noticed[row] + is_noticed, close[row] + is_close
                if not is_noticed:
                    print(f"not noticed: {name} {label}: {kind}, place {place}{', which allclose notices' if is_close else ''}", flush=True)
    for row in planted:
        print(f"{row[0]} {row[1]}: compare {noticed[row]}, allclose {close[row]} of {planted[row]}")
    print(f"all: compare {noticed.total()}, allclose {close.total()} of {planted.total()}, seed {SEED}")


if __name__ == "__main__":
    table() if sys.argv[1:] == ["--table"] else unittest.main()
