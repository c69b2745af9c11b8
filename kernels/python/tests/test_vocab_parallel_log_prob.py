# SPDX-License-Identifier: Apache-2.0
"""tigon.ops.vocab_parallel_log_prob: processes on the CPU or on GPUs, each with some classes, against torch's results of all classes."""
import copy
import functools
import random
import unittest

import group
import tigon.ops
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module

IGNORED = -100


def draw(seed, ranks):
    """Classes, where each rank's begin and end, and options of a call; the same on each rank."""
    chosen = random.Random(seed)
    classes = chosen.choice((ranks, 7, 130, 1001))
    inner = sorted(chosen.randrange(classes + 1) for _ in range(ranks - 1))
    return classes, [0, *inner, classes], {"temperature": chosen.choice((1.0, 0.5, 3.0)), "entropy": chosen.random() < 0.5}


def problem(seed, classes):
    """Logits [2, 3, classes], exact in bfloat16, and targets of which one is ignored."""
    maker = torch.Generator().manual_seed(seed)
    logits = torch.randn(2, 3, classes, generator=maker).bfloat16().float()
    target = torch.randint(0, classes, (2, 3), generator=maker)
    target[0, 1] = IGNORED
    return logits.to(group.device()), target.to(group.device())


def log_prob(logits, target, temperature=1.0, entropy=False):
    """Of torch."""
    log_p = (logits / temperature).log_softmax(-1)
    logp = log_p.gather(-1, target.clamp(min=0)[..., None])[..., 0].where(target != IGNORED, 0)
    return (logp, -(log_p.exp() * log_p).sum(-1).where(target != IGNORED, 0)) if entropy else (logp,)


def tuple_of(results):
    return results if isinstance(results, tuple) else (results,)


def is_the_same_everywhere(tensor):
    told = [torch.empty_like(tensor) for _ in range(dist.get_world_size())]
    dist.all_gather(told, tensor.detach())
    return all(torch.equal(t, tensor) for t in told)


def compare(results, own, first, whole, target, options, bound):
    """Results, and the gradient of own [..., V], with those of torch for logits `whole` in double."""
    exact = whole.double().requires_grad_()
    wanted = log_prob(exact, target, **options)
    upstream = [torch.linspace(at, 2, target.numel(), dtype=torch.float64, device=target.device).reshape(target.shape)
                for at in (0.5, -1.0)][:len(wanted)]
    gradient = torch.autograd.grad(wanted, exact, upstream)[0][..., first:first + own.shape[-1]]
    got, = torch.autograd.grad(results, own, [u.float() for u in upstream])
    for result, want in zip(results, wanted, strict=True):
        torch.testing.assert_close(result.double(), want, rtol=1e-5, atol=1e-5)
        assert is_the_same_everywhere(result)
    assert got.dtype == own.dtype
    torch.testing.assert_close(got.double(), gradient, rtol=bound, atol=bound)


def check_draw(seed, dtype, bound):
    classes, bounds, options = draw(seed, dist.get_world_size())
    logits, target = problem(seed, classes)
    first, end = bounds[dist.get_rank():dist.get_rank() + 2]
    own = logits[..., first:end].to(dtype).requires_grad_()
    results = tigon.ops.vocab_parallel_log_prob(own, target, first_class=first, classes=classes, **options)
    compare(tuple_of(results), own, first, logits, target, options, bound)


def check_equal_shards_and_the_entropy_alone():
    rank, ranks = dist.get_rank(), dist.get_world_size()
    logits, target = problem(3, 8 * ranks)
    own = logits[..., 8 * rank:8 * rank + 8].clone().requires_grad_()
    tigon.ops.vocab_parallel_log_prob(own, target, entropy=True)[1].sum().backward()
    exact = logits.double().requires_grad_()
    log_prob(exact, target, entropy=True)[1].sum().backward()
    torch.testing.assert_close(own.grad.double(), exact.grad[..., 8 * rank:8 * rank + 8], rtol=1e-5, atol=1e-5)


def check_group_of_one():
    """The same bits as log_prob."""
    alone = [dist.new_group([r]) for r in range(dist.get_world_size())][dist.get_rank()]
    logits, target = problem(5, 33)
    given = [logits.clone().requires_grad_() for _ in range(2)]
    ours = tigon.ops.vocab_parallel_log_prob(given[0], target, alone, temperature=0.7, entropy=True)
    theirs = tigon.ops.log_prob(given[1], target, temperature=0.7, entropy=True)
    for results in (ours, theirs):
        sum(result.sum() for result in results).backward()
    assert all(torch.equal(a, b) for a, b in zip((*ours, given[0].grad), (*theirs, given[1].grad)))


def check_one_rank_with_all_classes():
    """The same bits as log_prob, beside ranks that have none."""
    logits, target = problem(6, 1001)
    rank, given = dist.get_rank(), [logits.clone().requires_grad_() for _ in range(2)]
    own = given[0] if rank == 0 else given[0][..., :0]
    ours = tigon.ops.vocab_parallel_log_prob(own, target, first_class=0 if rank == 0 else 1001, classes=1001)
    theirs = tigon.ops.log_prob(given[1], target)
    assert torch.equal(ours, theirs)
    ours.sum().backward()
    theirs.sum().backward()
    assert torch.equal(given[0].grad, given[1].grad if rank == 0 else torch.zeros_like(logits))


def check_tensor_parallel(classes):
    """The logits of a head in ColwiseParallel: results and gradients as of the whole head."""
    mesh = init_device_mesh(group.device().type, (dist.get_world_size(),))
    torch.manual_seed(1)
    made = torch.nn.Linear(8, classes), torch.randn(2, 3, 8), torch.randint(0, classes, (2, 3))
    head, x, target = (one.to(group.device()) for one in made)
    target[0, 1] = IGNORED
    exact = [t.detach().double().requires_grad_() for t in (x, head.weight, head.bias)]
    wanted = log_prob(exact[0] @ exact[1].T + exact[2], target, entropy=True)
    gradients = torch.autograd.grad(sum(r.sum() for r in wanted), exact)
    parallel = parallelize_module(copy.deepcopy(head), mesh, ColwiseParallel(use_local_output=False))
    given = distribute_tensor(x, mesh, [Replicate()]).requires_grad_()
    results = tigon.ops.vocab_parallel_log_prob(parallel(given), distribute_tensor(target, mesh, [Replicate()]), entropy=True)
    sum(r.sum() for r in results).backward()
    for got, want in zip((*results, given.grad.full_tensor(), parallel.weight.grad.full_tensor(), parallel.bias.grad.full_tensor()),
                         (*wanted, *gradients), strict=True):
        torch.testing.assert_close(got.double(), want, rtol=1e-4, atol=1e-5)


def check_errors():
    x, y = torch.zeros(2, 4, device=group.device()), torch.zeros(2, dtype=torch.long, device=group.device())
    mesh = init_device_mesh(group.device().type, (dist.get_world_size(),))
    case, call, rank = unittest.TestCase(), tigon.ops.vocab_parallel_log_prob, dist.get_rank()
    case.assertRaisesRegex(TypeError, f"^rank {rank}: first_class and classes go together", call, x, y, first_class=0)
    case.assertRaisesRegex(ValueError, f"^rank {rank}: .*target has shape .1., but logits .2, 4. needs .2.$", call, x, y[:1])
    case.assertRaisesRegex(RuntimeError, "first_class \\+ V at most classes", call, x, y, first_class=6, classes=8)
    case.assertRaisesRegex(RuntimeError, "temperature and its inverse", call, x, y, temperature=0)
    case.assertRaisesRegex(TypeError, "leave them out", call, distribute_tensor(x, mesh, [Shard(1)]), y, first_class=0, classes=4)
    twice = call(x.requires_grad_(), y)
    case.assertRaisesRegex(RuntimeError, "no second derivative", torch.autograd.grad, twice.sum(), x, create_graph=True)


class Alone(unittest.TestCase):
    def test_says_that_there_is_no_group(self):
        with self.assertRaisesRegex(RuntimeError, "vocab_parallel_log_prob needs a process group.*init_process_group"):
            tigon.ops.vocab_parallel_log_prob(torch.zeros(2, 4), torch.zeros(2, dtype=torch.long))


@unittest.skipUnless(group.is_there(), "gloo is not there")
class VocabParallelLogProbTest(unittest.TestCase):
    device = "cpu"

    def test_drawn_shards_of_two_and_four_ranks(self):
        checks = [functools.partial(check_draw, seed, dtype, bound)
                  for seed in range(12) for dtype, bound in ((torch.float32, 1e-5), (torch.bfloat16, 2e-2))]
        for ranks in group.sizes(self.device):
            group.run_in_all(ranks, *checks, device=self.device)

    def test_tensor_parallel_heads(self):
        for ranks in group.sizes(self.device):
            checks = [functools.partial(check_tensor_parallel, classes) for classes in (4 * ranks, 4 * ranks - 1)]
            group.run_in_all(ranks, *checks, device=self.device)

    def test_groups_and_errors(self):
        group.run_in_all(2, check_equal_shards_and_the_entropy_alone, check_group_of_one, check_one_rank_with_all_classes, check_errors,
                         device=self.device)


@group.on_gpus
class VocabParallelLogProbGpuTest(VocabParallelLogProbTest):
    device = "cuda"


if __name__ == "__main__":
    unittest.main()
