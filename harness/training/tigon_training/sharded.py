# SPDX-License-Identifier: Apache-2.0
"""A variant of a case over several ranks, of which each has a part of the weights, of their gradients and of the optimizer's state.

The model is patched, then sharded. Its matrices have no memory before they are in shards, and each is drawn as it is for a model that is whole,
of which a rank keeps its part. So one seed gives all layouts the same weights, and no GPU ever holds all of them.
"""
import contextlib
import importlib.util
import os

import torch

from .trained import Trained
from .variants import Unavailable

HAS_DEEPSPEED = importlib.util.find_spec("deepspeed") is not None


class Sharded(Trained):
    """It is made anew in every turn: what shards a model keeps memory for its transfers."""

    def _make(self):
        if self.variant == "float32":
            raise Unavailable("float32 takes weights that are whole")
        super()._make()
        self._shard()
        self.parameters = list(self.model.parameters())

    def _where(self):
        return _matrices_nowhere(self.device)

    def _fill(self):
        if self.model is None:
            self._make()
        self._draw()

    def _shard(self):
        raise NotImplementedError

    def _draw(self):
        raise NotImplementedError

    def _forget(self):
        self.model = self.run = None
        self.parameters = []


class FullyShard(Sharded):
    """FSDP2 of each decoder layer, and of what is left."""

    def _shard(self):
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        mesh = init_device_mesh(self.device.type, (self.place.ranks,))
        for module in [*self.model.model.layers, self.model]:
            fully_shard(module, mesh=mesh)
        _give_memory(self.model, self.device)

    @torch.no_grad()
    def _draw(self):
        from torch.distributed.tensor import distribute_tensor

        for p, whole in zip(self.parameters, self.start.tensors(self.device, self.seed)):
            p.to_local().copy_(distribute_tensor(whole, p.device_mesh, p.placements, src_data_rank=None).to_local())


class Zero3(Sharded):
    """DeepSpeed's ZeRO-3. It shards weights that are there, so they come by way of the processor's memory."""

    SETTINGS = {"train_micro_batch_size_per_gpu": 1, "zero_allow_untested_optimizer": True, "zero_force_ds_cpu_optimizer": False,
                "steps_per_print": 10**9, "gradient_clipping": 0.0, "zero_optimization": {"stage": 3},
                "bf16": {"enabled": True, "bf16_master_weights_and_grads": True, "bf16_optimizer_states": True}}  # all of it

    def _make(self):
        if not HAS_DEEPSPEED:
            raise Unavailable("deepspeed is not installed; install it with: pip install deepspeed")
        super()._make()

    def _shard(self):
        rank, ranks = str(self.place.rank), str(self.place.ranks)
        os.environ.update(RANK=rank, LOCAL_RANK=rank, WORLD_SIZE=ranks, MASTER_ADDR="127.0.0.1", MASTER_PORT="0")  # which it asks for
        _give_memory(self.model, torch.device("cpu"))

    def _draw(self):
        import deepspeed

        for p, whole in zip(self.parameters, self.start.tensors(self.device, self.seed)):
            p.data = whole.to(p.device)
        deepspeed.zero.Init(module=self.model, config_dict_or_path=self.SETTINGS)

    def _optimizer(self):
        import deepspeed

        self.run = deepspeed.initialize(model=self.run, config=self.SETTINGS, optimizer=super()._optimizer())[0]
        return self.run

    def _learn(self, optimizer, loss):
        optimizer.backward(loss)
        optimizer.step()


LAYOUTS = {"fsdp2": FullyShard, "zero3": Zero3}


class _NoMatrices(torch.overrides.TorchFunctionMode):
    """Matrices that a model makes have no memory; vectors, which it makes with values, and buffers do."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if function is torch.empty and len(args[0] if isinstance(args[0], (tuple, list)) else args) > 1:
            kwargs = {**kwargs, "device": "meta"}
        return function(*args, **kwargs)


@contextlib.contextmanager
def _matrices_nowhere(device):
    with device, _NoMatrices():
        yield


def _give_memory(model, device):
    """Memory with anything in it for what has none. Tensors are swapped, so tied weights stay tied."""
    before = torch.__future__.get_swap_module_params_on_conversion()
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        model._apply(lambda tensor: torch.empty_like(tensor, device=device) if tensor.is_meta else tensor)
    finally:
        torch.__future__.set_swap_module_params_on_conversion(before)
