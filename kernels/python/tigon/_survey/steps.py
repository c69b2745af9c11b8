# SPDX-License-Identifier: Apache-2.0
"""A training step of a model, how far two steps are apart, and when that is too far."""
import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

Step = dict[str, Tensor]
TOLERANCE = 1e-4  # float32: sums in another order, through all layers
# bfloat16: two runs of one model whose roundings differ are that far apart by chance.
WORSE = 1.5


def batch(model: Any, seed: int = 1) -> dict[str, Any]:
    """Tokens, and labels of which some do not count."""
    vocabulary = model.config.get_text_config().vocab_size
    tokens = torch.randint(3, min(150, vocabulary), (2, 12), generator=torch.Generator().manual_seed(seed))
    labels = tokens.clone()
    labels[0, :3] = -100
    return {"input_ids": tokens, "labels": labels, "use_cache": False}


def step(model: nn.Module, given: dict[str, Any]) -> Step:
    """The loss, and the gradient of each parameter that has one."""
    torch.manual_seed(1)
    model.zero_grad()
    loss = _loss_of(model(**given))
    loss.backward()  # type: ignore[no-untyped-call]
    gradients = {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    return {"the loss": loss.detach().clone(), **gradients}


def _loss_of(result: Any) -> Tensor:
    """The model's own loss; of a model that has none a sum of its first result, weighted at random."""
    loss = getattr(result, "loss", None)
    if isinstance(loss, Tensor):
        return loss
    first: Tensor = result if isinstance(result, Tensor) else result[0]
    weight = torch.randn(first.shape, generator=torch.Generator().manual_seed(5)).to(first)
    return (first * weight).sum()


def errors(want: Step, got: Step) -> dict[str, float]:
    """How far each tensor is off, of its largest value, or of a thousandth of the largest gradient where that is more."""
    floor = 1e-3 * max((w.abs().max().item() for n, w in want.items() if n != "the loss"), default=0.0)
    return {n: (got[n] - w).abs().max().item() / max(w.abs().max().item(), floor, 1e-30) for n, w in want.items()}


def difference(want: Step, got: Step) -> tuple[float, str]:
    """The largest error and where it is; infinite where others have gradients, or one of them is no number."""
    if want.keys() != got.keys():
        return float("inf"), "which parameters have gradients"
    return max((float("inf") if e != e else e, n) for n, e in errors(want, got).items())


def distance(exact: Step, got: Step) -> float:
    """The norm of all errors of the gradients over that of the gradients."""
    names = [n for n in exact if n != "the loss"]
    error = sum((got[n].double() - exact[n].double()).pow(2).sum() for n in names)
    return float((error / sum(exact[n].double().pow(2).sum() for n in names)) ** 0.5)


def same_bits(want: Step, got: Step) -> bool:
    """Whether two steps are equal."""
    return want.keys() == got.keys() and all(torch.equal(w, got[n]) for n, w in want.items())


def is_as_exact(model: nn.Module, given: dict[str, Any], want: Step, got: Step) -> bool:
    """Whether each tensor is as near to the model in float64 as the model's own in float32 is."""
    try:
        exact = step(copy.deepcopy(model).double(), converted(given, torch.float64))
    except Exception:  # noqa: BLE001 - it does not run in float64
        return False
    own, ours = errors(exact, want), errors(exact, got)
    return all(ours[n] <= WORSE * own[n] + TOLERANCE for n in exact)


def converted(given: dict[str, Any], dtype: torch.dtype) -> dict[str, Any]:
    """The same batch with floating-point tensors of another dtype."""
    return {n: v.to(dtype) if isinstance(v, Tensor) and v.is_floating_point() else v for n, v in given.items()}


def how_much_worse(exact: nn.Module, plain: nn.Module, patched: nn.Module, given: Sequence[dict[str, Any]]) -> float:
    """The error of a patched model's gradients in bfloat16 over that of the model's own, each the lower quartile of some batches.

    exact: the model in float32 with the same parameters; plain: the model in bfloat16; patched: the same, patched.
    """
    want = [step(exact, converted(one, torch.float32)) for one in given]

    def error(model: nn.Module) -> float:
        return sorted(distance(w, step(model, converted(one, torch.bfloat16))) for w, one in zip(want, given))[len(given) // 4]
    return error(patched) / max(error(plain), torch.finfo(torch.bfloat16).eps)
