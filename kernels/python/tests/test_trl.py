# SPDX-License-Identifier: Apache-2.0
"""tigon.patch with TRL's trainers, which have a head of their own: losses, metrics and norms of gradients as without the patch."""
import importlib.util
import tempfile
import unittest
import warnings

import tigon
import torch
from test_patch import make

HAS_TRL = all(importlib.util.find_spec(name) is not None for name in ("transformers", "trl", "datasets"))
STEPS = 3
# What the trainers say of a step. Not how often a reward is larger: at first all of them are 0, but for roundings.
SAID = ("loss", "grad_norm", "entropy", "mean_token_accuracy", "rewards/margins", "logps/chosen", "logps/rejected", "reward", "reward_std",
        "completions/mean_length", "clip_ratio/region_mean")


def tokenizer():
    """Of words w3 to w98."""
    import tokenizers
    import transformers

    words = {"<pad>": 0, "<s>": 1, "</s>": 2, **{f"w{i}": i for i in range(3, 99)}}
    model = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="<pad>"))
    model.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=model, pad_token="<pad>", bos_token="<s>", eos_token="</s>")


def text(seed, least):
    """Some words, another number for each seed."""
    random = torch.Generator().manual_seed(seed)
    return " ".join(f"w{i}" for i in torch.randint(3, 99, (least + seed % 7,), generator=random).tolist())


def samples(*columns):
    import datasets

    return datasets.Dataset.from_dict({name: [text(100 * place + i, 4) for i in range(8 * STEPS)] for place, name in enumerate(columns)})


def settings(folder):
    return {"output_dir": folder, "per_device_train_batch_size": 2, "gradient_accumulation_steps": 2, "max_steps": STEPS, "learning_rate": 1e-3,
            "logging_steps": 1, "report_to": [], "use_cpu": True, "bf16": False, "disable_tqdm": True, "seed": 1, "save_strategy": "no",
            "gradient_checkpointing": False}


def sft(model, folder):
    import trl

    return trl.SFTTrainer(model=model, args=trl.SFTConfig(**settings(folder)), train_dataset=samples("prompt", "completion"),
                          processing_class=tokenizer())


def dpo(model, folder):
    import trl

    return trl.DPOTrainer(model=model, ref_model=make("llama"), args=trl.DPOConfig(**settings(folder)),
                          train_dataset=samples("prompt", "chosen", "rejected"), processing_class=tokenizer())


def reward(completion_ids, **_):
    """More for even tokens: no completion is worth what another is."""
    return [sum(1.0 - token % 2 for token in tokens) for tokens in completion_ids]


def grpo(model, folder):
    import trl

    # Two updates for the same completions, so ratios are not 1. No reference model: TRL loads it by a name.
    given = {**settings(folder), "per_device_train_batch_size": 4, "num_generations": 4, "max_completion_length": 12, "num_iterations": 2}
    return trl.GRPOTrainer(model=model, reward_funcs=reward, args=trl.GRPOConfig(**given), train_dataset=samples("prompt"), processing_class=tokenizer())


def train(trainer_of, model):
    """What the trainer says of each step."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer = trainer_of(model, folder)
        trainer.train()
        history = [h for h in trainer.state.log_history if "loss" in h]
    return [{name: h[name] for name in SAID if name in h} for h in history]


@unittest.skipUnless(HAS_TRL, "trl is not installed")
class TrlTest(unittest.TestCase):
    def same(self, trainer_of, least):
        want = train(trainer_of, make("llama"))
        self.assertEqual(len(want), STEPS)
        self.assertGreaterEqual(len(want[0]), least)
        for recompute in (None, "cheap"):
            model = make("llama")
            report = tigon.patch(model, strict=True, recompute=recompute)
            got = train(trainer_of, model)
            for w, g in zip(want, got, strict=True):
                self.assertEqual(w.keys(), g.keys())
                for name in w:
                    self.assertAlmostEqual(g[name], w[name], delta=2e-4 * max(1.0, abs(w[name])), msg=f"{name}, {recompute}")
            if recompute:
                self.assertEqual(len(report.bytes_saved()), 2)

    def test_sft(self):
        self.same(sft, 4)

    def test_dpo(self):
        self.same(dpo, 6)

    def test_grpo(self):
        self.same(grpo, 6)


if __name__ == "__main__":
    unittest.main()
