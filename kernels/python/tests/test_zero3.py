# SPDX-License-Identifier: Apache-2.0
"""tigon.patch and DeepSpeed's ZeRO-3: two processes on the CPU that share every parameter, each with a batch of its own, against one whole model."""
import functools
import importlib.util
import os
import unittest

import group
import tigon
import torch
import torch.distributed as dist
from test_patch import HAS_TRANSFORMERS, batch, largest_difference, make
from test_sharded import RANKS, batch_of, whole_step

HAS_DEEPSPEED = importlib.util.find_spec("deepspeed") is not None
STEPS, RATE = 3, 0.1
SETTINGS = {"train_micro_batch_size_per_gpu": 2, "zero_allow_untested_optimizer": True, "zero_force_ds_cpu_optimizer": False, "steps_per_print": 10**6,
            "gradient_clipping": 0.0,  # its default is 1
            "zero_optimization": {"stage": 3, "stage3_param_persistence_threshold": 0}}


def whole_training(name):
    """Losses of each step on each rank, and the parameters behind the last, of the unpatched model."""
    model, losses = make(name), []
    for _ in range(STEPS):
        of_step, gradients = whole_step(model)
        losses.append(of_step)
        with torch.no_grad():
            for n, p in model.named_parameters():
                p -= RATE * gradients[n]
    return losses, {n: p.detach() for n, p in model.named_parameters()}


def check_training(name, patched_first, recompute):
    """The same training in ZeRO-3, and what the report says."""
    import deepspeed

    losses, want = whole_training(name)
    model = make(name)
    report = tigon.patch(model, strict=True, recompute=recompute) if patched_first else None
    engine = deepspeed.initialize(model=model, config=SETTINGS, optimizer=torch.optim.SGD(model.parameters(), lr=RATE))[0]
    report = report or tigon.patch(model, strict=True, recompute=recompute)
    for of_step in losses:
        made = engine(**batch_of(dist.get_rank()))
        assert made.logits is None, "the loss is not Tigon's"
        torch.testing.assert_close(made.loss.detach(), of_step[dist.get_rank()], rtol=1e-4, atol=0)
        engine.backward(made.loss)
        engine.step()
    with deepspeed.zero.GatheredParameters(list(model.parameters())):
        got = {n: p.detach().clone() for n, p in model.named_parameters()}
    start = {n: p.detach() for n, p in make(name).named_parameters()}
    moved = [{n: p - start[n] for n, p in parameters.items()} for parameters in (want, got)]
    assert largest_difference(*moved) <= 1e-4, largest_difference(*moved)
    assert {"loss", "norm"} <= {entry.kind for entry in report.replaced}, report
    tigon.unpatch(model)
    assert engine(**batch()).logits is not None
    engine.destroy()


def tell_deepspeed():
    """What it takes from the environment, before it is imported."""
    rank = str(dist.get_rank())
    os.environ.update(DS_ACCELERATOR="cpu", DS_SKIP_CUDA_CHECK="1", RANK=rank, LOCAL_RANK=rank, WORLD_SIZE=str(RANKS), MASTER_ADDR="127.0.0.1",
                      MASTER_PORT="0", DEEPSPEED_LOG_LEVEL="error")


@unittest.skipUnless(HAS_TRANSFORMERS and HAS_DEEPSPEED and group.is_there(), "transformers, deepspeed or gloo is not there")
class Zero3Test(unittest.TestCase):
    def test_a_training_is_that_of_the_whole_model(self):
        checks = [functools.partial(check_training, name, patched_first, recompute) for patched_first in (True, False)
                  for name, recompute in (("llama", None), ("llama", "cheap"), ("llama tied", None), ("gemma2", None))]
        group.run_in_all(RANKS, tell_deepspeed, *checks)


if __name__ == "__main__":
    unittest.main()
