# SPDX-License-Identifier: Apache-2.0
"""Tensors of a call as torch's, on a GPU where there is one, or as numpy's for a peer without torch.

Inputs are copied out of the shared memory, which all peers read.
"""
import contextlib
import gc
import math
import sys

import tigon_call

ROOM = 16  # a call takes several times its tensors, and whoever runs beside it wants most of the memory


class MadeUp:
    """Says whether inputs are made up."""

    makes_up = False

    @contextlib.contextmanager
    def made_up(self):
        """Inputs are zeros, of the same sizes and kinds."""
        self.makes_up = True
        try:
            yield
        finally:
            self.makes_up = False


class Numpy(MadeUp, tigon_call.NumpyTensors):
    """Host memory; 16-bit elements are computed with in float32."""

    on_gpu = False
    executor = "external"

    def given(self, t):
        given = super().given(t)
        return self.numpy.zeros_like(given) if self.makes_up else given.copy()

    def is_tensor(self, value):
        return isinstance(value, self.numpy.ndarray)

    def begin(self):
        pass

    release = synchronize = begin

    def is_broken(self):
        return False


class Torch(MadeUp, tigon_call.TorchTensors):
    """On the GPU everything is enqueued on one stream of its own, which a graph can capture."""

    def __init__(self, torch):
        super().__init__(torch)
        self.is_locked = False
        self.on_gpu = torch.cuda.is_available()
        self.executor = "cuda" if self.on_gpu else "external"
        self.device = torch.device("cuda" if self.on_gpu else "cpu")
        self.stream = torch.cuda.Stream() if self.on_gpu else None
        if self.on_gpu:
            torch.cuda.set_stream(self.stream)  # for good: autograd's backward runs where its forward ran

    def map(self, memory):
        """Locks the memory's pages where a GPU copies from them, which is several times as fast."""
        if not self.on_gpu:
            super().map(memory)
            return
        cudart = self.torch.cuda.cudart()
        if self.is_locked:
            cudart.cudaHostUnregister(self.memory.data_ptr())
        super().map(memory)
        self.is_locked = cudart.cudaHostRegister(self.memory.data_ptr(), self.memory.numel(), 0) == cudart.cudaError.success
        if not self.is_locked:
            with contextlib.suppress(RuntimeError):  # the next launch is told of it
                self.torch.arange(1, device=self.device)

    def given(self, t):
        return self.zeros(t) if self.makes_up else super().given(t).to(self.device, copy=True)

    def zeros(self, t):
        return self.torch.zeros(t["sizes"], dtype=self.kind(t), device=self.device)

    def has_room_for(self, tensors):
        """Whether so many tensors are so small a part of the free memory that others do not miss it."""
        if not self.on_gpu:
            return True
        needed = sum(math.prod(t["sizes"]) * self.kind(t).itemsize for t in tensors if t["at"] is not None)
        return needed * ROOM < self.torch.cuda.mem_get_info()[0]

    def take(self, t, value):
        super().take(t, value.detach())

    def is_tensor(self, value):
        return isinstance(value, self.torch.Tensor)

    def begin(self):
        """Forgets what was compiled for other shapes, because beyond eight of them torch.compile runs eagerly, and the
        workspaces of cuBLAS, which are extra memory of the case that needs them."""
        if dynamo := sys.modules.get("torch._dynamo"):
            dynamo.reset()
        if self.on_gpu:
            self.torch._C._cuda_clearCublasWorkspaces()  # pylint: disable=protected-access

    def release(self):
        gc.collect()
        if self.on_gpu:
            self.torch.cuda.empty_cache()

    def synchronize(self):
        if self.on_gpu:
            self.torch.cuda.synchronize()

    def is_broken(self):
        """True after an error that stays, e.g. an illegal address."""
        try:
            self.synchronize()
        except RuntimeError:
            return True
        return False
