# SPDX-License-Identifier: Apache-2.0
"""tigon.ops.vocab_parallel_*: processes on the CPU or on GPUs, each with some classes, against torch's loss of all classes."""
import copy
import datetime
import faulthandler
import functools
import os
import random
import time
import unittest
from unittest import mock

import group
import tigon.ops
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module
from torch.nn import functional

SECONDS_OF_A_CALL, SECONDS_TO_END = 10, 90  # of ranks that wait for one that is gone


def draw(seed, ranks):
    """Sizes, shards and options of a call; the same on each rank."""
    chosen = random.Random(seed)
    classes = chosen.choice((ranks, 7, 130, 1001))
    inner = sorted(chosen.randrange(classes + 1) for _ in range(ranks - 1))
    options = {"label_smoothing": chosen.choice((0.0, 0.1)), "reduction": chosen.choice(("mean", "sum", "none")),
               "ignore_index": chosen.choice((-100, 1))}
    return classes, [0, *inner, classes], options, chosen.random() < 0.5


def problem(seed, classes, weighted):
    """Logits [2, 3, classes], targets of which some are ignored, and class weights or None; exact in bfloat16."""
    maker = torch.Generator().manual_seed(seed)
    logits = torch.randn(2, 3, classes, generator=maker).bfloat16().float()
    target = torch.randint(0, classes, (2, 3), generator=maker)
    target[0, 1] = -100
    weight = (torch.rand(classes, generator=maker) + 0.5).to(group.device()) if weighted else None
    return logits.to(group.device()), target.to(group.device()), weight


def wanted(logits, target, weight, options):
    """torch's loss and gradient, in double; an upstream gradient that differs by row."""
    x = logits.double().requires_grad_()
    target = torch.where(target == -100, options["ignore_index"], target)
    loss = functional.cross_entropy(x.flatten(0, 1), target.flatten(), weight=None if weight is None else weight.double(), **options)
    loss = loss.reshape(target.shape) if options["reduction"] == "none" else loss
    upstream = torch.linspace(0.5, 2, loss.numel(), dtype=torch.float64, device=loss.device).reshape(loss.shape)
    return loss.detach(), torch.autograd.grad(loss, x, upstream)[0], upstream, target


def check_draw(seed, dtype, bound):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    classes, bounds, options, weighted = draw(seed, ranks)
    logits, target, weight = problem(seed, classes, weighted)
    loss, gradient, upstream, target = wanted(logits, target, weight, options)
    first, end = bounds[rank], bounds[rank + 1]
    own = logits[..., first:end].to(dtype).requires_grad_()
    got = tigon.ops.vocab_parallel_cross_entropy(own, target, first_class=first, classes=classes, class_weight=weight, **options)
    got.backward(upstream.float())
    torch.testing.assert_close(got.double(), loss, rtol=1e-5, atol=1e-5)
    largest = gradient.abs().max()
    assert (own.grad.double() - gradient[..., first:end]).abs().sum() == 0 or \
        (own.grad.double() - gradient[..., first:end]).abs().max() <= bound * largest, (seed, bounds, options)


def check_equal_shards_and_extras():
    rank, ranks = dist.get_rank(), dist.get_world_size()
    logits, target, _ = problem(3, 8 * ranks, False)
    extras = ("z_part", "accuracy", "entropy")
    whole = tigon.ops.cross_entropy(logits, target, z_loss=0.01, softcap=5.0, extras=extras)
    parts = tigon.ops.vocab_parallel_cross_entropy(logits[..., 8 * rank:8 * rank + 8], target, z_loss=0.01, softcap=5.0, extras=extras)
    for want, got in zip(whole, parts):
        torch.testing.assert_close(got, want)
    told = [torch.empty_like(parts[0]) for _ in range(ranks)]
    dist.all_gather(told, parts[0])
    assert all(torch.equal(t, parts[0]) for t in told)


def check_linear(seed, dtype, bound):
    """The loss, dw and dbias of this rank's classes, and dx of all, against torch's in double."""
    chosen = random.Random(seed)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    classes, hidden = chosen.choice((ranks, 9, 130)), chosen.choice((1, 8, 33))
    bounds = [0, *sorted(chosen.sample(range(1, classes), ranks - 1)), classes]
    options = {"label_smoothing": chosen.choice((0.0, 0.1)), "reduction": chosen.choice(("mean", "sum", "none"))}
    chunks = {"logits_bytes": chosen.choice((64, 1 << 20)), "split": chosen.choice(("rows", "vocabulary"))}
    maker = torch.Generator().manual_seed(seed)
    shapes = ((2, 3, hidden), (classes, hidden), (classes,))
    x, w, bias = (torch.randn(*shape, generator=maker).bfloat16().float().to(group.device()) for shape in shapes)
    target = torch.randint(0, classes, (2, 3), generator=maker).to(group.device())
    target[1, 0] = -100
    weight = (torch.rand(classes, generator=maker) + 0.5).to(group.device()) if chosen.random() < 0.5 else None
    with_bias = chosen.random() < 0.5

    exact = [t.double().requires_grad_() for t in (x, w, bias)]
    logits = exact[0] @ exact[1].T + (exact[2] if with_bias else 0)
    want = functional.cross_entropy(logits.flatten(0, 1), target.flatten(), weight=None if weight is None else weight.double(), **options)
    want = want.reshape(target.shape) if options["reduction"] == "none" else want
    upstream = torch.linspace(0.5, 2, want.numel(), dtype=torch.float64, device=want.device).reshape(want.shape)
    gradients = torch.autograd.grad(want, exact, upstream, allow_unused=True)

    own = slice(bounds[rank], bounds[rank + 1])
    given = [t.to(dtype).requires_grad_() for t in (x, w[own], bias[own])]
    got = tigon.ops.vocab_parallel_linear_cross_entropy(given[0], given[1], target, first_class=bounds[rank], classes=classes,
                                                        bias=given[2] if with_bias else None, class_weight=weight, **options, **chunks)
    got.backward(upstream.float())
    for name, ours, theirs in (("loss", got.detach(), want.detach()), ("dx", given[0].grad, gradients[0]),
                               ("dw", given[1].grad, gradients[1][own]),
                               *([("dbias", given[2].grad, gradients[2][own])] if with_bias else [])):
        error, size = (ours.double() - theirs).abs().max(), max(1.0, theirs.abs().max())
        assert error <= bound * size, (seed, name, error, size, bounds, options, chunks)
    told = [torch.empty_like(given[0].grad) for _ in range(ranks)]
    dist.all_gather(told, given[0].grad)
    assert all(torch.equal(t, given[0].grad) for t in told), seed


def check_linear_errors_and_a_group_of_one():
    """In a group of one the same bits as linear_cross_entropy."""
    loss = tigon.ops.vocab_parallel_linear_cross_entropy
    x, w, y = (t.to(group.device()) for t in (torch.randn(2, 4), torch.randn(3, 4), torch.zeros(2, dtype=torch.long)))
    case = unittest.TestCase()
    case.assertRaisesRegex(TypeError, "first_class and classes go together", loss, x, w, y, classes=6)
    case.assertRaisesRegex(TypeError, "vocab_parallel_linear_cross_entropy has no extra perplexity", loss, x, w, y, extras=("perplexity",))
    case.assertRaisesRegex(RuntimeError, f"^rank {dist.get_rank()}: .*first_class \\+ V at most classes", loss, x, w, y, first_class=5, classes=7)
    again = x.clone().requires_grad_()
    case.assertRaisesRegex(RuntimeError, "no second derivative", torch.autograd.grad, loss(again, w, y), again, create_graph=True)
    groups = [dist.new_group([r]) for r in range(dist.get_world_size())]
    assert torch.equal(loss(x, w, y, groups[dist.get_rank()]), tigon.ops.linear_cross_entropy(x, w, y))


def check_tensor_parallel(classes):
    """A head in ColwiseParallel, with its logits and without: loss and gradients as of the whole head, which are DTensors again."""
    mesh = init_device_mesh(group.device().type, (dist.get_world_size(),))
    torch.manual_seed(1)
    made = torch.nn.Linear(8, classes), torch.randn(2, 3, 8), torch.randint(0, classes, (2, 3))
    head, x, target = (one.to(group.device()) for one in made)
    target[0, 1] = -100
    exact = [t.detach().double().requires_grad_() for t in (x, head.weight, head.bias)]
    want = functional.cross_entropy((exact[0] @ exact[1].T + exact[2]).flatten(0, 1), target.flatten())
    gradients = torch.autograd.grad(want, exact)
    for fused in (False, True):
        parallel = parallelize_module(copy.deepcopy(head), mesh, ColwiseParallel(use_local_output=False))
        given = distribute_tensor(x, mesh, [Replicate()]).requires_grad_()
        labels = distribute_tensor(target, mesh, [Replicate()])
        if fused:
            loss = tigon.ops.vocab_parallel_linear_cross_entropy(given, parallel.weight, labels, bias=parallel.bias)
        else:
            loss = tigon.ops.vocab_parallel_cross_entropy(parallel(given), labels)
        loss.backward()
        torch.testing.assert_close(loss.detach().double(), want.detach(), rtol=1e-5, atol=1e-5)
        for got, wanted in zip((given, parallel.weight, parallel.bias), gradients):
            torch.testing.assert_close(got.grad.full_tensor().double(), wanted, rtol=1e-4, atol=1e-6)


def check_tensor_parallel_errors():
    mesh = init_device_mesh(group.device().type, (dist.get_world_size(),))
    loss, case = tigon.ops.vocab_parallel_cross_entropy, unittest.TestCase()
    logits, target = torch.zeros(2, 4, device=group.device()), torch.zeros(2, dtype=torch.long, device=group.device())
    by_class, by_row = (distribute_tensor(logits, mesh, [Shard(axis)]) for axis in (1, 0))
    case.assertRaisesRegex(TypeError, "leave them out", loss, by_class, target, first_class=0, classes=4)
    case.assertRaisesRegex(ValueError, r"logits has placements .* but must have \(Shard\(dim=1\),\)", loss, by_row, target)
    case.assertRaisesRegex(ValueError, "target has placements .*Replicate", loss, by_class, distribute_tensor(target, mesh, [Shard(0)]))


def check_megatron():
    rank, ranks = dist.get_rank(), dist.get_world_size()
    classes = 4 * ranks
    logits, target, _ = problem(4, classes, False)
    got = tigon.ops.vocab_parallel_cross_entropy(logits[..., 4 * rank:4 * rank + 4], target, label_smoothing=0.1,
                                                 smoothing_formula="megatron", reduction="none")
    log_p = logits.log_softmax(-1)  # Megatron: (1 - a - a/(K-1)) on the target and a/(K-1) on every class
    each = 0.1 / (classes - 1)
    y = target.clamp(min=0)
    want = -(1 - 0.1 - each) * log_p.gather(-1, y[..., None])[..., 0] - each * log_p.sum(-1)
    torch.testing.assert_close(got, torch.where(target == -100, 0, want))


def check_group_of_one():
    """The same bits as cross_entropy."""
    groups = [dist.new_group([r]) for r in range(dist.get_world_size())]
    logits, target, weight = problem(5, 33, True)
    got, want = ([x, x.requires_grad_()][1] for x in (logits.clone(), logits.clone()))
    ours = tigon.ops.vocab_parallel_cross_entropy(got, target, groups[dist.get_rank()], class_weight=weight, label_smoothing=0.1)
    theirs = tigon.ops.cross_entropy(want, target, class_weight=weight, label_smoothing=0.1)
    ours.backward()
    theirs.backward()
    assert torch.equal(ours, theirs)
    assert torch.equal(got.grad, want.grad)


def check_errors():
    x, y = torch.zeros(2, 4, device=group.device()), torch.zeros(2, dtype=torch.long, device=group.device())
    loss = tigon.ops.vocab_parallel_cross_entropy
    case = unittest.TestCase()
    case.assertRaisesRegex(TypeError, f"^rank {dist.get_rank()}: first_class and classes go together", loss, x, y, first_class=0)
    case.assertRaisesRegex(ValueError, f"^rank {dist.get_rank()}: .*target has shape .1., but logits .2, 4. needs .2.$", loss, x, y[:1])
    case.assertRaisesRegex(ValueError, "must be pytorch or megatron", loss, x, y, smoothing_formula="keras")
    case.assertRaisesRegex(TypeError, "has no extra perplexity; it has z_part", loss, x, y, extras=("perplexity",))
    case.assertRaisesRegex(RuntimeError, "first_class \\+ V at most classes", loss, x, y, first_class=6, classes=8)
    twice = loss(x.requires_grad_(), y)
    case.assertRaisesRegex(RuntimeError, "no second derivative", torch.autograd.grad, twice, x, create_graph=True)


def check_that_a_rank_is_missed():
    """Rank 1 is gone before the second call, without an error for which the test would end the others. One that hangs ends late."""
    faulthandler.dump_traceback_later(SECONDS_TO_END, exit=True)
    hasty = dist.new_group(timeout=datetime.timedelta(seconds=SECONDS_OF_A_CALL))
    x, y = torch.zeros(2, 4, device=group.device()), torch.zeros(2, dtype=torch.long, device=group.device())
    tigon.ops.vocab_parallel_cross_entropy(x, y, hasty).item()
    if dist.get_rank() == 1:
        os._exit(0)
    tigon.ops.vocab_parallel_cross_entropy(x, y, hasty).item()


class Alone(unittest.TestCase):
    def test_says_that_there_is_no_group(self):
        with self.assertRaisesRegex(RuntimeError, "init_process_group"):
            tigon.ops.vocab_parallel_cross_entropy(torch.zeros(2, 4), torch.zeros(2, dtype=torch.long))


@unittest.skipUnless(group.is_there(), "gloo is not there")
class VocabParallelTest(unittest.TestCase):
    device = "cpu"

    def test_drawn_shards_of_two_and_four_ranks(self):
        checks = [functools.partial(check_draw, seed, dtype, bound)
                  for seed in range(12) for dtype, bound in ((torch.float32, 1e-5), (torch.bfloat16, 5e-3))]
        for ranks in group.sizes(self.device):
            group.run_in_all(ranks, *checks, device=self.device)

    def test_drawn_shards_behind_a_linear_layer(self):
        checks = [functools.partial(check_linear, seed, dtype, bound)
                  for seed in range(12) for dtype, bound in ((torch.float32, 1e-5), (torch.bfloat16, 2e-2))]
        for ranks in group.sizes(self.device):
            group.run_in_all(ranks, *checks, device=self.device)

    def test_tensor_parallel_heads(self):
        for ranks in group.sizes(self.device):
            checks = [functools.partial(check_tensor_parallel, classes) for classes in (4 * ranks, 4 * ranks - 1)]
            group.run_in_all(ranks, *checks, check_tensor_parallel_errors, device=self.device)

    def test_options_groups_and_errors(self):
        group.run_in_all(2, check_equal_shards_and_extras, check_megatron, check_group_of_one, check_errors,
                         check_linear_errors_and_a_group_of_one, device=self.device)


@group.on_gpus
class VocabParallelGpuTest(VocabParallelTest):
    device = "cuda"

    def test_a_rank_that_is_gone_ends_the_others(self):
        began = time.monotonic()
        with mock.patch.dict(os.environ, TORCH_NCCL_DUMP_ON_TIMEOUT="0"), \
                self.assertRaises((torch.multiprocessing.ProcessExitedException, torch.multiprocessing.ProcessRaisedException)):
            group.run_in_all(2, check_that_a_rank_is_missed, device=self.device)
        self.assertLess(time.monotonic() - began, SECONDS_TO_END)


if __name__ == "__main__":
    unittest.main()
