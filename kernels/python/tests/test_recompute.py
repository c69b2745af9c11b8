# SPDX-License-Identifier: Apache-2.0
"""tigon.patch(recompute="cheap"): what is made again in backward is not kept, and results and gradients have the same bits."""
import contextlib
import copy
import importlib.util
import unittest

import test_patch_experts
import tigon
import torch
from test_patch import HAS_TRANSFORMERS, batch, largest_difference, make, step
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef

HAS_PEFT = HAS_TRANSFORMERS and importlib.util.find_spec("peft") is not None
WIDTH, HIDDEN = 64, 96  # of the families in test_patch
QUERIES = 4 * 16  # columns of all heads
ROW = 4  # bytes of a number in float32
# Columns that a row of a layer does not keep: the results of the norms that linear layers take, of the gate, and rotated queries and keys
# where norms before them make these again. With grouped heads the attention keeps keys of its own.
FAMILIES = {
    "llama": 2 * WIDTH + HIDDEN,
    "llama tied": 2 * WIDTH + HIDDEN,
    "gemma2": 2 * WIDTH + HIDDEN,  # norms behind its layers, too, whose results nothing keeps
    "phi3": 2 * WIDTH + HIDDEN,
    "gpt2": 2 * WIDTH,
    "qwen3": 2 * WIDTH + HIDDEN + QUERIES,
}


class Kept:
    """How many bytes autograd keeps for backward, each storage once."""

    def __init__(self):
        self.storages = {}

    def __enter__(self):
        self._hooks = torch.autograd.graph.saved_tensors_hooks(self._pack, lambda kept: kept)
        self._hooks.__enter__()
        return self

    def __exit__(self, *error):
        self._hooks.__exit__(*error)

    def _pack(self, t):
        self.storages[t.untyped_storage()._cdata] = t  # kept, so that no address is met twice
        return t

    @property
    def bytes(self):
        return sum(t.untyped_storage().nbytes() for t in self.storages.values())


def kept_of(model, **given):
    """Bytes that a forward keeps for backward."""
    with Kept() as kept:
        model(**(given or batch())).loss.backward()
    return kept.bytes


def same_bits(want, got):
    return want.keys() == got.keys() and all(torch.equal(w, got[n]) for n, w in want.items())


@unittest.skipUnless(HAS_TRANSFORMERS, "transformers is not installed")
class FamiliesTest(unittest.TestCase):
    def test_bytes_and_gradients(self):
        for name, columns in FAMILIES.items():
            with self.subTest(name=name):
                model = make(name)
                plain = step(model)
                tigon.patch(model)
                want, before = step(model), kept_of(model)
                report = tigon.patch(model, recompute="cheap")
                self.assertEqual(report.bytes_saved(), {})
                self.assertIn("again norms and gates: made again in backward", str(report))
                self.assertTrue(same_bits(want, step(model)))
                self.assertLessEqual(largest_difference(plain, step(model)), 1e-4)
                after, saved = kept_of(model), report.bytes_saved()
                rows = batch()["input_ids"].numel()
                self.assertEqual(set(saved.values()), {columns * rows * ROW}, saved)
                self.assertEqual(len(saved), 2)
                self.assertEqual(before - after, sum(saved.values()))
                self.assertIn(f"and 1 more: {columns * rows * ROW:,} bytes were not kept for backward", str(report))
                tigon.unpatch(model)
                self.assertFalse([m for m in model.modules() if m._forward_pre_hooks or m._forward_hooks or m._forward_hooks_always_called])
                self.assertEqual(kept_of(model), kept_of(make(name)))
                self.assertTrue(same_bits(plain, step(model)))

    def test_experts(self):
        model = test_patch_experts.make()
        tigon.patch(model)
        want, before = step(model), kept_of(model)
        report = tigon.patch(model, recompute="cheap")
        self.assertTrue(same_bits(want, step(model)))
        self.assertEqual(before - kept_of(model), sum(report.bytes_saved().values()))
        self.assertGreater(sum(report.bytes_saved().values()), 0)

    def test_results_are_gone_after_forward(self):
        for recompute, gone in (("cheap", True), (None, False)):
            model, results = make("llama"), []
            tigon.patch(model, recompute=recompute)
            layer = model.model.layers[0].mlp.down_proj
            layer.register_forward_pre_hook(lambda module, given, into=results: into.append(StorageWeakRef(given[0].untyped_storage())))
            loss = model(**batch()).loss
            with self.subTest(recompute=recompute):
                self.assertEqual([r.expired() for r in results], [gone])
            loss.backward()


@unittest.skipUnless(HAS_TRANSFORMERS, "transformers is not installed")
class UseTest(unittest.TestCase):
    def setUp(self):
        self.model = make("llama")
        tigon.patch(self.model)
        self.want = step(self.model)
        self.before = kept_of(self.model)
        self.report = tigon.patch(self.model, recompute="cheap")

    def same(self, got):
        self.assertTrue(same_bits(self.want, got))

    def test_other_hooks_for_saved_tensors_get_all_else(self):
        with torch.autograd.graph.save_on_cpu():
            self.same(step(self.model))

    def test_a_forward_that_is_called_past_its_hooks(self):
        self.model.zero_grad()
        self.model.forward(**batch()).loss.backward()
        self.assertEqual(len(self.report.bytes_saved()), 2)
        self.same({"loss": self.want["loss"], **{n: p.grad for n, p in self.model.named_parameters()}})

    def test_gradients_twice(self):
        loss = self.model(**batch()).loss
        parameters = list(self.model.parameters())
        first = torch.autograd.grad(loss, parameters, retain_graph=True)
        for one, other in zip(first, torch.autograd.grad(loss, parameters)):
            self.assertTrue(torch.equal(one, other))

    def test_copies(self):
        other = copy.deepcopy(self.model)
        self.same(step(other))
        self.assertLess(kept_of(other), self.before)

    def test_checkpointing(self):
        self.model.gradient_checkpointing_enable()
        self.same(step(self.model))
        self.assertEqual(self.report.bytes_saved(), {})

    def test_evaluation_keeps_nothing(self):
        with torch.no_grad():
            self.model.eval()(**batch())
        self.assertEqual(self.report.bytes_saved(), {})

    def test_an_error_in_forward_leaves_no_hooks(self):
        with self.assertRaises(IndexError):
            self.model(input_ids=torch.full((1, 3), 10_000))
        self.assertIsNone(torch._C._autograd._top_saved_tensors_default_hooks(False))
        self.same(step(self.model))

    def test_autocast(self):
        with torch.autocast("cpu", torch.bfloat16):
            got, after = step(self.model), kept_of(self.model)
            saved = sum(self.report.bytes_saved().values())
            tigon.patch(self.model)
            self.want = step(self.model)
            self.same(got)
            self.assertEqual(kept_of(self.model) - after, saved)
        rows = batch()["input_ids"].numel()
        # In bfloat16, of which each of the layers q, k, v and gate, up has one for itself, and down one more.
        self.assertEqual(saved, 2 * rows * 2 * (5 * WIDTH + HIDDEN))

    def test_what_it_costs(self):
        from tigon._patch.rate import copy_rate

        self.assertIsNone(self.report.seconds_again())
        step(self.model)
        rows = batch()["input_ids"].numel()
        norms = 4 * (2 * rows * WIDTH + WIDTH)  # read with their weights, and written; the last one goes into the loss, which keeps no input
        self.assertEqual(self.report.not_kept.moved, 4 * (2 * 3 * rows * HIDDEN + norms))
        self.assertEqual(self.report.seconds_again(), self.report.not_kept.moved / copy_rate(torch.device("cpu")))
        self.assertRegex(str(self.report), r"\nagain in all: about [\d.e+-]+ ms of a step, at the rate at which cpu copies memory$")

    def test_wrong_calls(self):
        with self.assertRaisesRegex(ValueError, "recompute is 'all', but must be 'cheap' or None"):
            tigon.patch(self.model, recompute="all")

    @unittest.skipUnless(HAS_PEFT, "peft is not installed")
    def test_adapters_before_and_after(self):
        import peft

        settings = peft.LoraConfig(r=4, target_modules=["q_proj", "down_proj"], init_lora_weights=False)
        for patched_first in (True, False):
            model, steps = make("llama"), []
            torch.manual_seed(3)
            if patched_first:
                report = tigon.patch(model, recompute="cheap")
            model = peft.get_peft_model(model, settings).train()
            if not patched_first:
                report = tigon.patch(model, recompute="cheap")
            steps.append(step(model))
            saved = report.bytes_saved()
            tigon.patch(model)
            steps.append(step(model))
            with self.subTest(patched_first=patched_first):
                self.assertTrue(same_bits(*steps))
                self.assertEqual(len(saved), 2)


@unittest.skipUnless(HAS_TRANSFORMERS, "transformers is not installed")
class CompileTest(unittest.TestCase):
    """Of compiled models, autograd's hooks see what the compiler decided to keep."""

    def steps(self, compiled_parts):
        """The step and the bytes kept, without and with recompute."""
        for recompute in (None, "cheap"):
            torch._dynamo.reset()
            model = make("llama")
            tigon.patch(model, recompute=recompute)
            run = compiled_parts(model)
            given = {**batch(), "use_cache": False}
            with Kept() as kept:
                loss = run(**given).loss
            loss.backward()
            yield {n: p.grad for n, p in model.named_parameters()}, kept.bytes

    def test_a_compiled_model(self):
        for backend in ("aot_eager", "inductor"):
            with self.subTest(backend=backend):
                (want, before), (got, after) = self.steps(lambda model, backend=backend: torch.compile(model, backend=backend, fullgraph=True))
                self.assertLessEqual(largest_difference(want, got), 1e-5)
                rows = batch()["input_ids"].numel()
                self.assertGreaterEqual(before - after, 2 * FAMILIES["llama"] * rows * ROW)

    def test_compiled_layers(self):
        def compiled(model):
            for layer in model.model.layers:
                layer.compile(backend="aot_eager")
            return model
        (want, before), (got, after) = self.steps(compiled)
        self.assertLessEqual(largest_difference(want, got), 1e-5)
        self.assertLess(after, before)


class Changed(nn.Module):
    """A norm and a linear layer, with a change in place between or before."""

    def __init__(self, change):
        super().__init__()
        self.norm, self.linear, self.change = nn.RMSNorm(16), nn.Linear(16, 16), change

    def forward(self, x):
        x = x * 1
        y = self.norm(x)
        {"x": x, "y": y}[self.change].mul_(2)
        return self.linear(y).sum()


class ChangesInPlaceTest(unittest.TestCase):
    def test_a_changed_result_is_kept(self):
        model, x = Changed("y"), torch.randn(3, 16)
        gradients = []
        for recompute in (None, "cheap"):
            report = tigon.patch(model, recompute=recompute)
            gradients.append(torch.autograd.grad(model(x), list(model.parameters())))
        self.assertTrue(all(map(torch.equal, *gradients)))
        self.assertEqual(report.bytes_saved(), {})

    def test_a_changed_input_raises(self):
        model = Changed("x")
        tigon.patch(model, recompute="cheap")
        with contextlib.suppress(AttributeError), self.assertRaisesRegex(RuntimeError, "in.?place"):
            model(torch.randn(3, 16, requires_grad=True)).backward()


if __name__ == "__main__":
    unittest.main()
