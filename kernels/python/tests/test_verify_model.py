# SPDX-License-Identifier: Apache-2.0
"""tigon.testing.verify_model: a patched model is what it was, or the first module or parameter that differs is named."""
import importlib.util
import unittest

import tigon
import tigon.testing
import torch
from references import Scaled
from test_patch import make
from tigon._patch import become

HAS_TRANSFORMERS = importlib.util.find_spec("transformers") is not None


class Small(torch.nn.Module):
    """A model of one's own."""

    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(16, 16)
        self.norm = torch.nn.RMSNorm(16, eps=1e-6)

    def forward(self, x, scale=1.0):
        return self.norm(self.inner(x)) * scale


def plant(module, forward):
    """Gives a patched module another forward, which has the module's own as its second argument."""
    become.restore(module)
    become.become(module, lambda self, x: forward(x, lambda x: become.original(self).forward(self, x)), None)


class OwnModelTest(unittest.TestCase):
    def test_with_inputs(self):
        torch.manual_seed(0)
        model = Small()
        tigon.patch(model)
        kept = {name: value.clone() for name, value in model.state_dict().items()}
        state = torch.random.get_rng_state()
        report = tigon.testing.verify_model(model, {"x": torch.randn(4, 16)})
        self.assertEqual((report.passed, report.failed), (5, 0))  # a loss, three gradients, bfloat16
        self.assertRegex(str(report), r"^float32: the loss and 3 gradients are at most \d.*\nbfloat16: the gradients are [01]\.\d\d times")
        self.assertTrue(all(torch.equal(value, kept[name]) for name, value in model.state_dict().items()))
        torch.random.set_rng_state(state)
        plant(model.norm, lambda x, own: own(x) * (1 + 1e-3))
        with self.assertRaisesRegex(AssertionError, r"in float32: norm \(RMSNorm\) gives a result that is 1\.0e-03 of its largest value off"):
            tigon.testing.verify_model(model, {"x": torch.randn(4, 16)})

    def test_wrong_calls(self):
        model = Small()
        with self.assertRaisesRegex(ValueError, "the model is not patched"):
            tigon.testing.verify_model(model, {"x": torch.randn(4, 16)})
        tigon.patch(model)
        with self.assertRaisesRegex(ValueError, "this model needs inputs: its arguments by name"):
            tigon.testing.verify_model(model)


@unittest.skipUnless(HAS_TRANSFORMERS, "transformers is not installed")
class TransformersTest(unittest.TestCase):
    def setUp(self):
        self.model = make("llama")
        tigon.patch(self.model)
        self.norm = self.model.model.layers[1].input_layernorm

    def differs(self, text):
        with self.assertRaisesRegex(AssertionError, "the model computes something else in " + text) as caught:
            tigon.testing.verify_model(self.model)
        self.assertEqual(caught.exception.report.failed, 1)

    def test_a_patched_model_is_what_it_was(self):
        report = tigon.testing.verify_model(self.model)
        self.assertEqual((report.passed, report.failed), (23, 0))

    def test_the_first_module_is_named(self):
        plant(self.norm, lambda x, own: own(x) * 1.001)
        self.differs(r"float32: model\.layers\.1\.input_layernorm \(LlamaRMSNorm\) gives a result that is 1\.0e-03")

    def test_the_nearest_parameter_is_named(self):
        plant(self.norm, lambda x, own: Scaled.apply(own(x)))
        self.differs(r"float32: the gradient of model\.layers\.1\.input_layernorm\.weight is 1\.0e-02")

    def test_a_parameter_without_gradient(self):
        plant(self.norm, lambda x, own: own(x).detach())
        self.differs(r"float32: model\.layers\.1\.self_attn\S* has no gradient|float32: .*input_layernorm\.weight has no gradient")

    def test_nan_is_different(self):
        plant(self.norm, lambda x, own: own(x) * float("nan"))
        self.differs(r"float32: model\.layers\.1\.input_layernorm .* nan of its")

    def test_worse_in_bfloat16_alone(self):
        plant(self.norm, lambda x, own: own(x) * 1.05 if x.dtype == torch.bfloat16 else own(x))
        self.differs(r"bfloat16: the gradients are \d.* times as far from float32 as the model's own, most in ")


if __name__ == "__main__":
    unittest.main()
