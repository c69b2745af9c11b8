# SPDX-License-Identifier: Apache-2.0
"""Results and gradients of every op against torch in float64."""
import unittest

import torch
from references import PROBLEMS
from tigon import _native

# Of the largest value of a tensor: some roundings of each dtype, of results and of what they are summed from.
TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 2e-2, torch.float16: 4e-3}


def tuple_of(results):
    return results if isinstance(results, tuple) else (results,)


class GradientsTest(unittest.TestCase):
    def test_every_op_and_dtype_against_float64(self):
        for name, problem in PROBLEMS.items():
            for dtype in TOLERANCE:
                with self.subTest(name=name, dtype=dtype):
                    self.compare(problem, dtype)

    def test_every_op_of_the_library_has_a_problem(self):
        self.assertEqual({name.split()[0] for name in PROBLEMS} - {"gated", "rope_heads_first"},
                         {op for op in (name.split(".")[0] for name in _native.host().names)
                          if not op.startswith("vocab_parallel_")})  # test_vocab_parallel*.py have those

    def compare(self, problem, dtype):
        torch.manual_seed(0)
        given = [torch.randn(shape).to(dtype).requires_grad_() for shape in problem.parameters]
        exact = [t.detach().double().requires_grad_() for t in given]
        ours, theirs = tuple_of(problem.ours(*given)), tuple_of(problem.reference(*exact))
        upstream = [torch.randn(r.shape).to(r.dtype) for r in ours]
        gradients = torch.autograd.grad(ours, given, upstream, allow_unused=True)
        wanted = torch.autograd.grad(theirs, exact, [u.double() for u in upstream])
        for result, want in zip((*ours, *gradients), (*theirs, *wanted)):
            self.assertEqual(result.shape, want.shape)
            error = (result.double() - want).abs().max().item()
            self.assertLessEqual(error, TOLERANCE[dtype] * max(1.0, want.abs().max().item()))
        for gradient, tensor in zip(gradients, given):
            self.assertEqual(gradient.dtype, tensor.dtype)

    def test_a_gradient_that_is_not_needed_is_not_made(self):
        for name in ("rms_norm", "layer_norm", "linear_cross_entropy "):
            problem = PROBLEMS[name]
            first, *others = [torch.randn(shape) for shape in problem.parameters]
            result = problem.ours(first.requires_grad_(), *others)
            result.sum().backward()
            self.assertIsNotNone(first.grad)
            self.assertTrue(all(t.grad is None for t in others), name)

    def test_weights_of_classes_and_a_normaliser(self):
        import tigon

        torch.manual_seed(0)
        logits, weight = torch.randn(6, 9, requires_grad=True), torch.rand(9) + 0.5
        target = torch.arange(6)
        ours = tigon.ops.cross_entropy(logits, target, class_weight=weight)
        theirs = torch.nn.functional.cross_entropy(logits, target, weight=weight)
        torch.testing.assert_close(ours, theirs)
        summed = torch.nn.functional.cross_entropy(logits, target, reduction="sum")
        torch.testing.assert_close(tigon.ops.cross_entropy(logits, target, normaliser=torch.tensor([12.0])), summed / 12)
        loss, accuracy, entropy = tigon.ops.cross_entropy(logits, target, extras=("accuracy", "entropy"))
        self.assertEqual(accuracy.item(), (logits.argmax(-1) == target).float().mean())
        probabilities = logits.softmax(-1)
        torch.testing.assert_close(entropy, -(probabilities * probabilities.log()).sum(-1).mean().detach())
        self.assertTrue(loss.requires_grad and not accuracy.requires_grad)

    def test_strides_and_expanded_tensors(self):
        import tigon

        wide = torch.randn(6, 40)
        for x in (wide[:, 4:20], wide[::2, :16], wide.t()[:16].t(), wide[:1, :16].expand(5, 16), wide[:, ::2]):
            torch.testing.assert_close(tigon.ops.softmax(x), x.softmax(-1))
        empty = torch.empty(0, 16, requires_grad=True)
        tigon.ops.softmax(empty).sum().backward()
        self.assertEqual(empty.grad.shape, (0, 16))


if __name__ == "__main__":
    unittest.main()
