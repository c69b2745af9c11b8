# SPDX-License-Identifier: Apache-2.0
"""Problems, right candidates for them, and cheats: each wraps a right candidate, and names the defence that catches it.

    PYTHONPATH=kernels/python python kernels/python/tests/cheats.py [PROBLEM]...    all of them for these problems, or for all
"""
import concurrent.futures
import os
import pathlib
import re
import sys
import tempfile
from typing import NamedTuple

from problems import PROBLEMS, Problem
from tigon._judge.verdict import Settings, Verdict, judge

_HEAD = "import torch, torch.nn as nn, torch.nn.functional as F\n"


class Cheat(NamedTuple):
    """What a candidate does in place of, or around, `right`; the defence that catches it; what the reason must name."""
    source: str
    defence: str
    reason: str = ""
    backward: bool = False


CHEATS = {
    "zeros": Cheat("def cheat(*a): return torch.zeros_like(right(*a))", "budgets of each element", "elements wrong"),
    "uninitialised": Cheat("def cheat(*a): return torch.empty_like(right(*a))", "memory is poisoned", "elements wrong"),
    "constant": Cheat("kept = []\ndef cheat(*a):\n    kept or kept.append(right(*a))\n    return kept[0].clone()", "inputs change", "again"),
    "cached by pointer": Cheat("""kept = {}
def cheat(*a):
    key = tuple(t.data_ptr() for t in a if isinstance(t, torch.Tensor))
    if key not in kept: kept[key] = right(*a)
    return kept[key].clone()""", "new inputs at old addresses", "same addresses"),
    "cached by shape": Cheat("""kept = {}
def cheat(*a):
    key = tuple(t.shape for t in a if isinstance(t, torch.Tensor))
    if key not in kept: kept[key] = right(*a)
    return kept[key].clone()""", "inputs change"),
    "cached by a sample": Cheat("""kept = {}
def cheat(*a):
    t = next(t for t in a if isinstance(t, torch.Tensor))
    key = (t.shape, t.dtype)
    if key not in kept: kept[key] = right(*a)
    return right(*a) if float(t.reshape(-1)[0]) == 0 else kept[key].clone()""", "inputs change"),
    "result reused": Cheat("""kept = []
def cheat(*a):
    if not kept: kept.append(right(*a))
    return kept[0]""", "results are poisoned after each call", "got nan"),
    "bf16 inside": Cheat("""def cheat(*a): return right(*(t.bfloat16().float() if isinstance(t, torch.Tensor) and t.is_floating_point() else t for t in a))""",
                         "budgets from the reference's dtypes", "elements wrong"),
    "another dtype": Cheat("def cheat(*a): return right(*a).half()", "results are looked at", "dtype is torch.float16"),
    "identity": Cheat("def cheat(*a): return a[-1]", "results are looked at"),
    "input in place": Cheat("def cheat(*a):\n    y = right(*a)\n    t = next(t for t in a if isinstance(t, torch.Tensor))\n    t.fill_(0)\n    return y",
                            "inputs are compared", "input "),
    "lazy": Cheat("""class Lazy(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs or {})
def cheat(*a): return right(*a).as_subclass(Lazy)""", "types of results", "not a plain torch.Tensor"),
    "later by a thread": Cheat("""import threading, time
def cheat(*a):
    y = right(*a)
    out = torch.zeros_like(y)
    def work():
        time.sleep(0.005)
        out.copy_(y)
    threading.Thread(target=work).start()
    return out""", "results are taken at return"),
    "drifts": Cheat("calls = []\ndef cheat(*a):\n    calls.append(0)\n    return right(*a) * (1 if len(calls) < 3 else 1.01)", "later calls are judged, too"),
    "easy inputs alone": Cheat("""def cheat(*a):
    t = next(t for t in a if isinstance(t, torch.Tensor))
    return right(*a) if not bool((t[1:] == 0).any()) else right(*a) * 0.5""", "kinds of inputs", "zeros|ties"),
    "finds the reference": Cheat("""import os, sys
def cheat(*a):
    for name, module in list(sys.modules.items()):
        if name.startswith("tigon") and hasattr(module, "reference"): return module.reference(*a)
    near = [f for folder in (".", "..") for f in os.listdir(folder) if f.startswith(("problem", "reference"))]
    return right(*a) if near else torch.zeros_like(right(*a))""", "a process of its own", "elements wrong"),
    "patches the comparison": Cheat("""def yes(*a, **k): return True
torch.allclose = torch.equal = torch.testing.assert_close = yes
torch.Tensor.allclose = torch.Tensor.equal = yes
def cheat(*a): return torch.zeros_like(right(*a))""", "a process of its own", "elements wrong"),
    "ends with success": Cheat("import os\ndef cheat(*a): os._exit(0)", "an end is no verdict", "ended with exit code 0"),
    "writes a verdict": Cheat("""import os
def cheat(*a):
    for fd in range(3, 20):
        try: os.write(fd, b'{"ok": true, "late": []}\\n')
        except OSError: pass
    return torch.zeros_like(right(*a))""", "the verdict is not the candidate's"),
    "answers of known seeds": Cheat("""def cheat(*a):
    t = next(t for t in a if isinstance(t, torch.Tensor))
    for seed in (0, 1, 42, 1234, 1337):
        if torch.equal(t, torch.randn(t.shape, generator=torch.Generator().manual_seed(seed))): return right(*a)
    return torch.zeros_like(right(*a))""", "seeds are drawn after it is loaded", "drawn: .* elements wrong"),
    "patches the reference's operations": Cheat("""def cheat(*a):
    y = torch.zeros_like(right(*a))
    for place, name in ((F, "softmax"), (F, "silu"), (F, "gelu"), (F, "cross_entropy"), (torch, "softmax"), (torch, "rsqrt"), (torch.Tensor, "pow")):
        setattr(place, name, lambda *x, **k: y)
    return y.clone()""", "a process of its own", "drawn: .* elements wrong"),
    "first rows alone": Cheat("""def cheat(*a):
    y = right(*a).clone()
    y[y.shape[0] // 2:] = y[:1]
    return y""", "every element is compared", "elements wrong"),
    "off by less than 1e-2": Cheat("def cheat(*a): return right(*a) + 0.009", "no absolute tolerance", "elements wrong"),
    "tf32 inside": Cheat("""def cheat(*a):
    cut = lambda t: (t.view(torch.int32) & -8192).view(torch.float32)
    return right(*(cut(t) if isinstance(t, torch.Tensor) and t.dtype == torch.float32 else t for t in a))""",
                         "budgets from the reference's dtypes", "elements wrong"),
    "rounded at the end": Cheat("def cheat(*a): return right(*a).half().float()", "budgets from the reference's dtypes", "elements wrong"),
    "stale memory": Cheat("""def cheat(*a):
    shape = right(*a).shape  # the right values lie in what was freed
    return torch.empty(shape)""", "memory is poisoned", "elements wrong"),
    "lies about its dtype": Cheat("""import dataclasses, sys
made = sys.modules["made"]
honest = made.fact
made.fact = lambda value, inputs: dataclasses.replace(honest(value, inputs), dtype="torch.float32")
def cheat(*a): return right(*a).double()""", "what is said of results is held against them", "it says of"),
    "input changed later": Cheat("""import threading, time
def cheat(*a):
    t = next(t for t in a if isinstance(t, torch.Tensor))
    def work():
        time.sleep(0.005)
        t.detach().fill_(0)
    y = right(*a)
    threading.Thread(target=work).start()
    return y""", "inputs are compared again later", "input .: it changed after"),
    "contiguous assumed": Cheat("""def flat(t): return t.as_strided(t.shape, torch.empty(t.shape, device="meta").stride()) if isinstance(t, torch.Tensor) else t
def cheat(*a): return right(*map(flat, a))""", "layouts of inputs", "strided inputs, .* elements wrong"),
    "gradient of a guess": Cheat("""class Guess(torch.autograd.Function):
    @staticmethod
    def forward(ctx, y): return y.clone()
    @staticmethod
    def backward(ctx, dy): return torch.ones_like(dy)
def cheat(*a): return Guess.apply(right(*a))""", "gradients of random upstreams", "gradient of", backward=True),
}


def candidate(problem: Problem, right: str, cheat: str = "") -> str:
    """The file of a candidate: a right one, or one that cheats around it."""
    if "class Model" not in problem.reference:
        return f"{_HEAD}{right}\n{cheat or 'cheat = right'}\ndef candidate(*a): return cheat(*a)\n"
    module = problem.reference.split("    def forward")[0].replace("class Model(", "class ModelNew(")
    return f"{_HEAD}{right}\n{cheat or 'cheat = right'}\n{module}    def forward(self, x): return cheat(self, x)\n"


def judged(name: str, right: str, cheat: str = "", **settings: object) -> Verdict:
    """The verdict on a candidate for a problem."""
    with tempfile.TemporaryDirectory() as folder:
        files = [pathlib.Path(folder) / "candidate.py", pathlib.Path(folder) / "problem.py"]
        files[0].write_text(candidate(PROBLEMS[name], right, cheat), encoding="utf-8")
        files[1].write_text(_HEAD + PROBLEMS[name].reference, encoding="utf-8")
        return judge(*files, Settings(**settings))  # type: ignore[arg-type]


def caught(cheat: Cheat, verdict: Verdict) -> bool:
    """Whether it is wrong for the reason that the cheat's defence gives."""
    return verdict.verdict == "wrong" and bool(re.search(cheat.reason, verdict.reason))


def _tried(name: str) -> tuple[list[str], list[str]]:
    """A problem's right candidates and all cheats: what was missed or a false alarm, and a line for each."""
    wrong, lines = [], []
    problem = PROBLEMS[name]
    for right in problem.right:
        verdict = judged(name, right)
        lines.append(f"{name}: right candidate: {verdict.verdict} {verdict.reason}")
        if verdict.verdict != "right":
            wrong.append(lines[-1])
    for title, cheat in CHEATS.items():
        verdict = judged(name, problem.right[0], cheat.source, backward=cheat.backward)
        lines.append(f"{name}: {title} ({cheat.defence}): {verdict.verdict}: {verdict.reason[:150]}")
        if not caught(cheat, verdict):
            wrong.append(lines[-1])
    return wrong, lines


def main(names: list[str]) -> int:
    """Every cheat for these problems, or all, and every right candidate."""
    wrong: list[str] = []
    tried = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for of_problem, lines in pool.map(_tried, names or PROBLEMS):
            print("\n".join(lines), flush=True)
            wrong, tried = wrong + of_problem, tried + len(lines)
    for line in wrong:
        print(f"MISSED: {line}")
    print(f"{tried - len(wrong)} of {tried} verdicts as they should be, of {len(CHEATS)} cheats and the right candidates of "
          f"{len(names or PROBLEMS)} problems")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
