# SPDX-License-Identifier: Apache-2.0
"""A causal language model's own forward, from its body's result to its loss, over a small body and a small head."""
import inspect
from typing import Any

import torch
from torch import Tensor, nn

from .stand_in import stand_in

WIDTH = 8
_TOKENS = torch.arange(12).reshape(2, 6) % 4
LABELS = torch.tensor([[0, 1, -100, 3, 2, 1], [1, 3, 2, -100, -100, 0]])
VALID = 7  # labels that count, once the first of each row is shifted away


class _Outputs(tuple[Tensor, ...]):
    """What a body gives: its last hidden state, by name and by index; all else that a model may ask for is None."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self[0] if name == "last_hidden_state" else None


class _Body(nn.Module):
    """Gives the same hidden states, which are its parameter, for whatever it gets."""

    def __init__(self, hidden: Tensor, real: nn.Module):
        super().__init__()
        self.hidden = nn.Parameter(hidden)
        self.__dict__["real"] = real  # not as a child

    def forward(self, *args: Any, **named: Any) -> _Outputs:
        """Its parameter as a body's outputs."""
        return _Outputs((self.hidden,))

    def __getattr__(self, name: str) -> Any:
        """What the real body has; a part of it, which some models call in place of the body, gives the same hidden states."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            if "real" not in vars(self):  # a copy that is being made
                raise
            value = getattr(vars(self)["real"], name)
            return self if isinstance(value, nn.Module) else value


def _body_name(model: nn.Module, head: nn.Module) -> str | None:
    """The name of the body: where the model says, or the only other part that has parameters."""
    prefix = getattr(model, "base_model_prefix", "")
    if prefix in model._modules:
        return str(prefix)
    others = [n for n, child in model.named_children() if child is not head and next(child.parameters(), None) is not None]
    return others[0] if len(others) == 1 else None


def inputs_of(model: nn.Module) -> dict[str, Any]:
    """What a small model is called with, but for labels. What a mixture of experts adds to its loss is its routers', which are in no small body."""
    has_routers = "output_router_logits" in inspect.signature(type(model).forward).parameters
    return {"input_ids": _TOKENS, **({"output_router_logits": False} if has_routers else {})}


def small_model(model: Any, head: nn.Module) -> Any:
    """The model's code over a small body and head, in float32 on the CPU, and the head's name; or the reason why there is none."""
    names = {id(child): name for name, child in model.named_children()}
    body = _body_name(model, head)
    if id(head) not in names or body is None:
        return "has its body or its head elsewhere than right below it"
    random = torch.Generator().manual_seed(4)
    rows = getattr(head, "out_features", 0)
    small = nn.Linear(WIDTH, rows, bias=getattr(head, "bias", None) is not None)
    with torch.no_grad():
        for parameter in small.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=random) * 4)  # so that a softcap shows
    children = {**model._modules, names[id(head)]: small, body: _Body(torch.randn(2, 6, WIDTH, generator=random), model._modules[body])}
    return stand_in(model, model._parameters, children), names[id(head)]
