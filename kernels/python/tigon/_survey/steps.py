# SPDX-License-Identifier: Apache-2.0
"""A training step of a causal language model, and how far two steps are apart."""
from typing import Any

import torch
from torch import Tensor, nn

Step = dict[str, Tensor]


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
    loss = model(**given).loss
    loss.backward()
    gradients = {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    return {"the loss": loss.detach().clone(), **gradients}


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
