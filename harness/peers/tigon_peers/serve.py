# SPDX-License-Identifier: Apache-2.0
"""The process of one peer, a worker: answers each request with its results or times.

A request has `do`: "outputs" (the results of the call, written into its outputs), "warm" (calls of it), "measure" (its times
and peak memory) or "prepare" (what a compiler keeps, of calls that will come). The other side is harness/peers/peer_process.h.
Whatever goes wrong is an answer {"verdict", "reason"}. What imports leave behind is frozen: it stays, and each later collection
would look at all of it again.
"""
import contextlib
import gc
import importlib
import importlib.util
import math
import sys

import tigon_call
import tigon_worker

from . import backends, calls, known, timing

# What libraries raise for a call that they do not take. Others are mistakes of the peer's file.
REFUSALS = (AssertionError, NotImplementedError, RuntimeError, ValueError)


def load(name):
    """(module, backend) of a peer. Raises what its import raises."""
    file = known.files()[name]
    sys.path[1:1] = [str(folder) for folder in known.folders()]
    spec = importlib.util.spec_from_file_location(file.stem, file)
    module = sys.modules[file.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module, backends.Torch(sys.modules["torch"]) if "torch" in sys.modules else backends.Numpy()


class Peer:
    def __init__(self, name):
        self.missing, self.is_broken = None, False
        self.mapped = 0
        try:
            self.module, self.backend = load(name)
        except Exception as error:  # an import of somebody else's package
            self.missing = f"not importable: {timing.first_line(error)}"
        gc.freeze()

    def answer(self, request):
        if self.missing:
            return {"verdict": "unsupported", "reason": self.missing}
        try:
            self.map(request["bytes"])
            does = {"measure": self.measure, "outputs": self.outputs, "prepare": self.prepare, "warm": self.warm}
            return does[request["do"]](request)
        except calls.Unsupported as error:
            return {"verdict": "unsupported", "reason": str(error)}
        except tigon_call.WrongShape as error:
            return {"verdict": "incorrect_shape", "reason": str(error)}
        except Exception as error:  # whatever a library raises
            self.is_broken = self.backend.is_broken()
            return {"verdict": self.verdict_of(error), "reason": f"raised {timing.first_line(error)}"}
        finally:
            if not self.is_broken:
                self.backend.release()

    def verdict_of(self, error):
        if "OutOfMemory" in type(error).__name__:
            return "oom"
        return "unsupported" if isinstance(error, REFUSALS) and not self.is_broken else "runtime_error"

    def map(self, size):
        if size > self.mapped:
            self.mapped = size
            self.backend.map(tigon_worker.shared_memory(size))

    def call(self, request):
        """The call, on inputs of its own."""
        return calls.prepared(self.module, self.backend, request["op"], *tigon_call.named(request["call"], request["op"]))

    def measure(self, request):
        bench = timing.Bench(self.backend, lambda: self.call(request), request["rule"], request["l2_bytes"])
        bench.fill()
        bases = request["bases"] if self.backend.on_gpu else ["wall"]
        timings = [bench.basis(name) for name in bases]
        self.is_broken = bench.is_broken
        return {"verdict": "passed", "reason": "", "executor": self.backend.executor, "method": bench.calls[0].method,
                "peak_bytes": bench.peak_bytes, "sets": len(bench.calls), "timings": timings}

    def warm(self, request):
        """What a first call compiles, tunes and starts is no part of a measurement's time. Its inputs are made up,
        which spares a copy of them."""
        self.backend.begin()
        with self.backend.made_up():
            call = self.call(request)
        call.build()
        for _ in range(2):
            call.run()
        self.backend.synchronize()
        return {"verdict": "passed", "reason": ""}

    def prepare(self, request):
        """Compiles and loads what these requests will need, while somebody else has the GPU, where the peer keeps it (PREPARES).
        What fails here fails again, and is recorded, where it is asked for."""
        for one in request["requests"] if getattr(self.module, "PREPARES", False) else []:
            tensors, _ = tigon_call.named(one["call"], one["op"])
            if self.backend.has_room_for(tensors.values()):
                with contextlib.suppress(Exception):
                    self.warm(one)
            self.backend.release()
        self.backend.begin()
        self.backend.release()
        gc.freeze()
        return {"verdict": "passed", "reason": ""}

    def outputs(self, request):
        call, made = self.call(request), []
        tensors, _ = tigon_call.named(request["call"], request["op"])
        call.build()
        for name, value in call.run().items():
            t = tensors.get(name)
            if t and t["at"] is not None and t["role"] != "in" and self.backend.is_tensor(value):
                self.backend.take(t, reshaped(t, value))
                made.append(name)
        return {"verdict": "passed", "reason": "", "executor": self.backend.executor, "outputs": made}


def reshaped(t, value):
    """The value in its tensor's shape, if it has as many elements: a loss may be a scalar."""
    return value.reshape(t["sizes"]) if math.prod(value.shape) == math.prod(t["sizes"]) else value


def main(name):
    channel = tigon_worker.Channel()
    peer = Peer(name)
    for request in channel.requests():
        channel.send(peer.answer(request))
        if peer.is_broken:
            return 0  # the next request starts another process
    return 0
