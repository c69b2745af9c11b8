# SPDX-License-Identifier: Apache-2.0
"""What tigon.patch finds in the causal language models of Hugging Face transformers: python -m tigon.survey --families 20 --seed 1

A tiny model of each family, made from its config without a download, runs a training step before and after tigon.patch.
The table has a line for each family: how many norms, MLPs, rotary embeddings and losses were replaced and left, and
by how much loss and gradients differ in float32, of the largest value of a tensor.
"""
import argparse
import importlib
import random
from collections import Counter
from typing import Any

import torch

from ._patch.model import patch

_KINDS = ("norm", "mlp", "rope", "loss")
_SIZES = {"hidden_size": 64, "intermediate_size": 96, "moe_intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
          "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 99, "max_position_embeddings": 64, "n_embd": 64, "n_layer": 2,
          "n_head": 4, "n_positions": 64, "d_model": 64, "num_layers": 2, "num_heads": 4, "ffn_dim": 96, "pad_token_id": 0,
          "bos_token_id": 1, "eos_token_id": 2}


def families() -> list[str]:
    """All families of causal language models, by the names of their configs."""
    return sorted(importlib.import_module("transformers.models.auto.modeling_auto").MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)


def tiny(family: str) -> Any:
    """A model of a family with 2 layers, where its config has the names that most have. Raises whatever transformers raises."""
    transformers: Any = importlib.import_module("transformers")
    config = transformers.AutoConfig.for_model(family)
    known = {n: v for n, v in _SIZES.items() if hasattr(config, n)}
    config = transformers.AutoConfig.for_model(family, **known)
    with torch.device("meta"):
        size = sum(p.numel() for p in transformers.AutoModelForCausalLM.from_config(config).parameters())
    if size > 3e7:
        raise ValueError(f"has {size / 1e6:.0f}M parameters even so")
    torch.manual_seed(0)
    return transformers.AutoModelForCausalLM.from_config(config).float().eval()


def _step(model: Any) -> dict[str, torch.Tensor]:
    tokens = torch.arange(24).reshape(2, 12) * 5 % 90 + 3
    model.zero_grad()
    loss = model(input_ids=tokens, labels=tokens, **({"skip_logits": True} if hasattr(model, "_tigon") else {})).loss
    loss.backward()
    return {"loss": loss.detach(), **{n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}}


def _difference(want: dict[str, torch.Tensor], got: dict[str, torch.Tensor]) -> float:
    floor = 1e-3 * max(w.abs().max().item() for w in want.values())
    return max((got[n] - w).abs().max().item() / max(w.abs().max().item(), floor) for n, w in want.items())


def line(family: str) -> str:
    """The family's line of the table."""
    try:
        model = tiny(family)
        want = _step(model)
    except Exception as error:  # noqa: BLE001 - a family that has no tiny model is none of ours
        return f"{family:24s} not tried: {type(error).__name__}: {' '.join(str(error).split())[:80]}"
    report = patch(model)
    left = Counter(entry.kind for entry in report.left)
    counts = "".join(f"{report.count(kind):4d}{f'-{left[kind]}' if left[kind] else '':3s} " for kind in _KINDS)
    try:
        said = f"{_difference(want, _step(model)):.1e}"
    except Exception as error:  # noqa: BLE001 - this is what the survey is for
        said = f"FAILS: {type(error).__name__}: {' '.join(str(error).split())[:80]}"
    reasons = "; ".join(sorted({f"{e.kind} {e.what[:70]}" for e in report.left}))
    return f"{family:24s}{counts} {said}  {reasons}".rstrip()


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(prog="python -m tigon.survey", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--families", type=int, default=0, help="how many, drawn by chance; 0 for all")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    chosen = families()
    if 0 < given.families < len(chosen):
        chosen = sorted(random.Random(given.seed).sample(chosen, given.families))
    print(f"{'family':24s}" + "".join(f"{kind:>4s}    " for kind in _KINDS) + " differs  left (-N) because it")
    for family in chosen:
        print(line(family), flush=True)


if __name__ == "__main__":
    main()
