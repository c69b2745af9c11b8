# SPDX-License-Identifier: Apache-2.0
"""tigon.patch with the tools that train models: transformers.Trainer and PEFT."""
import importlib.util
import tempfile
import unittest

import tigon
import torch
from test_patch import batch, largest_difference, make, step

HAS_TRAINER = all(importlib.util.find_spec(name) is not None for name in ("transformers", "accelerate"))
HAS_PEFT = all(importlib.util.find_spec(name) is not None for name in ("transformers", "peft"))


class Samples(torch.utils.data.Dataset):
    """Sixteen samples, each with another number of labels that count."""

    def __len__(self):
        return 16

    def __getitem__(self, i):
        tokens = torch.randint(3, 99, (24,), generator=torch.Generator().manual_seed(i))
        labels = tokens.clone()
        labels[:i % 12 + 1] = -100
        return {"input_ids": tokens, "labels": labels, "nothing_of_the_model": tokens}


def train(model):
    """Losses and norms of gradients of four steps of four batches each, and the loss of an evaluation."""
    import transformers

    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(folder, per_device_train_batch_size=1, gradient_accumulation_steps=4, max_steps=4,
                                                   learning_rate=1e-3, logging_steps=1, report_to=[], use_cpu=True, disable_tqdm=True,
                                                   seed=1, save_strategy="no")
        trainer = transformers.Trainer(model=model, args=arguments, train_dataset=Samples(), eval_dataset=Samples())
        trainer.remove_callback(transformers.PrinterCallback)
        trainer.train()
        return [[h[name] for h in trainer.state.log_history if name in h] for name in ("loss", "grad_norm")], trainer.predict(Samples())


@unittest.skipUnless(HAS_TRAINER, "transformers or accelerate is not installed")
class TrainerTest(unittest.TestCase):
    def test_accumulated_steps_have_the_same_losses_and_gradients(self):
        want, predicted = train(make("gemma2"))
        model = make("gemma2")
        tigon.patch(model, strict=True)
        got, again = train(model)
        self.assertEqual([len(w) for w in want], [4, 4])
        for w, g in zip(want, got):
            torch.testing.assert_close(torch.tensor(g), torch.tensor(w), rtol=1e-4, atol=0)
        torch.testing.assert_close(torch.tensor(again.predictions), torch.tensor(predicted.predictions), rtol=1e-3, atol=1e-3)
        self.assertAlmostEqual(again.metrics["test_loss"], predicted.metrics["test_loss"], places=3)


# What an adapter is on, and whether the loss is then without logits.
ADAPTERS = {
    "layers": ({"target_modules": ["q_proj", "gate_proj", "down_proj"]}, True),
    "the norm is trained": ({"target_modules": ["q_proj"], "modules_to_save": ["norm"]}, True),
    "the head is trained": ({"target_modules": ["q_proj"], "modules_to_save": ["lm_head"]}, False),
    "the head": ({"target_modules": ["q_proj", "lm_head"]}, False),
}


def with_adapter(model, settings):
    import peft

    torch.manual_seed(3)
    return peft.get_peft_model(model, peft.LoraConfig(r=4, lora_alpha=8, init_lora_weights=False, **settings)).train()


@unittest.skipUnless(HAS_PEFT, "transformers or peft is not installed")
class AdaptersTest(unittest.TestCase):
    def test_adapters_before_and_after(self):
        for name, (settings, without_logits) in ADAPTERS.items():
            want = step(with_adapter(make("llama"), settings))
            for patched_first in (True, False):
                with self.subTest(name=name, patched_first=patched_first):
                    model = make("llama")
                    if patched_first:
                        tigon.patch(model)
                    model = with_adapter(model, settings)
                    if not patched_first:
                        tigon.patch(model)
                    got = step(model)
                    self.assertEqual(want.keys(), got.keys())
                    self.assertLessEqual(largest_difference(want, got), 1e-4)
                    self.assertEqual(model(**batch()).logits is None, without_logits)
                    tigon.unpatch(model)
                    again = step(model)
                    self.assertTrue(all(torch.equal(w, again[n]) for n, w in want.items()))


@unittest.skipUnless(HAS_TRAINER, "transformers or accelerate is not installed")
class LossFunctionTest(unittest.TestCase):
    def test_a_loss_function_that_is_set_later_is_used(self):
        def mean(logits, labels, vocab_size, **given):
            return logits.float().mean()

        model = make("llama")
        tigon.patch(model)
        model.loss_function = mean
        result = model(**batch())
        torch.testing.assert_close(result.loss, result.logits.mean())


if __name__ == "__main__":
    unittest.main()
