# SPDX-License-Identifier: Apache-2.0
"""Right candidates for problems.py in every dtype: sources that do what a reference does by other means, with no more rounding."""
from cheats import _HEAD as HEAD
from problems import PROBLEMS, Problem

# Each of torch's operations that add is done in another order. Within, sums of 16 bits are in float32, as torch's own are.
_MODE = """
from torch.utils._python_dispatch import TorchDispatchMode
class Order(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = other_order(func._schema.name.split("::")[1], func, args, kwargs or {})
        return func(*args, **(kwargs or {})) if made is None else made
def dims_of(x, args): return [d % x.dim() for d in args[1]] if len(args) > 1 and args[1] else list(range(x.dim()))
"""
_REVERSED = _MODE + """
def other_order(name, func, args, kwargs):
    x = args[0]
    if name in ("mm", "bmm"): return func(x.flip(-1), args[1].flip(-2))
    if name == "addmm": return func(x, args[1].flip(-1), args[2].flip(-2), **kwargs)
    if name in ("sum", "mean"): return func(x.flip(dims_of(x, args)), *args[1:], **kwargs)
    if name in ("_softmax", "_log_softmax"): return func(x.flip(args[1]), *args[1:]).flip(args[1])
    if name == "convolution": return func(x.flip(1), args[1].flip(1), *args[2:])
    if name == "native_layer_norm":
        flipped = [None if t is None else t.flip(-1) for t in (x, *args[2:4])]
        y, mean, rstd = func(flipped[0], args[1], *flipped[1:], *args[4:])
        return y.flip(-1), mean, rstd
"""
_BLOCKED = _MODE + """
def total(x, dim): return sum(part.sum(dim, keepdim=True) for part in x.float().split(7, dim))
def product(a, b): return sum(x @ y for x, y in zip(a.float().split(7, -1), b.float().split(7, -2)))
def other_order(name, func, args, kwargs):
    x = args[0]
    if name in ("mm", "bmm"): return product(x, args[1]).to(x.dtype)
    if name == "addmm" and not kwargs: return (product(args[1], args[2]) + x.float()).to(x.dtype)
    if name in ("sum", "mean") and x.is_floating_point() and x.dtype != torch.float64 and not kwargs:
        made, dims, count = x, dims_of(x, args), 1
        for d in dims: made, count = total(made, d), count * x.shape[d]
        made = made if len(args) > 2 and args[2] else made.squeeze(dims)
        return (made / count if name == "mean" else made).to(x.dtype)
    if name == "_softmax":
        e = (x.float() - x.float().amax(args[1], keepdim=True)).exp()
        return (e / total(e, args[1])).to(x.dtype)
    if name == "_log_softmax":
        d = x.float() - x.float().amax(args[1], keepdim=True)
        return (d - total(d.exp(), args[1]).log()).to(x.dtype)
"""
_OURS = {"rms_norm": "def right(x, w): return tigon.ops.rms_norm(x, w, 1e-6)", "softmax": "def right(x): return tigon.ops.softmax(x)",
         "swiglu": "def right(a, b): return tigon.ops.swiglu(a, b)", "layer_norm": "def right(x, w, b): return tigon.ops.layer_norm(x, w, b)",
         "cross_entropy": "def right(x, target): return tigon.ops.cross_entropy(x, target, reduction='none').to(x.dtype)",
         "residual norm": "def right(x, r, w): return tigon.ops.add_rms_norm(x, r, w, 1e-6)[1]"}
_LIGER = {"rms_norm": "def right(x, w): return liger.liger_rms_norm(x, w, 1e-6, 0.0, 'none', False)", "softmax": "def right(x): return liger.liger_softmax(x)",
          "swiglu": "def right(a, b): return liger.liger_swiglu(a, b)", "layer_norm": "def right(x, w, b): return liger.liger_layer_norm(x, w, b, 1e-5)",
          "cross_entropy": "def right(x, target): return liger.liger_cross_entropy(x, target, reduction='none')[0].to(x.dtype)"}
KINDS = ("eager", "float64", "reversed", "blocked", "compiled", "by hand", "tigon", "liger")


def _is_module(problem: Problem) -> bool:
    return "class Model" in problem.reference


def _around(problem: Problem, before: str, inside: str = "", compiled: bool = False) -> str:
    """The reference itself, within something."""
    if _is_module(problem):
        plain = f"    def forward(self, *a):\n        {inside or 'if True'}: return Model.forward(self, *a)"
        call = "    forward = torch.compile(Model.forward)" if compiled else plain
        return f"{HEAD}{problem.reference}{before}\nclass ModelNew(Model):\n{call}\n"
    call = "candidate = torch.compile(reference)" if compiled else f"def candidate(*a):\n    {inside or 'if True'}: return reference(*a)"
    return f"{HEAD}{problem.reference}{before}\n{call}\n"


def _within(problem: Problem, right: str, dtype: str, before: str = "") -> str:
    """A function of the arguments, with floats as `dtype` inside and as they were outside."""
    body = f"""{right}
import copy
def wide(v): return v.{dtype}() if isinstance(v, torch.Tensor) and v.is_floating_point() else v
"""
    if not _is_module(problem):
        call = ("def candidate(*a): return right(*map(wide, a)).to(next(v.dtype for v in a if isinstance(v, torch.Tensor) and v.is_floating_point()))\n")
        return f"{HEAD}{problem.reference}{before}{body}{call}"
    return f"""{HEAD}{problem.reference}{before}{body}
class ModelNew(Model):
    def forward(self, x):
        named = {{name: wide(p) for name, p in (*self.named_parameters(), *self.named_buffers())}}
        return torch.func.functional_call(Inner(self), {{"model." + name: p for name, p in named.items()}}, (wide(x),)).to(x.dtype)
class Inner(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model
    def forward(self, x): return right(self.model, x)
"""


def candidates(name: str, libraries: str = "") -> dict[str, str]:
    """Sources by what they are; of these libraries, which `libraries` are set up for."""
    problem = PROBLEMS[name]
    as_it_is = "def right(self, x): return Model.forward(self, x)" if _is_module(problem) else "right = reference"
    found = {"eager": _around(problem, ""), "float64": _within(problem, as_it_is, "double"), "reversed": _around(problem, _REVERSED, "with Order()"),
             "blocked": _around(problem, _BLOCKED, "with Order()"), "compiled": _around(problem, "", compiled=True)}
    found |= {f"by hand {i}": _within(problem, right, "float") for i, right in enumerate(problem.right)}
    if name in _OURS:
        found["tigon"] = f"{libraries}import tigon\n{HEAD}{_OURS[name]}\ncandidate = right\n"
    if name in _LIGER:
        found["liger"] = f"import liger_kernel.transformers.functional as liger\n{HEAD}{_LIGER[name]}\ncandidate = right\n"
    return found
