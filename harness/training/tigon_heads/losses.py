# SPDX-License-Identifier: Apache-2.0
"""Ways to the loss of a head whose classes lie in shards.

Each takes x [T, H], the same on every rank, this rank's rows of w [V, H], and target [T], does forward and backward, and gives the
mean loss; x.grad is the sum over ranks. `first` is the class of w's first row.
"""
import torch
import torch.distributed as dist
from tigon_training.variants import Unavailable
from torch.nn import functional


def tigon(x, w, target, first, classes):
    """tigon.ops.vocab_parallel_linear_cross_entropy, which never holds all logits."""
    loss = _tigon().vocab_parallel_linear_cross_entropy(x, w, target, first_class=first, classes=classes)
    loss.backward()
    return loss.detach()


def tigon_logits(x, w, target, first, classes):
    """tigon.ops.vocab_parallel_cross_entropy of logits that torch makes."""
    logits = _ToRanks.apply(x) @ w.T
    loss = _tigon().vocab_parallel_cross_entropy(logits, target, first_class=first, classes=classes)
    loss.backward()
    return loss.detach()


def megatron(x, w, target, first, classes):
    """The formula of Megatron-LM in torch's operations: three all-reduces of a number for each token, in place where it can be."""
    del classes
    loss = _Megatron.apply(_ToRanks.apply(x) @ w.T, target, first).mean()
    loss.backward()
    return loss.detach()


def loss_parallel(x, w, target, first, classes):
    """torch.distributed.tensor.parallel.loss_parallel, of equal shards."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Replicate, Shard
    from torch.distributed.tensor.parallel import loss_parallel as context

    ranks = dist.get_world_size()
    if classes != ranks * w.shape[0]:
        raise Unavailable("its shards have as many classes each")
    del first
    mesh = init_device_mesh(x.device.type, (ranks,))
    with context():
        whole, shard = DTensor.from_local(x, mesh, [Replicate()]), DTensor.from_local(w, mesh, [Shard(0)])
        loss = functional.cross_entropy(functional.linear(whole, shard), DTensor.from_local(target, mesh, [Replicate()]))
        loss.backward()
    return loss.detach().to_local()


LOSSES = {"tigon": tigon, "tigon_logits": tigon_logits, "megatron": megatron, "loss_parallel": loss_parallel}


def _tigon():
    try:
        import tigon.ops
    except ImportError as error:
        raise Unavailable(f"tigon is not installed; install it with: pip install . ({error})") from error
    return tigon.ops


class _ToRanks(torch.autograd.Function):
    """x as it is; in backward the sum of the ranks' gradients."""

    @staticmethod
    def forward(_ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(_ctx, gradient):
        gradient = gradient.contiguous()
        dist.all_reduce(gradient)
        return gradient


class _Megatron(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, target, first):
        logits = logits.float()
        largest = logits.amax(-1)
        dist.all_reduce(largest, dist.ReduceOp.MAX)
        logits -= largest[:, None]
        own = target - first
        outside = (own < 0) | (own >= logits.shape[-1])
        own = own.masked_fill(outside, 0)
        of_target = logits.gather(-1, own[:, None])[:, 0].masked_fill(outside, 0.0)
        dist.all_reduce(of_target)
        torch.exp(logits, out=logits)
        total = logits.sum(-1)
        dist.all_reduce(total)
        logits /= total[:, None]
        ctx.save_for_backward(logits, own, outside)
        return total.log() - of_target

    @staticmethod
    def backward(ctx, upstream):
        gradient, own, outside = ctx.saved_tensors
        gradient[torch.arange(own.numel(), device=own.device), own] -= (~outside).float()
        gradient *= upstream[:, None]
        return gradient.bfloat16(), None, None
