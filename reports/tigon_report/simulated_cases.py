# SPDX-License-Identifier: Apache-2.0
"""The cases of a simulated history: real ops and shapes, times from a simple model of an H200. No time is measured."""
import itertools
from typing import NamedTuple

from . import records

COPY, GEMM = 4.16e12, {"bf16": 7.17e14, "f32": 5.0e13}  # bytes/s and flop/s, of the size measured on an H200
LAUNCH_S = 3e-6
SIZES = {"bf16": 2, "f32": 4}
ROWS = (1024, 2048, 4096, 8192, 16384)
# op -> (pass -> (bytes moved over the size of the largest tensor, flop per element), other axes, naive's factor)
OPS = {
    "rms_norm": ({"forward": (2, 4), "backward": (3, 9)}, {"H": (2048, 4096, 8192)}, 6.0),
    "layer_norm": ({"forward": (2, 6), "backward": (3, 12)}, {"H": (2048, 4096, 8192)}, 5.0),
    "rope": ({"forward": (2, 3), "backward": (2, 3)}, {"D": (64, 128), "K": (8,), "Q": (32,)}, 4.5),
    "swiglu": ({"forward": (3, 5), "backward": (5, 12)}, {"F": (5632, 14336)}, 1.8),
    "geglu": ({"forward": (3, 9), "backward": (5, 20)}, {"F": (5632, 14336)}, 1.9),
    "softmax": ({"forward": (2, 5), "backward": (3, 4)}, {"V": (32000, 128256)}, 1.5),
    "cross_entropy": ({"forward": (1, 4), "forward_backward": (2, 9)}, {"V": (32000, 50304, 128256)}, 6.5),
    "linear_cross_entropy": ({"forward": (0, 2), "forward_backward": (0, 6)}, {"H": (4096,), "V": (32000, 128256)},
                             1.45),
}


class Case(NamedTuple):
    """One series of the history. `seconds`: its time before anything is planted; memory in bytes."""

    case_id: str
    case_key: str
    op: str
    pass_name: str
    impl: str
    dtype: str
    axes: dict
    bytes_min: float
    flop: float
    bound: str
    seconds: float
    tensors: int
    workspace: int


def _elements(op, axes):
    if op == "rope":
        return axes["T"] * (axes["Q"] + axes["K"]) * axes["D"]
    return axes["T"] * next(axes[name] for name in ("V", "F", "H") if name in axes)


def _case(op, pass_name, impl, dtype, axes):
    passes, _, naive_factor = OPS[op]
    moved, flops = passes[pass_name]
    size, elements = SIZES[dtype], _elements(op, axes)
    if op == "linear_cross_entropy":
        bytes_min = float(size * axes["H"] * (axes["T"] + axes["V"]) * (2 if "backward" in pass_name else 1))
        flop, bound = float(flops) * elements * axes["H"], "compute"
        seconds, workspace = flop / (0.95 * GEMM[dtype]), size * 1024 * axes["V"]
        if impl == "naive":
            workspace = size * elements * (2 if "backward" in pass_name else 1)
    else:
        bytes_min, flop, bound = float(moved * size * elements), float(flops * elements), "memory"
        seconds, workspace = bytes_min / (0.88 * COPY), 0
        if impl == "naive":
            workspace = 4 * elements
    seconds = LAUNCH_S + seconds * (naive_factor if impl == "naive" else 1)
    shape = ",".join(f"{name}={axes[name]}" for name in axes)
    case_id = f"{op}/{pass_name}/{impl}/{dtype}/{shape},inputs=normal,seed=42"
    return Case(case_id, records.case_key(case_id), op, pass_name, impl, dtype, axes, bytes_min, flop, bound, seconds,
                int(bytes_min), int(workspace))


def cases(count):
    """`count` cases, all ops among the first ones; fused and naive of a cell lie side by side."""
    queues = []
    for (op, (passes, other, _)), dtype in itertools.product(OPS.items(), SIZES):
        queue = []
        for pass_name, t in itertools.product(passes, ROWS):
            for values in itertools.product(*other.values()):
                axes = {"T": t, **dict(zip(other, values))}
                queue.append([_case(op, pass_name, impl, dtype, axes) for impl in ("fused", "naive")])
        queues.append(queue)
    turns = (cell for row in itertools.zip_longest(*queues) for cell in row if cell)
    return list(itertools.islice(itertools.chain.from_iterable(turns), count))


MOST = len(cases(10**6))
