# SPDX-License-Identifier: Apache-2.0
"""The loss of a causal language model, computed from its head's input and weight: the logits are never held.

The model's forward notes the targets; its head, called as ever, computes the loss and gives logits without columns; the
model's loss function gives that loss. So hooks on the head, tied weights, and what a model adds to its loss work as they
did. What a model does to its head's result is found by running the model's own forward over a small body.
"""
import dataclasses
import functools
import threading
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .. import ops
from . import twin
from .become import STATE, become, original, state_of
from .plain import are_usable
from .small_model import LABELS, VALID, inputs_of, small_model
from .stand_in import has_code_of_its_own, shallow

KIND = "loss"


class Slot(threading.local):
    """What a forward of the model asks of the head, and what the head answers; one for each thread."""
    target: Tensor | None = None
    normaliser: Tensor | None = None
    ignore_index: int = -100
    loss: Tensor | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> "Slot":
        return memo.setdefault(id(self), Slot())  # type: ignore[no-any-return]

    def clear(self) -> None:
        """As before a forward."""
        self.target = self.normaliser = self.loss = None
        self.ignore_index = -100


@dataclasses.dataclass(frozen=True)
class Recipe:
    """What a model does to its head's result before the loss: softcap * tanh(scale * logits / softcap)."""
    scale: float = 1.0
    softcap: float = 0.0

    def __str__(self) -> str:
        settings = [f"{name}={value:g}" for name, value, none in (("scale", self.scale, 1.0), ("softcap", self.softcap, 0.0)) if value != none]
        return ", ".join(("linear_cross_entropy", *settings))


@dataclasses.dataclass
class State:
    """Of a patched model and of its head, which share the slot."""
    recipe: Recipe
    slot: Slot
    head: str = ""  # its name below the model
    skip_logits: bool = True
    replaced: Any = None  # the model's own loss function
    had_function: bool = False  # the model itself, not its class, had one


class Loss:
    """A model's loss function: the head's loss where the head made it, else the function that it was."""

    def __init__(self, slot: Slot, otherwise: Any):
        self._slot, self._otherwise = slot, otherwise

    def __call__(self, logits: Any = None, labels: Any = None, *others: Any, **named: Any) -> Any:
        if self._slot.loss is not None:
            return self._slot.loss
        if logits is not None:
            named["logits"] = logits
        return self._otherwise(labels=labels, **named) if not others else self._otherwise(named.pop("logits"), labels, *others, **named)


def model_forward(self: nn.Module, *args: Any, labels: Tensor | None = None, skip_logits: bool | None = None, **named: Any) -> Any:
    """The model's forward. With labels its loss comes without logits: in training, or where skip_logits=True asks for it."""
    state: State = state_of(self)
    skip = self.training and state.skip_logits if skip_logits is None else skip_logits
    given = named if labels is None else {**named, "labels": labels}
    if labels is None or not skip or not _is_as_patched(self, state.head, state.slot):
        return original(self).forward(self, *args, **given)
    slot = state.slot
    slot.clear()
    slot.ignore_index = named.get("ignore_index", -100)
    shifted = named.get("shift_labels")
    slot.target = F.pad(labels, (0, 1), value=slot.ignore_index)[..., 1:].contiguous() if shifted is None else shifted.contiguous()
    items = named.get("num_items_in_batch")
    slot.normaliser = None if items is None else torch.as_tensor(items, dtype=torch.float32).reshape(1)
    try:
        result = original(self).forward(self, *args, **given)
        made = slot.loss is not None
    finally:
        slot.clear()
    return _without_logits(result) if made else result


def _is_as_patched(model: nn.Module, head: str, slot: Slot) -> bool:
    """Whether the head is still the one that was changed, not one that wraps it, and the loss function still ours."""
    state = vars(model._modules[head]).get(STATE, (None, None))[1]
    return isinstance(state, State) and state.slot is slot and isinstance(vars(model).get("_loss_function"), Loss)


def _without_logits(result: Any) -> Any:
    """The result with None for its logits, which have no columns; a tuple keeps them, since what follows has its place."""
    if not isinstance(result, dict) or "logits" not in result:
        return result
    return type(result)(**{name: value for name, value in result.items() if name != "logits"})


def head_forward(self: nn.Module, x: Tensor) -> Any:
    """The loss where the model's forward asks for it, else the logits."""
    state: State = state_of(self)
    slot, weight, bias = state.slot, self.weight, self.bias
    target = slot.target
    together = (x, weight, bias) if not torch.is_autocast_enabled(x.device.type) else (x,)
    if target is None or target.shape != x.shape[:-1] or not are_usable(*together):  # type: ignore[arg-type]
        slot.target = None
        return original(self).forward(self, x)
    normaliser = None if slot.normaliser is None else slot.normaliser.to(x.device)
    scaled = x if state.recipe.scale == 1.0 else x * state.recipe.scale
    return ops.linear_cross_entropy(scaled, weight, target.to(x.device), bias=bias, normaliser=normaliser,  # type: ignore[arg-type]
                                    softcap=state.recipe.softcap, ignore_index=slot.ignore_index)


def head_call(self: nn.Module, x: Tensor) -> Any:
    """What forward gives goes through the hooks of the head; then a loss is kept, and logits without columns take its place."""
    slot = state_of(self).slot
    result = nn.Module.__call__(self, x)
    if slot.target is None:
        return result
    slot.loss, slot.target = result, None
    return x.new_zeros((*x.shape[:-1], 0))


def looks_like(module: nn.Module) -> bool:
    """Whether a module is a model with a head and a loss function."""
    return hasattr(type(module), "loss_function") and hasattr(type(module), "get_output_embeddings") and _head(module) is not None


def _head(model: Any) -> Any:
    return model.get_output_embeddings()


def find(model: nn.Module) -> Recipe | str:
    """How a model makes its loss of its head's result, or the reason why that cannot be said, as the end of a sentence."""
    head = _head(model)
    if has_code_of_its_own(model) or has_code_of_its_own(head):
        return "or its head has a forward of its own, bound by another tool"
    if type(head).forward is not nn.Linear.forward:
        return f"has a head, {type(head).__name__}, whose code is not that of nn.Linear"
    found = small_model(model, head)
    if isinstance(found, str):
        return found
    small, name = found
    try:
        recipe = _recipe(small, small._modules[name])
        return recipe if isinstance(recipe, str) else _verified(small, name, recipe)
    except Exception as error:  # noqa: BLE001 - whatever it is, nothing is known of the loss then
        return f"does not run over a small body: {type(error).__name__}: {str(error)[:80]}"


def _recipe(small: Any, head: nn.Module) -> Recipe | str:
    """From what a model gives as logits, and what its head gave."""
    seen: list[Tensor] = []
    handle = head.register_forward_hook(lambda module, given, made: seen.append(made))
    with torch.no_grad():
        logits = small(**inputs_of(small)).logits
    handle.remove()
    if len(seen) != 1 or seen[0].shape != logits.shape:
        return f"calls its head {len(seen)} times, or changes the shape of what that gives"
    raw, got = seen[0].double(), logits.double()
    big = raw.abs() > 0.1 * raw.abs().max()
    for softcap in (0.0, *_numbers(small.config)):
        inner = softcap * torch.atanh((got / softcap).clamp(-0.999999, 0.999999)) if softcap else got
        kept = big & (got.abs() < 0.95 * softcap) if softcap else big
        ratio = (inner / raw)[kept]
        if ratio.numel() and ratio.median() > 0 and (ratio - ratio.median()).abs().max() <= 1e-3 * ratio.median():
            scale = float(f"{ratio.median().item():.6g}")
            if scale != 1.0 and head.bias is not None:
                return "scales the logits of a head with a bias"
            return Recipe(scale, softcap)
    return "changes its head's logits in a way that is neither a factor nor a softcap"


def _numbers(config: Any) -> list[float]:
    """All positive numbers of a config: one of them may be a softcap."""
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    return sorted({float(v) for v in vars(text).values() if isinstance(v, (int, float)) and not isinstance(v, bool) and v > 1})


def _verified(small: Any, name: str, recipe: Recipe) -> Recipe | str:
    patched = shallow(small)
    patched.__dict__["_modules"] = {**small._modules, name: shallow(cast(nn.Module, small._modules[name]))}
    _change(patched, name, recipe, skip_logits=True)
    small.training = patched.training = True
    plain = {"labels": LABELS}
    calls = [functools.partial(_loss_of, given=given) for given in (plain, {**plain, "num_items_in_batch": torch.tensor(2 * VALID)})]
    return twin.why_not(small, patched, calls) or recipe


def _loss_of(model: Any, given: dict[str, Any]) -> Any:
    return model(**inputs_of(model), **given).loss


def apply(model: nn.Module, recipe: Any, skip_logits: bool) -> None:
    """Puts the op behind the model's body."""
    head = _head(model)
    _change(model, next(name for name, child in model.named_children() if child is head), cast(Recipe, recipe), skip_logits)


def _change(model: Any, head: str, recipe: Recipe, skip_logits: bool) -> None:
    slot = Slot()
    state = State(recipe, slot, head, skip_logits, vars(model).get("_loss_function"), "_loss_function" in vars(model))
    function = Loss(slot, model.loss_function)
    become(model._modules[head], head_forward, State(recipe, slot), head_call)
    become(model, _with_signature(type(model).forward), state)
    model.loss_function = function


@functools.cache
def _with_signature(forward: Any) -> Any:
    """model_forward with the signature of the model's forward, by which trainers decide what they give it."""
    @functools.wraps(forward)
    def call(self: nn.Module, *args: Any, **named: Any) -> Any:
        return model_forward(self, *args, **named)
    return call


def restore_function(model: Any) -> None:
    """Gives a patched model its own loss function back."""
    state: State = state_of(model)
    if state.had_function:
        model.__dict__["_loss_function"] = state.replaced
    else:
        del model.__dict__["_loss_function"]
