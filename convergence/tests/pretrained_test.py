#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`tigon converge --load` and `--export` against transformers and torch's AdamW, from the same files and batches.

Usage: pretrained_test.py TIGON. Skipped where torch, transformers or safetensors are missing.
"""
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy
    import safetensors.torch
    import torch
    import transformers
except ImportError as missing:
    print(f"skipped: {missing}")
    raise SystemExit(0) from None

TIGON = sys.argv.pop(1) if len(sys.argv) > 1 else "./tigon"
STEPS, SEQUENCE, BATCH, VOCABULARY, SEED, RATE, WARM_UP = 20, 64, 2, 512, 3, 1e-3, 10
MASK, GOLDEN = (1 << 64) - 1, 0x9E3779B97F4A7C15


def random_bits(seed, stream, index):
    """As convergence/text_data.cpp has it: splitmix64 over the three numbers."""
    def mix(z):
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
        z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
        return z ^ z >> 31
    first = mix(seed + GOLDEN & MASK)
    second = mix(first + (stream + 1) * GOLDEN & MASK)
    return mix(second + (index + 1) * GOLDEN & MASK)


def training_part(ids):
    """What is trained on: every tenth piece of 2048 ids is held out."""
    pieces = [ids[at:at + 2048] for at in range(0, len(ids), 2048)]
    return torch.cat([piece for i, piece in enumerate(pieces) if (i + 1) % 10])


def rate_at(step):
    warm = min(WARM_UP, STEPS // 2)
    if step < warm:
        return RATE * (step + 1) / warm
    done = (step - warm) / max(1, STEPS - warm)
    return RATE * (0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * done)))


def small(kind, **more):
    sizes = {"hidden_size": 64, "intermediate_size": 160, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1,
             "head_dim": 32, "vocab_size": VOCABULARY, "max_position_embeddings": SEQUENCE, "rms_norm_eps": 1e-5, **more}
    config = getattr(transformers, kind + "Config")(**sizes)
    config._attn_implementation = "eager"
    torch.manual_seed(5)
    return getattr(transformers, kind + "ForCausalLM")(config).float()


def groups_of(model):
    """Norms do not decay."""
    parameters = list(model.parameters())
    return [{"params": [p for p in parameters if p.dim() > 1], "weight_decay": 0.1},
            {"params": [p for p in parameters if p.dim() == 1], "weight_decay": 0.0}]


def batch_at(ids, step):
    places = len(ids) - SEQUENCE
    starts = [random_bits(SEED, 1, step * BATCH + i) % places for i in range(BATCH)]
    return torch.stack([ids[start:start + SEQUENCE + 1] for start in starts])


class Trained:
    """A training in torch: the loss of each step, the gradient of the first after clipping, and the model at its end."""

    def __init__(self, model, ids):
        optimizer = torch.optim.AdamW(groups_of(model), lr=RATE, betas=(0.9, 0.95), eps=1e-8)
        self.losses, self.first = [], None
        for step in range(STEPS):
            window = batch_at(ids, step)
            optimizer.zero_grad()
            logits = model(window[:, :-1]).logits
            loss = torch.nn.functional.cross_entropy(logits.reshape(-1, VOCABULARY), window[:, 1:].reshape(-1))
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            self.first = self.first or {name: p.grad.clone() for name, p in model.named_parameters()}
            for group in optimizer.param_groups:
                group["lr"] = rate_at(step)
            optimizer.step()
            self.losses.append(loss.item())
        self.model = model


def joined(named, layer, names):
    return torch.cat([named[f"model.layers.{layer}.{name}.weight"] for name in names])


class PretrainedTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write_ids(self):
        """Each token is followed by one of three."""
        ids = [0]
        for i in range(30000):
            ids.append(random_bits(4, ids[-1], random_bits(5, 0, i) % 3) % VOCABULARY)
        numpy.save(self.folder / "ids.npy", numpy.array(ids, dtype=numpy.int32))
        return torch.tensor(ids)

    def tigon(self, *words):
        return subprocess.run([TIGON, "converge", "--load", self.folder / "model", "--data", self.folder / "ids.npy", "--dtype", "f32",
                               "--sequence", str(SEQUENCE), "--batch", str(BATCH), "--seed", str(SEED), *words],
                              capture_output=True, text=True)

    def converge(self, steps, out, *words, rate=RATE):
        run = self.tigon("--steps", str(steps), "--rate", str(rate), "--out", self.folder / out, *words)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        records = map(json.loads, (self.folder / out / "records.jsonl").read_text().splitlines())
        return {r["impl"]: r for r in records if r["record"] == "converge"}

    def compare(self, model, **saving):
        ids = self.write_ids()
        model.save_pretrained(self.folder / "model", **saving)
        runs = self.converge(STEPS, "run", "--export", self.folder / "trained")
        torch_run = Trained(model, training_part(ids))
        for side in ("naive", "fused"):
            for ours, theirs in zip(runs[side]["loss"], torch_run.losses, strict=True):
                self.assertAlmostEqual(ours, theirs, delta=2e-5, msg=side)
            again = transformers.AutoModelForCausalLM.from_pretrained(self.folder / f"trained/{side}-f32", attn_implementation="eager")
            window = batch_at(ids, 0)[:, :-1]
            difference = (again(window).logits - torch_run.model(window).logits).abs().max()
            self.assertLess(difference, 2e-3, f"{side}: after {STEPS} steps that rounded differently")
        return torch_run

    def first_gradients(self, side):
        """Adam's first moment after one step is a tenth of the gradient."""
        self.converge(1, "one", "--checkpoint-every", "1")
        (file,) = (self.folder / "one/records.checkpoints").glob(f"*-f32-{side}.safetensors")
        state = safetensors.torch.load_file(file)
        return {name.removeprefix("adam_m."): m / 0.1 for name, m in state.items() if name.startswith("adam_m.")}

    def test_a_llama_trains_as_with_transformers(self):
        run = self.compare(small("Llama", rope_theta=5e5))
        for side in ("naive", "fused"):
            ours = self.first_gradients(side)
            pairs = {"embedding": run.first["model.embed_tokens.weight"], "head": run.first["lm_head.weight"],
                     "final_norm": run.first["model.norm.weight"][None]}
            for layer in range(2):
                attention = ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"]
                pairs[f"layers.{layer}.qkv"] = joined(run.first, layer, attention)
                pairs[f"layers.{layer}.gate_up"] = joined(run.first, layer, ["mlp.gate_proj", "mlp.up_proj"])
                pairs[f"layers.{layer}.o"] = joined(run.first, layer, ["self_attn.o_proj"])
                pairs[f"layers.{layer}.down"] = joined(run.first, layer, ["mlp.down_proj"])
            for name, theirs in pairs.items():
                error = (ours[name] - theirs).norm() / theirs.norm()
                self.assertLess(error, 2e-6, f"{side} {name}")
                self.assertLess((ours[name] - theirs).abs().max(), 1e-6, f"{side} {name}")
            (self.folder / "one/records.jsonl").unlink()

    def test_a_sharded_tied_qwen3_does_too(self):
        self.compare(small("Qwen3", tie_word_embeddings=True), max_shard_size="100KB")
        self.assertTrue((self.folder / "model/model.safetensors.index.json").exists())

    def test_an_exported_model_has_the_same_logits(self):
        """Without a step between them: what is written is what was read."""
        model = small("Llama")
        ids = self.write_ids()
        model.save_pretrained(self.folder / "model")
        self.converge(1, "run", "--export", self.folder / "trained", rate=1e-30)
        again = transformers.AutoModelForCausalLM.from_pretrained(self.folder / "trained/fused-f32", attn_implementation="eager")
        window = batch_at(ids, 0)[:, :-1]
        self.assertTrue(torch.equal(again(window).logits, model(window).logits))

    def test_what_the_model_has_not_is_refused_by_name(self):
        self.write_ids()
        for model, text in ((small("Qwen2"), "biases"), (small("Gemma2"), "norms behind the branches"),
                            (small("Llama", rope_scaling={"rope_type": "linear", "factor": 2.0}), "rotary angles are scaled"),
                            (small("Llama", head_dim=48), "head size is 48")):
            model.save_pretrained(self.folder / "model")
            run = self.tigon("--steps", "1")
            self.assertEqual(run.returncode, 2, run.stdout)
            self.assertIn(text, run.stderr)


if __name__ == "__main__":
    unittest.main()
