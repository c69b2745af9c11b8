# SPDX-License-Identifier: Apache-2.0
"""How far results are from the oracle, for formats that ask for such figures; the verdict is by budgets, not by them."""
from torch import Tensor

from .._testing.made import Made
from .._testing.oracle import Oracle

_SMALL = 1e-8  # what FlashInfer-Bench adds to a value that it divides by


class Errors:
    """The largest of a candidate's finite results so far."""

    def __init__(self) -> None:
        self.found: dict[str, float | None] = {"max_absolute_error": None, "max_relative_error": None}

    def add(self, made: Made, oracle: Oracle) -> None:
        """Looks at the results of a call that have the right shape."""
        for name, budget in oracle.budgets.items():
            got, exact = made.values.get(name), budget.exact
            if isinstance(got, Tensor) and got.shape == exact.shape and got.numel() and not got.is_complex():
                off = (got.detach().to(exact.device).double() - exact.double()).abs()
                for figure, error in (("max_absolute_error", off), ("max_relative_error", off / (exact.double().abs() + _SMALL))):
                    finite = error[error.isfinite()]
                    if finite.numel():
                        self.found[figure] = max(self.found[figure] or 0.0, float(finite.max()))
