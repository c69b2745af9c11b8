# SPDX-License-Identifier: Apache-2.0
"""Tensors of a request as torch's, on a GPU where there is one, or as numpy's for a peer without torch.

Files hold the values of a tensor as float64 in row-major order, which holds every value of every type here exactly.
"""
import gc
import sys

import numpy


def from_file(t):
    return numpy.fromfile(t["file"], "<f8").reshape(t["shape"])


class Numpy:
    """Host memory; 16-bit elements are computed with in float32."""

    on_gpu = False
    executor = "external"

    def tensor(self, t, seed):
        if "file" in t:
            values = from_file(t)
        elif t["plan"]["distribution"] == "ones":
            values = numpy.ones(t["shape"])
        elif t["plan"]["distribution"] == "targets":
            values = numpy.random.default_rng(seed).integers(0, t["plan"]["classes"], t["shape"])
        else:
            values = numpy.random.default_rng(seed).normal(t["plan"]["mean"], t["plan"]["scale"], t["shape"])
        kinds = {"f64": "f8", "i64": "i8", "i32": "i4", "u8": "u1"}
        return values.astype(kinds.get(t["dtype"], "f4"))

    def save(self, value, file):
        value = numpy.ascontiguousarray(value, "<f8")
        value.tofile(file)
        return value.size

    def is_tensor(self, value):
        return isinstance(value, numpy.ndarray)

    def begin(self):
        pass

    release = synchronize = begin

    def is_broken(self):
        return False


class Torch:
    """On the GPU everything is enqueued on one stream of its own, which a graph can capture."""

    def __init__(self, torch):
        self.torch = torch
        self.on_gpu = torch.cuda.is_available()
        self.executor = "cuda" if self.on_gpu else "external"
        self.device = torch.device("cuda" if self.on_gpu else "cpu")
        self.stream = torch.cuda.Stream() if self.on_gpu else None
        if self.on_gpu:
            torch.cuda.set_stream(self.stream)  # for good: autograd's backward runs where its forward ran

    def dtype(self, name):
        torch = self.torch
        return {"f64": torch.float64, "f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16,
                "i64": torch.int64, "i32": torch.int32, "u8": torch.uint8}[name]

    def tensor(self, t, seed):
        """Values of a file, or of the plan's distribution; the same for the same seed."""
        torch, dtype = self.torch, self.dtype(t["dtype"])
        if "file" in t:
            return torch.from_numpy(from_file(t)).to(dtype).to(self.device)
        generator = torch.Generator(self.device)
        generator.manual_seed(seed)
        plan = t["plan"]
        if plan["distribution"] == "ones":
            return torch.ones(t["shape"], dtype=dtype, device=self.device)
        if plan["distribution"] == "targets":
            made = torch.randint(0, plan["classes"], t["shape"], generator=generator, device=self.device, dtype=dtype)
            if plan["ignored"]:
                made[torch.rand(t["shape"], generator=generator, device=self.device) < plan["ignored"]] = plan["ignore_index"]
            return made
        return torch.empty(t["shape"], dtype=dtype, device=self.device).normal_(plan["mean"], plan["scale"], generator=generator)

    def save(self, value, file):
        value = value.detach().double().cpu().contiguous().numpy()
        value.tofile(file)
        return value.size

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
