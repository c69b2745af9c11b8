# SPDX-License-Identifier: Apache-2.0
"""tigon.ops.normaliser: processes on the CPU or on GPUs, each with some tokens, against torch's mean over all tokens."""
import functools
import random
import unittest

import group
import tigon.ops
import torch
import torch.distributed as dist
from torch.nn import functional

CLASSES, HIDDEN = 11, 6


def draw(seed, ranks):
    """Tokens of each rank, some of none and some of ignored ones only; what the loss has."""
    chosen = random.Random(seed)
    counts = [chosen.choice((0, 1, 3, 8)) for _ in range(ranks)]
    ignored = [chosen.random() < 0.2 for _ in range(ranks)]
    return counts, ignored, chosen.random() < 0.5, {"label_smoothing": chosen.choice((0.0, 0.1)), "ignore_index": chosen.choice((-100, 2))}


def check_draw(seed):
    """Losses and gradients of the ranks add up to those of all tokens."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    counts, ignored, weighted, options = draw(seed, ranks)
    maker = torch.Generator().manual_seed(seed)
    x, w = torch.randn(sum(counts), HIDDEN, generator=maker), torch.randn(CLASSES, HIDDEN, generator=maker)
    target = torch.randint(0, CLASSES, (sum(counts),), generator=maker)
    weight = (torch.rand(CLASSES, generator=maker) + 0.5).to(group.device()) if weighted else None
    x, w, target = (t.to(group.device()) for t in (x, w, target))
    parts = target.split(counts)
    for r in range(ranks):
        parts[r][::1 if ignored[r] else 3] = options["ignore_index"]
    exact, head = x.double().requires_grad_(), w.double().requires_grad_()
    loss = functional.cross_entropy(exact @ head.T, target, weight=None if weight is None else weight.double(), reduction="sum", **options)
    counted = target[target != options["ignore_index"]]
    share = (weight if weighted else torch.ones(CLASSES, device=target.device))[counted].double().sum()
    (loss / share if share > 0 else 0 * loss).backward()

    n = tigon.ops.normaliser(parts[rank], ignore_index=options["ignore_index"], class_weight=weight)
    assert n.shape == (1,) and n.dtype == torch.float32
    torch.testing.assert_close(n[0].double(), share)
    for behind_a_head in (False, True):
        own, own_w = x.split(counts)[rank].clone().requires_grad_(), w.clone().requires_grad_()
        got = tigon.ops.linear_cross_entropy(own, own_w, parts[rank], normaliser=n, class_weight=weight, **options) if behind_a_head \
            else tigon.ops.cross_entropy(own @ own_w.T, parts[rank], normaliser=n, class_weight=weight, **options)
        got.backward()
        torch.testing.assert_close(own.grad.double(), exact.grad.split(counts)[rank], rtol=1e-4, atol=1e-6)
        for part, want in ((got.detach().clone(), loss.detach() / share if share > 0 else torch.zeros_like(share)), (own_w.grad, head.grad)):
            dist.all_reduce(part)
            torch.testing.assert_close(part.double(), want.double(), rtol=1e-4, atol=1e-6)


def check_subgroups():
    """Each group counts its own ranks."""
    rank = dist.get_rank()
    groups = [dist.new_group([0]), dist.new_group([1])]
    n = tigon.ops.normaliser(torch.tensor([1] * (3 + rank) + [-100], device=group.device()), groups[rank])
    assert n.item() == 3 + rank, (rank, n)


class Alone(unittest.TestCase):
    def test_counts_its_own_targets(self):
        self.assertEqual(tigon.ops.normaliser(torch.tensor([[0, -100], [3, 7]])).tolist(), [3.0])
        self.assertEqual(tigon.ops.normaliser(torch.tensor([0, 5, 1]), ignore_index=5).tolist(), [2.0])
        self.assertEqual(tigon.ops.normaliser(torch.tensor([0, 2, -100]), class_weight=torch.tensor([0.5, 1.0, 4.0])).tolist(), [4.5])
        self.assertEqual(tigon.ops.normaliser(torch.zeros(0, dtype=torch.long)).tolist(), [0.0])


@unittest.skipUnless(group.is_there(), "gloo is not there")
class SequenceParallelTest(unittest.TestCase):
    device = "cpu"

    def test_drawn_tokens_of_two_and_four_ranks(self):
        for ranks in group.sizes(self.device):
            group.run_in_all(ranks, *(functools.partial(check_draw, seed) for seed in range(16)), device=self.device)

    def test_groups(self):
        group.run_in_all(2, check_subgroups, device=self.device)


@group.on_gpus
class SequenceParallelGpuTest(SequenceParallelTest):
    device = "cuda"


if __name__ == "__main__":
    unittest.main()
