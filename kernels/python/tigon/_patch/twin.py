# SPDX-License-Identifier: Apache-2.0
"""Whether a patched module does what the module did: its results and the gradients of all that goes in, on small tensors.

In float32 both must agree but for the order of sums. In bfloat16 the patched module gives the same dtype, and may not be
worse than the module itself, both measured from the module in float32.
"""
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from .stand_in import shallow

# Of the largest value: sums over some hundred products in another order.
TOLERANCE = 1e-5
# One rounding more than the module's own makes its error sqrt(2) times as large.
WORSE = 1.5
# And an error that one rounding of the result to bfloat16 makes is none.
ROUNDING = 2.0**-9

Call = Callable[[nn.Module], Any]


def why_not(module: nn.Module, patched: nn.Module, calls: Sequence[Call]) -> str | None:
    """None if the patched module does what the module does, else the reason as the end of a sentence.

    module, patched: with float32 parameters of the same values; `calls`: each runs a module once and gives a tensor. What
    has gradients are the modules' parameters.
    """
    for call in calls:
        want, got = step(module, call), step(patched, call)
        for name, w in want.items():
            error, largest = (got[name] - w).abs().max().item(), w.abs().max().item()
            if not error <= TOLERANCE * largest:  # also true for NaN
                return f"computes something else: {name} differs by {error / max(largest, 1e-30):.1e}"
    return _why_worse(module, patched, calls[0])


def _why_worse(module: nn.Module, patched: nn.Module, call: Call) -> str | None:
    rounded = _converted(module, torch.bfloat16)
    exact, tried = _converted(rounded, torch.float32), _converted(patched, torch.bfloat16)
    with torch.no_grad():
        dtypes = call(rounded).dtype, call(tried).dtype
    if dtypes[0] != dtypes[1]:
        return f"gives {dtypes[0]} for torch.bfloat16, and its op {dtypes[1]}"
    want, plain, got = (step(m, call) for m in (exact, rounded, tried))
    for name, w in want.items():
        allowed = WORSE * _rms(plain[name] - w) + ROUNDING * _rms(w)
        if not _rms(got[name] - w) <= allowed:
            return f"would be worse in bf16: {name} is off by {_rms(got[name] - w) / max(allowed, 1e-30):.1f} times what is allowed"
    return None


def step(module: nn.Module, call: Call) -> dict[str, Tensor]:
    """The result of a call and the gradient of each parameter, in float64; the upstream gradient is random."""
    result = call(module)
    upstream = torch.randn(result.shape, generator=torch.Generator().manual_seed(5)) if result.dim() else torch.ones(())
    parameters = dict(module.named_parameters())
    gradients = torch.autograd.grad(result, list(parameters.values()), upstream.to(result.dtype), allow_unused=True)
    found = {"the result": result.detach().double()}
    for (name, parameter), gradient in zip(parameters.items(), gradients):
        found[f"the gradient of {name}"] = torch.zeros_like(parameter).double() if gradient is None else gradient.double()
    return found


def _converted(module: nn.Module, dtype: torch.dtype) -> nn.Module:
    """A copy of a stand-in with parameters of another dtype; all else is shared."""
    copied = shallow(module)
    copied.__dict__["_parameters"] = {n: p if p is None else nn.Parameter(p.detach().to(dtype)) for n, p in module._parameters.items()}
    copied.__dict__["_modules"] = {n: m if m is None else _converted(m, dtype) for n, m in module._modules.items()}
    return copied


def _rms(x: Tensor) -> float:
    return x.pow(2).mean().sqrt().item()


class Fed(nn.Module):
    """A module together with its input, so that the input is a parameter among the others."""

    def __init__(self, module: nn.Module, x: Tensor):
        super().__init__()
        self.module = module
        self.input = nn.Parameter(x)

    def run(self, factor: float) -> Any:
        """The module's result for the input, scaled."""
        return type(self.module).forward(self.module, self.input * factor)


def fed(factor: float) -> Call:
    """The call of a Fed module with its input times a factor."""
    def call(module: nn.Module) -> Any:
        assert isinstance(module, Fed)
        return module.run(factor)
    return call
