# SPDX-License-Identifier: Apache-2.0
"""tigon.patch: a patched model computes what the model did, what cannot be verified stays, and unpatch leaves no trace."""
import copy
import importlib.util
import tempfile
import unittest
from unittest import mock

import tigon
import torch
from torch import nn

HAS_TRANSFORMERS = importlib.util.find_spec("transformers") is not None
SIZES = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
         "head_dim": 16, "vocab_size": 99, "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
GPT2 = {"n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 99, "n_positions": 64, "resid_pdrop": 0.0, "embd_pdrop": 0.0,
        "attn_pdrop": 0.0, "bos_token_id": 1, "eos_token_id": 2}
OPT = {**SIZES, "ffn_dim": 96, "word_embed_proj_dim": 64, "dropout": 0.0}
# Family, settings, and how many norms, gated MLPs, rotary embeddings and losses it has.
FAMILIES = {
    "llama": ("llama", SIZES, (5, 2, 2, 1)),
    "llama tied": ("llama", {**SIZES, "tie_word_embeddings": True}, (5, 2, 2, 1)),
    "qwen2": ("qwen2", SIZES, (5, 2, 2, 1)),
    "qwen3": ("qwen3", SIZES, (9, 2, 2, 1)),
    "gemma2": ("gemma2", SIZES, (9, 2, 2, 1)),  # tied, softcap
    "gemma3_text": ("gemma3_text", SIZES, (13, 2, 2, 1)),  # two kinds of layers, each with its angles
    "mistral": ("mistral", SIZES, (5, 2, 2, 1)),
    "phi3": ("phi3", SIZES, (5, 2, 2, 1)),
    "gpt2": ("gpt2", GPT2, (5, 0, 0, 1)),  # tied
    "opt": ("opt", OPT, (5, 0, 0, 1)),  # calls a part of its body
    "granite": ("granite", {**SIZES, "logits_scaling": 4.0}, (5, 2, 2, 1)),
    "glm": ("glm", SIZES, (5, 2, 2, 1)),  # neighbours of the first half of a head
    "phi": ("phi", SIZES, (3, 0, 2, 1)),  # a bias in its head
}


def make(name):
    import transformers

    family, settings, _ = FAMILIES[name]
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.for_model(family, **settings))
    with torch.no_grad():
        for parameter in model.parameters():  # weights of norms and biases that matter, logits that a softcap bends
            parameter.add_(torch.randn(parameter.shape) * 0.1)
    return model.train()


def batch(rows=3):
    tokens = torch.randint(3, 99, (rows, 17), generator=torch.Generator().manual_seed(1))
    labels = tokens.clone()
    labels[0, :5] = labels[-1, -3:] = -100
    return {"input_ids": tokens, "labels": labels}


def step(model, **given):
    """Loss and gradients of a training step."""
    model.zero_grad()
    loss = model(**(given or batch())).loss
    loss.backward()
    return {"loss": loss.detach().clone(), **{n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}}


def rms(x):
    return x.double().pow(2).mean().sqrt().item()


def largest_difference(want, got):
    """Of the largest value of each tensor, or of a thousandth of the largest of all where that is more."""
    floor = 1e-3 * max(w.abs().max().item() for w in want.values())
    return max((got[n] - w).abs().max().item() / max(w.abs().max().item(), floor) for n, w in want.items())


@unittest.skipUnless(HAS_TRANSFORMERS, "transformers is not installed")
class FamiliesTest(unittest.TestCase):
    def test_a_training_step_and_unpatch(self):
        for name, (_, _, counts) in FAMILIES.items():
            with self.subTest(name=name):
                model = make(name)
                want, classes, attributes = step(model), [type(m) for m in model.modules()], [list(vars(m)) for m in model.modules()]
                report = tigon.patch(model, strict=True)
                self.assertEqual(tuple(report.count(kind) for kind in ("norm", "mlp", "rope", "loss")), counts)
                got = step(model)
                self.assertEqual(want.keys(), got.keys())
                self.assertLessEqual(largest_difference(want, got), 1e-4)
                self.assertIsNone(model(**batch()).logits)
                tigon.unpatch(model)
                self.assertEqual([type(m) for m in model.modules()], classes)
                self.assertEqual([list(vars(m)) for m in model.modules()], attributes)
                again = step(model)
                self.assertTrue(all(torch.equal(w, again[n]) for n, w in want.items()))

    def test_bf16_is_no_worse(self):
        """Each gradient and the loss, against float32 with the same weights. Errors of two bf16 runs differ by chance: the norms of a
        gradient's error, with some thousand elements and roundings, by less than half; an error within a rounding of the value is none."""
        for name in FAMILIES:
            with self.subTest(name=name):
                model = make(name).bfloat16()
                want, plain = step(copy.deepcopy(model).float()), step(model)
                tigon.patch(model)
                got = step(model)
                for n, w in want.items():
                    self.assertEqual(got[n].dtype, plain[n].dtype)
                    self.assertLessEqual(rms(got[n] - w), 1.5 * rms(plain[n] - w) + 2**-9 * rms(w), n)


@unittest.skipUnless(HAS_TRANSFORMERS, "transformers is not installed")
class UseTest(unittest.TestCase):
    def test_accumulated_gradients_are_those_of_one_batch(self):
        for name in ("llama", "gemma2"):
            model, whole = make(name), batch(4)
            items = (whole["labels"][:, 1:] != -100).sum()
            want = step(model, **whole)
            tigon.patch(model)
            for count in (items, int(items)):
                model.zero_grad()
                for rows in (slice(0, 1), slice(1, 4)):
                    model(input_ids=whole["input_ids"][rows], labels=whole["labels"][rows], num_items_in_batch=count).loss.backward()
                got = {"loss": want["loss"], **{n: p.grad for n, p in model.named_parameters()}}
                self.assertLessEqual(largest_difference(want, got), 1e-4)

    def test_evaluation_with_and_without_logits(self):
        model = make("gemma2").eval()
        want = model(**batch())
        tigon.patch(model)
        with torch.no_grad():
            with_logits, without = model(**batch()), model(**batch(), skip_logits=True)
        torch.testing.assert_close(with_logits.logits, want.logits, rtol=1e-4, atol=1e-4)
        self.assertIsNone(without.logits)
        for found in (with_logits, without):
            torch.testing.assert_close(found.loss, want.loss, rtol=1e-5, atol=0)
        self.assertIsNone(model(input_ids=batch()["input_ids"]).loss)
        self.assertEqual(model(**batch(), skip_logits=True, return_dict=False)[1].shape, (3, 17, 0))

    def test_logits_in_training_where_they_are_asked_for(self):
        model = make("llama")
        tigon.patch(model, skip_logits=False)
        self.assertEqual(model(**batch()).logits.shape, (3, 17, 99))
        self.assertIsNone(model(**batch(), skip_logits=True).logits)
        tigon.patch(model)
        self.assertEqual(model(**batch(), skip_logits=False).logits.shape, (3, 17, 99))

    def test_shifted_labels_and_another_ignored_index(self):
        model, given = make("llama"), batch()
        shifted = given["labels"].roll(-1, 1)
        seven = given["labels"].masked_fill(given["labels"] == -100, 7)
        want = [step(model, **given, shift_labels=shifted), step(model, input_ids=given["input_ids"], labels=seven, ignore_index=7)]
        tigon.patch(model)
        got = [step(model, **given, shift_labels=shifted), step(model, input_ids=given["input_ids"], labels=seven, ignore_index=7)]
        for w, g in zip(want, got):
            self.assertLessEqual(largest_difference(w, g), 1e-4)

    def test_copies_state_generation_hooks_and_a_second_patch(self):
        model = make("llama")
        names, want, tokens = list(model.state_dict()), step(model), batch()["input_ids"][:1]
        generated = model.eval().generate(tokens, max_new_tokens=4, do_sample=False)
        tigon.patch(model.train())
        report = tigon.patch(model)
        self.assertEqual(len(report.replaced), 10)
        self.assertEqual(list(model.state_dict()), names)
        self.assertEqual(type(model).__name__, "LlamaForCausalLM")
        self.assertTrue(torch.equal(model.eval().generate(tokens, max_new_tokens=4, do_sample=False), generated))
        calls = []
        model.lm_head.register_forward_hook(lambda *given: calls.append(1))
        for one in (copy.deepcopy(model.train()), model):
            self.assertLessEqual(largest_difference(want, step(one)), 1e-4)
            self.assertIsNone(one(**batch()).logits)
        self.assertEqual(len(calls), 4)

    def test_modules_take_their_argument_by_name_too(self):
        model, x = make("llama"), torch.randn(1, 3, 64)
        tigon.patch(model)
        layer = model.model.layers[0]
        self.assertTrue(torch.equal(layer.input_layernorm(hidden_states=x), layer.input_layernorm(x)))
        self.assertTrue(torch.equal(layer.mlp(x=x), layer.mlp(x)))

    def test_a_saved_model_is_the_model(self):
        import transformers

        model = make("llama")
        want = step(model)
        tigon.patch(model)
        with tempfile.TemporaryDirectory() as folder:
            model.save_pretrained(folder)
            loaded = transformers.AutoModelForCausalLM.from_pretrained(folder).train()
        self.assertIs(type(loaded), transformers.LlamaForCausalLM)
        self.assertLessEqual(largest_difference(want, step(loaded)), 1e-6)

    def test_autocast_and_checkpointing(self):
        model = make("llama")
        exact = step(model)
        dtypes = []
        model.model.norm.register_forward_hook(lambda module, given, result: dtypes.append(result.dtype))
        with torch.autocast("cpu", torch.bfloat16):
            plain = step(model)
            with torch.no_grad():
                self.assertEqual(len(tigon.patch(model, strict=True).replaced), 10)
            got = step(model)
        self.assertEqual(dtypes, [torch.float32] * 2)
        for n, w in exact.items():
            self.assertLessEqual(rms(got[n] - w), 1.5 * rms(plain[n] - w) + 2**-9 * rms(w), n)
        model.gradient_checkpointing_enable()
        self.assertLessEqual(largest_difference(exact, step(model)), 1e-4)

    def test_the_graph_is_whole(self):
        model = make("llama")
        want = step(model)
        tigon.patch(model)
        compiled = torch.compile(lambda **given: model(**given).loss, backend="eager", fullgraph=True)
        torch.testing.assert_close(compiled(**batch(), use_cache=False).detach(), want["loss"])


class TwistedNorm(nn.Module):
    """An RMSNorm, but large values are clipped."""

    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = 1e-6

    def forward(self, x):
        return x.clamp(-2, 2) * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


class DetachedNorm(TwistedNorm):
    """The values of an RMSNorm with other gradients."""

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps).detach() * self.weight


class Float32Norm(TwistedNorm):
    """An RMSNorm whose result is float32 for every dtype."""

    def forward(self, x):
        x = x.float()
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight.float()


class CoarseNorm(TwistedNorm):
    """What Float32Norm gives, in the dtype of x, but off by 2% in bfloat16."""

    def forward(self, x):
        y = x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + self.eps) * self.weight.float()
        return (y * 1.02 if x.dtype == torch.bfloat16 else y).to(x.dtype)


class FineNorm(Float32Norm):
    """The same, and right in bfloat16."""

    def forward(self, x):
        return Float32Norm.forward(self, x).to(x.dtype)


class Scaled(TwistedNorm):
    """An RMSNorm under a name that tells nothing, with an eps that is not a usual one."""

    def __init__(self, size):
        super().__init__(size)
        self.small = 3e-4

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.small) * (1 + self.weight)


class Mlp(nn.Module):
    """A gated MLP; `limit` clamps its gate, `dropout` its result."""

    def __init__(self, limit=None, dropout=0.0):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(16, 24, bias=False), nn.Linear(16, 24), nn.Linear(24, 16)
        self.limit, self.dropout = limit, dropout

    def forward(self, x):
        gate = self.a(x) if self.limit is None else self.a(x).clamp(max=self.limit)
        return nn.functional.dropout(self.c(nn.functional.gelu(gate) * self.b(x)), self.dropout, self.training)


class TwistsTest(unittest.TestCase):
    def test_a_norm_or_an_mlp_with_a_twist_is_left_and_named(self):
        layers = {"clipped": TwistedNorm(16), "detached": DetachedNorm(16), "float32": Float32Norm(16), "limited": Mlp(limit=7.0), "dropped": Mlp(dropout=0.1),
                  "scaled": Scaled(16), "mlp": Mlp(), "layer_norm": nn.LayerNorm(16), "no_bias": nn.LayerNorm(16, bias=False),
                  "rms_norm": nn.RMSNorm(16)}
        model = nn.ModuleDict(layers)
        report = tigon.patch(model)
        self.assertEqual({e.name for e in report.replaced}, {"scaled", "mlp", "layer_norm", "no_bias", "rms_norm"}, report)
        left = {e.name: e.what for e in report.left}
        self.assertEqual(left["clipped"], "is neither RMSNorm nor LayerNorm: no eps and offset give its values")
        self.assertIn("the gradient of input differs by", left["detached"])
        self.assertIn("computes something else", left["limited"])
        self.assertEqual(left["dropped"], "gives something else in training than in evaluation")
        self.assertEqual(left["float32"], "gives torch.float32 for torch.bfloat16, and its op torch.bfloat16")
        self.assertEqual(len(left), 5)
        self.assertIn("norm clipped: left, since it is neither", str(report))

    def test_what_is_worse_in_bf16_only_is_refused(self):
        from tigon._patch import twin

        fine, coarse = (twin.Fed(norm(16), torch.randn(8, 16)) for norm in (FineNorm, CoarseNorm))
        coarse.input = fine.input
        self.assertRegex(twin.why_not(fine, coarse, [twin.fed(1.0)]), "would be worse in bf16: the result is off by")
        self.assertIsNone(twin.why_not(coarse, fine, [twin.fed(1.0)]))

    def test_calls_that_the_ops_do_not_take_run_the_modules_own_code(self):
        model = nn.ModuleDict({"norm": nn.LayerNorm(16), "mlp": Mlp()})
        x, angles = torch.randn(3, 16), torch.rand(1, 3, 16, requires_grad=True)
        calls = [lambda: model["norm"](x[0]), lambda: model["mlp"](x[0]),
                 lambda: copy.deepcopy(model).double()["norm"](x.double())]
        want = [call() for call in calls]
        self.assertEqual(len(tigon.patch(model, strict=True).replaced), 2)
        for call, w in zip(calls, want):
            self.assertTrue(torch.equal(call(), w))

        from tigon._patch import rotary

        def turn(q, k, cos, sin):
            return tuple(x * cos[:, None] + torch.cat([-x[..., 8:], x[..., :8]], -1) * sin[:, None] for x in (q, k))
        turned = rotary._turning(rotary.Recipe("turn", turn, "halves", False))
        q = torch.randn(1, 2, 3, 16)
        turned(q, q, angles.cos(), angles.sin())[0].sum().backward()
        self.assertGreater(angles.grad.abs().max(), 0)
        fixed = angles.detach()
        self.assertEqual(turned(q.bfloat16(), q.bfloat16(), fixed.cos(), fixed.sin())[0].dtype, torch.float32)

    def test_all_layers_share_the_angles(self):
        from tigon import ops
        from tigon._patch import rotary

        def turn(q, k, cos, sin):
            return tuple(x * cos[:, None] + torch.cat([-x[..., 8:], x[..., :8]], -1) * sin[:, None] for x in (q, k))
        turned, own, seen = rotary._turning(rotary.Recipe("turn", turn, "halves", False)), ops.rope_heads_first, []

        def note(q, k, cos, sin, **named):
            seen.append((cos.data_ptr(), sin.data_ptr()))
            return own(q, k, cos, sin, **named)
        angles = torch.rand(1, 3, 8).repeat(1, 1, 2)
        cos, sin, q = angles.cos(), angles.sin(), torch.randn(2, 2, 3, 16)
        with mock.patch.object(ops, "rope_heads_first", note):
            first, again = turned(q, q, cos, sin)[0], turned(q, q, cos, sin)[0]
            self.assertEqual(seen[0], seen[1])
            self.assertTrue(torch.equal(first, again))
            alone = turned(q[:1], q[:1], cos, sin)[0]
            self.assertTrue(torch.equal(alone, first[:1]))
            cos.mul_(0.5)
            changed = turned(q, q, cos, sin)[0]
        self.assertLess((changed - turn(q, q, cos, sin)[0]).abs().max(), 1e-5)

    def test_strict_raises_and_changes_nothing(self):
        model = nn.ModuleDict({"good": Scaled(16), "bad": TwistedNorm(16)})
        with self.assertRaisesRegex(RuntimeError, "norm bad: left, since it is neither RMSNorm nor LayerNorm") as caught:
            tigon.patch(model, strict=True)
        self.assertEqual(len(caught.exception.report.left), 1)
        self.assertIs(type(model["good"]), Scaled)
        with self.assertRaisesRegex(RuntimeError, "nothing was found that could be replaced"):
            tigon.patch(nn.Linear(2, 2), strict=True)
        with self.assertRaisesRegex(TypeError, "model is a str, but must be a torch.nn.Module"):
            tigon.patch("llama")

    @unittest.skipUnless(HAS_TRANSFORMERS, "transformers is not installed")
    def test_angles_in_another_order_are_left_and_named(self):
        model = make("llama")
        own = type(model.model.rotary_emb)

        def forward(self, x, position_ids):
            return tuple(torch.cat([a[..., :8], a[..., 8:].flip(-1)], -1) for a in own.forward(self, x, position_ids))
        model.model.rotary_emb.__class__ = type("Shuffled", (own,), {"forward": forward})
        want = step(model)
        report = tigon.patch(model)
        self.assertEqual([(e.kind, e.what) for e in report.left], [("rope", "gets its angles in an order that is not known")] * 2)
        self.assertLessEqual(largest_difference(want, step(model)), 1e-4)

    @unittest.skipUnless(HAS_TRANSFORMERS, "transformers is not installed")
    def test_a_loss_with_a_twist_is_left_and_named(self):
        def set_function(model):
            model.loss_function = lambda logits, labels, vocab_size, **given: logits.float().logsumexp(-1).mean()

        def wrap_head(model):
            model.lm_head = nn.Sequential(model.lm_head)

        def bend_logits(model):
            own = type(model)

            def forward(self, *args, labels=None, **given):
                result = own.forward(self, *args, **given)
                result.logits = result.logits + 0.1 * result.logits.sin()
                result.loss = None if labels is None else self.loss_function(result.logits, labels, 99)
                return result
            model.__class__ = type(own.__name__, (own,), {"forward": forward})

        for twist, reason in ((set_function, "computes something else"), (wrap_head, "whose code is not that of nn.Linear"),
                              (bend_logits, "neither a factor nor a softcap")):
            model = make("llama")
            twist(model)
            want = step(model)
            report = tigon.patch(model)
            self.assertEqual([e.kind for e in report.left], ["loss"])
            self.assertIn(reason, report.left[0].what)
            self.assertLessEqual(largest_difference(want, step(model)), 1e-4)
            tigon.unpatch(model)
            self.assertTrue(all(torch.equal(w, g) for w, g in zip(want.values(), step(model).values())))


if __name__ == "__main__":
    unittest.main()
