# SPDX-License-Identifier: Apache-2.0
"""The ops on a GPU: as on the CPU, on torch's current stream, in graphs, with scratch memory that lives long enough."""
import copy
import unittest
from typing import Any

import random_calls
import tigon
import torch
from test_gradients import tuple_of
from test_patch import Mlp
from test_torch_features import Block
from tigon import _native
from tigon._torch import operator, pass_of

TOLERANCES = {"f32": 1e-4, "bf16": 3e-2, "f16": 4e-3}
LONG_CYCLES = 100_000_000  # a kernel that waits; well beyond the time of a launch


def on_gpu(value: Any) -> Any:
    """The same on the GPU, a tensor as a leaf of its own."""
    if not isinstance(value, torch.Tensor):
        return value
    return value.detach().cuda().requires_grad_(value.requires_grad)


@unittest.skipUnless(torch.cuda.is_available(), "SKIPPED: torch sees no GPU")
@unittest.skipUnless(_native.cuda(), "SKIPPED: the package was built without the library for GPUs")
class CudaTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)

    def close(self, got, want, tolerance=1e-4):
        for one, other in zip(tuple_of(got), tuple_of(want), strict=True):
            torch.testing.assert_close(one.cpu(), other.cpu(), rtol=tolerance, atol=tolerance, equal_nan=True)

    def test_every_pass_is_as_on_the_cpu(self):
        for name in random_calls.passes():
            for dtype, tolerance in TOLERANCES.items():
                for options in random_calls.options_of(pass_of(name, dtype)):
                    for optional in (False, True):
                        with self.subTest(name=name, dtype=dtype, options=options, optional=optional):
                            given = random_calls.arguments(name, dtype, options, optional)
                            call = operator(name).overload
                            self.close(call(*map(on_gpu, given)), call(*given), tolerance)

    def test_gradients_are_as_on_the_cpu(self):
        block, given = Block(), self.inputs()
        want = self.step(block, *(g.cpu() for g in given))
        self.close(self.step(copy.deepcopy(block).cuda(), *given), want)

    def test_it_runs_on_the_current_stream(self):
        x, later = torch.zeros(64, 256, device="cuda"), torch.randn(64, 256, device="cuda")
        torch.cuda.synchronize()
        with torch.cuda.stream(torch.cuda.Stream()):
            torch.cuda._sleep(LONG_CYCLES)
            x.copy_(later)
            y = tigon.ops.rms_norm(x)
        torch.cuda.synchronize()
        self.close(y, tigon.ops.rms_norm(later))

    def test_streams_do_not_share_scratch_memory(self):
        target = torch.randint(0, 2000, (256,), device="cuda")
        head = torch.randn(2000, 64, device="cuda")
        xs = [torch.randn(256, 64, device="cuda") for _ in range(4)]
        want = [tigon.ops.linear_cross_entropy(x, head, target) for x in xs]
        streams = [torch.cuda.Stream() for _ in xs]
        torch.cuda.synchronize()
        for _ in range(20):
            got = []
            for x, stream in zip(xs, streams):
                with torch.cuda.stream(stream):
                    got.append(tigon.ops.linear_cross_entropy(x, head, target))
            torch.cuda.synchronize()
            self.close(tuple(got), tuple(want), 0)

    def step(self, block, x, residual, target):
        loss = block(x, residual, target)
        return (loss, *torch.autograd.grad(loss, list(block.parameters())))

    def inputs(self):
        return torch.randn(2, 5, 16, device="cuda"), torch.randn(2, 5, 16, device="cuda"), torch.arange(10, device="cuda").reshape(2, 5)

    def test_a_graph_replays_a_step(self):
        block, (x, *given) = Block().cuda(), self.inputs()
        with torch.cuda.stream(torch.cuda.Stream()):
            for _ in range(3):
                self.step(block, x, *given)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            got = self.step(block, x, *given)
        x.copy_(torch.randn_like(x))
        graph.replay()
        torch.cuda.synchronize()
        self.close(got, self.step(block, x, *given), 0)

    def test_it_compiles_with_graphs(self):
        block = Block().cuda()
        compiled = torch.compile(block, fullgraph=True, mode="reduce-overhead")
        for _ in range(4):
            given = self.inputs()
            want = self.step(block, *given)
            torch.compiler.cudagraph_mark_step_begin()
            self.close(self.step(compiled, *given), want)

    def test_autocast_gives_activations_its_dtype(self):
        with torch.autocast("cuda", torch.bfloat16):
            y = tigon.ops.rms_norm(torch.randn(3, 16, device="cuda"), torch.ones(16, device="cuda"))
        self.assertEqual(y.dtype, torch.bfloat16)

    def test_what_is_made_again_is_not_kept(self):
        start, x = torch.nn.Sequential(torch.nn.RMSNorm(16), Mlp(), torch.nn.RMSNorm(16), Mlp()), torch.randn(4096, 16, device="cuda")
        gradients, kept = [], []
        for recompute in (None, "cheap"):
            model = copy.deepcopy(start).cuda()
            report = tigon.patch(model, strict=True, recompute=recompute)
            model(x)  # cuBLAS keeps the workspace of its first call
            before = torch.cuda.memory_allocated()
            loss = model(x).square().sum()
            kept.append(torch.cuda.memory_allocated() - before)
            gradients.append(torch.autograd.grad(loss, list(model.parameters())))
            del loss
        self.close(*gradients, 0)
        self.assertEqual(kept[0] - kept[1], sum(report.bytes_saved().values()))
        self.assertEqual(sum(report.bytes_saved().values()), 4096 * 4 * 2 * (16 + 24))

    def test_tensors_on_two_devices_are_refused(self):
        with self.assertRaises(RuntimeError):
            tigon.ops.rms_norm(torch.randn(3, 16, device="cuda"), torch.ones(16))


if __name__ == "__main__":
    unittest.main()
