# SPDX-License-Identifier: Apache-2.0
"""The cells that a gate measures: few, each of at least 50 us on an H200, every op and pass among them."""
import dataclasses
import re

_SAME = ",inputs=normal,seed=42"  # of every cell, which tables leave out
_PATTERN = "{}/fused/{}/{}" + _SAME

# pass -> (dtype, axes): the first is the middle of what people train with, more where another kernel or another way of
# splitting the work is taken. The wide products of linear_cross_entropy are left to the history: their speed follows
# the power limit within a run.
_SHAPES = {
    "rms_norm/forward": [("bf16", "T=16384,H=8192"), ("bf16", "T=16384,H=4096"), ("f32", "T=16384,H=4096")],
    "rms_norm/backward": [("bf16", "T=16384,H=4096")],
    "add_rms_norm/forward": [("bf16", "T=16384,H=4096")],
    "add_rms_norm/backward": [("bf16", "T=16384,H=4096")],
    "layer_norm/forward": [("bf16", "T=16384,H=8192")],
    "layer_norm/backward": [("bf16", "T=16384,H=4096")],
    "rope/forward": [("bf16", "T=16384,Q=32,K=8,D=128")],
    "rope/backward": [("bf16", "T=16384,Q=32,K=8,D=128")],
    "swiglu/forward": [("bf16", "T=4096,F=14336"), ("f16", "T=16384,F=5632")],
    "swiglu/backward": [("bf16", "T=4096,F=14336")],
    "geglu/forward": [("bf16", "T=4096,F=14336")],
    "geglu/backward": [("bf16", "T=4096,F=14336")],
    "softmax/forward": [("bf16", "T=1024,V=128256"), ("bf16", "T=4096,V=32000")],
    "softmax/backward": [("bf16", "T=1024,V=128256")],
    "log_prob/forward": [("bf16", "T=4096,V=128256"), ("bf16", "T=8192,V=32000")],
    "log_prob/backward": [("bf16", "T=1024,V=128256")],
    "vocab_parallel_log_prob/forward": [("bf16", "T=4096,V=128256,ranks=8")],
    "vocab_parallel_log_prob/backward": [("bf16", "T=1024,V=128256,ranks=8")],
    "cross_entropy/forward": [("bf16", "T=4096,V=128256"), ("bf16", "T=1024,V=262144")],
    "cross_entropy/backward": [("bf16", "T=1024,V=128256")],
    "cross_entropy/forward_backward": [("bf16", "T=1024,V=128256")],
    "vocab_parallel_cross_entropy/forward": [("bf16", "T=4096,V=128256,ranks=8")],
    "vocab_parallel_cross_entropy/backward": [("bf16", "T=1024,V=128256,ranks=8")],
    "vocab_parallel_linear_cross_entropy/forward": [("bf16", "T=1024,H=4096,V=32000,ranks=4")],
    "vocab_parallel_linear_cross_entropy/forward_backward": [("bf16", "T=1024,H=4096,V=32000,ranks=4")],
    "linear_log_prob/forward": [("bf16", "T=1024,H=4096,V=32000")],
    "linear_log_prob/backward": [("bf16", "T=1024,H=4096,V=32000")],
    "divergence/forward": [("bf16", "T=1024,V=128256,kind=jsd"), ("bf16", "T=8192,V=32000")],
    "divergence/backward": [("bf16", "T=1024,V=128256,kind=jsd")],
    "linear_divergence/forward": [("bf16", "T=1024,H=2048,G=4096,V=32000,kind=jsd")],
    "linear_divergence/backward": [("bf16", "T=1024,H=2048,G=4096,V=32000,kind=jsd")],
    "linear_policy/forward": [("bf16", "T=1024,H=4096,V=32000")],
    "linear_policy/forward_backward": [("bf16", "T=1024,H=4096,V=32000")],
    "linear_cross_entropy/forward": [("bf16", "T=1024,H=4096,V=32000")],
    "linear_cross_entropy/forward_backward": [("bf16", "T=1024,H=4096,V=32000")],
}


@dataclasses.dataclass(frozen=True)
class Cell:
    case_id: str

    @property
    def op(self):
        return self.case_id.split("/")[0]

    @property
    def pass_name(self):
        return self.case_id.split("/")[1]

    @property
    def name(self):
        """The case id without what is the same in every cell."""
        return self.case_id.replace(_SAME, "")


def all_cells():
    return [Cell(_PATTERN.format(where, dtype, axes)) for where, shapes in _SHAPES.items() for dtype, axes in shapes]


def selected(ops=(), pattern="", cases=()):
    """The cells of these ops whose case id `pattern` is found in, or exactly these cases, by id or as the
    table names them. ValueError when it is no regular expression, or nothing is left."""
    if cases:
        return [Cell(case if ",inputs=" in case else case + _SAME) for case in cases]
    cells = all_cells()
    known = {cell.op for cell in cells}
    for op in ops:
        if op not in known:
            raise ValueError(f"no gate cell of op '{op}'; there are {', '.join(sorted(known))}")
    try:
        found = re.compile(pattern)
    except re.error as error:
        raise ValueError(f"--filter '{pattern}' is not a regular expression: {error}") from error
    chosen = [cell for cell in cells if (not ops or cell.op in ops) and found.search(cell.case_id)]
    if not chosen:
        raise ValueError("no gate cell is selected")
    return chosen
