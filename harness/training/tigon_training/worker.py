# SPDX-License-Identifier: Apache-2.0
"""The process of a variant, or of one rank of it: python3 -m tigon_training.worker VARIANT SEED [PLACE].

It reads requests, a JSON object a line, and answers each with one. First it says what it runs on. What libraries print goes to standard error.
"""
import importlib.metadata
import json
import os
import platform
import sys

from .case import parse
from .place import ALONE, Place

SETTINGS = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "NCCL_")  # what variables begin with that change what is measured


def facts():
    """Device, as records have it, and versions."""
    import torch

    libraries = {"python": platform.python_version()}
    for name in ("torch", "transformers", "triton", "liger_kernel", "deepspeed"):
        try:
            libraries[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            libraries[name] = None
    common = {"libraries": libraries, "environment": {name: value for name, value in os.environ.items() if name.startswith(SETTINGS)}}
    if not torch.cuda.is_available():
        return {**common, "device": {"kind": "host"}}
    found = torch.cuda.get_device_properties(0)
    return {**common, "device": {
        "kind": "cuda", "name": found.name, "sm_count": found.multi_processor_count, "l2_bytes": found.L2_cache_size, "memory_bytes": found.total_memory,
        "compute_capability": f"{found.major}.{found.minor}", "runtime": str(torch.version.cuda)}}


class Worker:
    """Keeps the model of the last case."""

    def __init__(self, variant, seed, place=ALONE):
        self.variant, self.seed, self.place = variant, seed, place
        self.text, self.trained = None, None

    def answer(self, request):
        """What a turn measured, or why it did not."""
        import torch

        from .variants import Unavailable

        try:
            return {"verdict": "passed", "reason": "", **self._turn(request)}
        except Unavailable as error:
            return {"verdict": "unsupported", "reason": str(error)}
        except torch.OutOfMemoryError as error:
            return {"verdict": "oom", "reason": str(error).partition(". ")[0]}
        except Exception as error:  # noqa: BLE001 - of whatever a library raises the record says what it was
            return {"verdict": "runtime_error", "reason": f"{type(error).__name__}: {str(error)[:300]}"}

    def _turn(self, request):
        if self.text != request["case"]:
            self.release()
            self.trained, self.text = self._trained(parse(request["case"])), request["case"]
        found = self.trained.turn(request["round"], request["warmup"], request["steps"], request.get("profile"))
        return {**found, "parameters": self.trained.count, "what": self.trained.what}

    def _trained(self, case):
        from .sharded import LAYOUTS
        from .trained import Trained

        if not self.place.layout:
            return Trained(case, self.variant, self.seed)
        self.place.join()
        return LAYOUTS[self.place.layout](case, self.variant, self.seed, self.place)

    def park(self):
        """Leaves the GPU to the others."""
        if self.trained is not None:
            self.trained.park()

    def release(self):
        """Forgets the model."""
        self.park()
        self.text, self.trained = None, None


def main(variant, seed, place=None):
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    place = Place(**json.loads(place)) if place else ALONE
    if place.layout:
        place.take_device()

    def say(answer):
        print(json.dumps(answer), file=answers, flush=True)

    say(facts())
    worker = Worker(variant, int(seed), place)
    for line in sys.stdin:
        answer = worker.answer(json.loads(line))
        worker.park()  # here no error holds the step's tensors any more
        say(answer)
    if place.layout:
        place.leave()


if __name__ == "__main__":
    main(*sys.argv[1:])
