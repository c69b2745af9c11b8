# SPDX-License-Identifier: Apache-2.0
"""tigon.patch and mixtures of experts."""
import copy
import importlib.util
import unittest

import tigon
import torch
from test_patch import SIZES, largest_difference, rms, step

HAS_TRANSFORMERS = importlib.util.find_spec("transformers") is not None
MIXTURE = {**SIZES, "num_local_experts": 4, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 48,
           "output_router_logits": True}  # what balances the experts is added to the loss


def make(family="mixtral"):
    import transformers

    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.for_model(family, **MIXTURE))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape) * 0.1)
    return model.train()


@unittest.skipUnless(HAS_TRANSFORMERS, "transformers is not installed")
class ExpertsTest(unittest.TestCase):
    def left(self, model):
        """Why its experts were left; its step must stay what it was."""
        want = step(model)
        report = tigon.patch(model)
        self.assertLessEqual(largest_difference(want, step(model)), 1e-4)
        (why,) = {e.what for e in report.left if e.kind == "experts"}
        return why

    def test_a_training_step_and_unpatch(self):
        for family in ("mixtral", "qwen3_moe"):
            with self.subTest(family=family):
                model = make(family)
                want = step(model)
                report = tigon.patch(model, strict=True)
                self.assertEqual([report.count(kind) for kind in ("experts", "rope", "loss")], [2, 2, 1])
                self.assertIn("swiglu, activation=silu, layout=gate_first", str(report))
                self.assertLessEqual(largest_difference(want, step(model)), 1e-4)
                self.assertLessEqual(largest_difference(want, step(copy.deepcopy(model))), 1e-4)
                tigon.unpatch(model)
                again = step(model)
                self.assertTrue(all(torch.equal(w, again[n]) for n, w in want.items()))

    def test_bf16_is_no_worse(self):
        model = make().bfloat16()
        want, plain = step(copy.deepcopy(model).float()), step(model)
        tigon.patch(model)
        got = step(model)
        for n, w in want.items():
            self.assertLessEqual(rms(got[n] - w), 1.5 * rms(plain[n] - w) + 2**-9 * rms(w), n)

    def test_a_gate_with_a_twist_is_left_and_named(self):
        def limited(self, packed):
            gate, up = packed.chunk(2, -1)
            return torch.nn.functional.silu(gate.clamp(max=2.0)) * up

        def detached(self, packed):
            gate, up = packed.chunk(2, -1)
            return torch.nn.functional.silu(gate.detach()) * up

        for gate, why in ((limited, "has a gate that is no activation\\(gate\\) \\* up"), (detached, "computes something else: the gradient of")):
            model = make()
            own = type(model.model.layers[0].mlp.experts)
            for layer in model.model.layers:
                layer.mlp.experts.__class__ = type(own.__name__, (own,), {"_apply_gate": gate})
            self.assertRegex(self.left(model), why)

    def test_experts_that_do_not_call_their_gate_are_left(self):
        model = make()
        model.set_experts_implementation("eager")
        self.assertEqual(self.left(model), "does not call its gate: another implementation of its experts does")

    def test_other_parameters_are_left(self):
        model = make()
        for layer in model.model.layers:
            layer.mlp.experts.scale = torch.nn.Parameter(torch.ones(4))
        want = "has other parameters than gate and up [E, 2F, H] and down [E, H, F]"
        self.assertEqual({e.what for e in tigon.patch(model).left}, {want})


if __name__ == "__main__":
    unittest.main()
