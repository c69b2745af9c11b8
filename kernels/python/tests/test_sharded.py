# SPDX-License-Identifier: Apache-2.0
"""tigon.patch and FSDP2: two processes on the CPU or on GPUs, each with half of every parameter and a batch of its own, against a whole model."""
import functools
import unittest

import group
import tigon
import torch
import torch.distributed as dist
from test_patch import HAS_TRANSFORMERS, batch, largest_difference, make, rms

RANKS = 2


def make_here(name):
    return make(name).to(group.device())


def batch_of(rank):
    """As many labels that count on each rank, so that the mean of losses is the loss of both batches."""
    return {name: tensor.roll(rank + 1, 0).to(group.device()) for name, tensor in batch().items()}


def whole_step(model):
    """Loss of each rank, and the mean of their gradients."""
    losses = []
    for rank in range(RANKS):
        loss = model(**batch_of(rank)).loss
        (loss / RANKS).backward()
        losses.append(loss.detach())
    gradients = {n: p.grad.clone() for n, p in model.named_parameters()}
    model.zero_grad()
    return losses, gradients


def shard(model, parts, **settings):
    """Each of the layers, the parts named, and what is left, a group of its own."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh(group.device().type, (RANKS,))
    for module in [*model.model.layers, *(model.get_submodule(part) for part in parts), model]:
        fully_shard(module, mesh=mesh, **settings)


def sharded_step(model):
    """This rank's loss, gradients that are whole again, and their norm as trainers clip it."""
    loss = model(**batch_of(dist.get_rank())).loss
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1e9).full_tensor()
    gradients = {n: p.grad.full_tensor() for n, p in model.named_parameters()}
    model.zero_grad()
    return loss.detach(), gradients, norm


def patched_and_sharded(name, parts, patched_first, recompute, **settings):
    """A model, and the report of its patch."""
    model = make_here(name)
    if not patched_first:
        shard(model, parts, **settings)
    report = tigon.patch(model, strict=True, recompute=recompute)
    if patched_first:
        shard(model, parts, **settings)
    return model, report


def check_steps(name, parts, patched_first, recompute):
    """A step against the whole, unpatched model, and another without the patch."""
    losses, want = whole_step(make_here(name))
    norm = torch.stack([g.norm() for g in want.values()]).norm()
    model, report = patched_and_sharded(name, parts, patched_first, recompute)

    def check(bound):
        loss, got, got_norm = sharded_step(model)
        torch.testing.assert_close(loss, losses[dist.get_rank()], rtol=bound, atol=0)
        torch.testing.assert_close(got_norm, norm, rtol=bound, atol=0)
        assert largest_difference(want, got) <= bound, largest_difference(want, got)
    check(1e-4)
    assert model(**batch_of(dist.get_rank())).logits is None
    if recompute:
        assert len(report.bytes_saved()) == 2, report
    tigon.unpatch(model)
    assert type(model).__name__.startswith("FSDP"), type(model)
    assert model(**batch_of(dist.get_rank())).logits is not None
    check(1e-5)


def check_bf16(recompute):
    """With parameters that are bfloat16 where they are gathered: no further from float32 than the unpatched model is."""
    from torch.distributed.fsdp import MixedPrecisionPolicy

    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    _, want = whole_step(make_here("llama"))
    plain = make_here("llama")
    shard(plain, (), mp_policy=policy)
    model, _ = patched_and_sharded("llama", (), True, recompute, mp_policy=policy)
    _, theirs, _ = sharded_step(plain)
    _, ours, _ = sharded_step(model)
    for n, w in want.items():
        allowed = 1.5 * rms(theirs[n] - w) + 2**-9 * rms(w)
        assert rms(ours[n] - w) <= allowed, n


@unittest.skipUnless(HAS_TRANSFORMERS and group.is_there(), "transformers or gloo is not there")
class ShardedTest(unittest.TestCase):
    device = "cpu"

    def test_steps_are_those_of_the_whole_model(self):
        checks = [functools.partial(check_steps, name, parts, patched_first, recompute)
                  for patched_first in (True, False) for recompute in (None, "cheap")
                  for name, parts in (("llama", ()), ("llama", ("lm_head", "model.norm")), ("llama tied", ()), ("gemma2", ()))]
        group.run_in_all(RANKS, *checks, device=self.device)

    def test_bf16_is_no_worse(self):
        group.run_in_all(RANKS, *(functools.partial(check_bf16, recompute) for recompute in (None, "cheap")), device=self.device)


@group.on_gpus
class ShardedGpuTest(ShardedTest):
    device = "cuda"


if __name__ == "__main__":
    unittest.main()
