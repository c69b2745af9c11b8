# SPDX-License-Identifier: Apache-2.0
"""torch's features around the ops: compile, autocast, checkpointing, copies, fork, second derivatives."""
import copy
import os
import pickle
import signal
import unittest

import tigon
import torch
import torch._dynamo.testing
from references import PROBLEMS
from test_gradients import tuple_of
from torch.utils.checkpoint import checkpoint


class Block(torch.nn.Module):
    """A module of ops that has a loss."""

    def __init__(self):
        super().__init__()
        self.norm = torch.nn.Parameter(torch.ones(16))
        self.gate_up = torch.nn.Linear(16, 32, bias=False)
        self.head = torch.nn.Linear(16, 31, bias=False)

    def forward(self, x, residual, target):
        h, y = tigon.ops.add_rms_norm(x, residual, self.norm)
        y = tigon.ops.swiglu(self.gate_up(y), layout="gate_first")
        return tigon.ops.linear_cross_entropy(tigon.ops.rms_norm(h + y, self.norm), self.head.weight, target)


def inputs(rows=5):
    torch.manual_seed(1)
    return torch.randn(2, rows, 16, requires_grad=True), torch.randn(2, rows, 16), torch.arange(2 * rows).reshape(2, rows) % 31


class TorchFeaturesTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.block = Block()

    def gradients(self, loss):
        return torch.autograd.grad(loss, list(self.block.parameters()))

    def test_every_op_compiles_to_one_graph(self):
        for name, problem in PROBLEMS.items():
            with self.subTest(name=name):
                torch._dynamo.reset()
                given = [torch.randn(shape, requires_grad=True) for shape in problem.parameters]
                compiled = torch.compile(problem.ours, fullgraph=True, backend="aot_eager")
                self.same_results(problem.ours, compiled, given)

    def same_results(self, eager, compiled, given):
        results = [tuple_of(f(*given)) for f in (eager, compiled)]
        gradients = [torch.autograd.grad([r.sum() for r in each], given, allow_unused=True) for each in results]
        for got, want in zip((*results[1], *gradients[1]), (*results[0], *gradients[0])):
            torch.testing.assert_close(got, want)

    def test_a_block_compiles_with_inductor(self):
        for dynamic in (False, True):
            with self.subTest(dynamic=dynamic):
                torch._dynamo.reset()
                compiled = torch.compile(self.block, fullgraph=True, dynamic=dynamic)
                for rows in (5, 7):
                    want, got = self.block(*inputs(rows)), compiled(*inputs(rows))
                    torch.testing.assert_close(got, want)
                    torch.testing.assert_close(self.gradients(got), self.gradients(want))

    def test_dynamic_shapes_do_not_compile_again(self):
        torch._dynamo.reset()
        counter = torch._dynamo.testing.CompileCounterWithBackend("aot_eager")
        compiled = torch.compile(self.block, fullgraph=True, dynamic=True, backend=counter)
        compiled(*inputs(5)).backward()
        compilations = counter.frame_count
        for rows in (7, 11):
            compiled(*inputs(rows)).backward()
        self.assertEqual(counter.frame_count, compilations)

    def test_export(self):
        exported = torch.export.export(self.block, inputs())
        torch.testing.assert_close(exported.module()(*inputs()), self.block(*inputs()))

    def test_autocast_gives_activations_its_dtype(self):
        x, w = torch.randn(3, 16, requires_grad=True), torch.ones(16, requires_grad=True)
        with torch.autocast("cpu", torch.bfloat16):
            y = tigon.ops.rms_norm(x, w)
            loss = self.block(*inputs())
        self.assertEqual(y.dtype, torch.bfloat16)
        y.sum().backward()
        self.assertEqual((x.grad.dtype, w.grad.dtype), (torch.float32, torch.float32))
        torch.testing.assert_close(loss, self.block(*inputs()), rtol=2e-2, atol=2e-2)
        loss.backward()

    def test_checkpointing(self):
        want = self.gradients(self.block(*inputs()))
        for use_reentrant in (False, True):
            loss = checkpoint(self.block, *inputs(), use_reentrant=use_reentrant)
            for parameter in self.block.parameters():
                parameter.grad = None
            loss.backward()
            torch.testing.assert_close([p.grad for p in self.block.parameters()], list(want))

    def test_gradients_can_be_asked_for_twice(self):
        loss = self.block(*inputs())
        first = torch.autograd.grad(loss, list(self.block.parameters()), retain_graph=True)
        torch.testing.assert_close(first, self.gradients(loss))

    def test_the_upstream_gradient_of_a_loss_scales(self):
        torch.testing.assert_close(self.gradients(3 * self.block(*inputs())),
                                   tuple(3 * g for g in self.gradients(self.block(*inputs()))))

    def test_copies_and_pickles(self):
        want = self.block(*inputs())
        for other in (copy.deepcopy(self.block), pickle.loads(pickle.dumps(self.block))):
            torch.testing.assert_close(other(*inputs()), want)
        self.assertIs(pickle.loads(pickle.dumps(tigon.ops.rms_norm)), tigon.ops.rms_norm)

    def test_a_forked_process_computes(self):
        # Nothing of torch's own: its threads are not in such a process, either, nor those of its autograd.
        x = torch.randn(512, 512)
        want = tigon.ops.rms_norm(x).numpy()
        child = os.fork()
        if child == 0:
            signal.alarm(60)  # it would wait for ever for threads that it does not have
            try:
                os._exit(0 if (tigon.ops.rms_norm(x).numpy() == want).all() else 1)
            finally:
                os._exit(2)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_no_gradients_where_none_are_asked_for(self):
        with torch.no_grad():
            self.assertFalse(self.block(*inputs()).requires_grad)
        with torch.inference_mode():
            self.assertFalse(tigon.ops.softmax(torch.randn(3, 4)).requires_grad)

    def test_a_second_derivative_raises(self):
        for name, problem in PROBLEMS.items():
            given = [torch.randn(shape, requires_grad=True) for shape in problem.parameters]
            results = [r.sum() for r in tuple_of(problem.ours(*given))]
            with self.subTest(name=name), self.assertRaisesRegex(RuntimeError, "has no second derivative"):
                torch.autograd.grad(results, given, create_graph=True)

    def test_meta_tensors_have_shapes(self):
        y = tigon.ops.rms_norm(torch.empty(2, 3, 16, device="meta"), torch.empty(16, device="meta"))
        self.assertEqual((y.shape, y.device.type), ((2, 3, 16), "meta"))


if __name__ == "__main__":
    unittest.main()
