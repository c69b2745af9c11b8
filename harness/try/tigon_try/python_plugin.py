# SPDX-License-Identifier: Apache-2.0
"""The process of kernels in Python: a worker in place of tigon-plugin-host, which is one for libraries.

It has a connection to the judge and the shared memory of the tensors, and neither oracle nor contract nor results. A
function is called with the tensors and options that its parameters name: inputs by value, outputs to write into. What
it returns are the outputs that it has no parameter for: one, a tuple in the order of the signature, or a dict. What an
op keeps for backward may come from a function NAME_saved instead, which is not timed. Tensors are torch's when the file
imports torch, else numpy arrays, in float32 where elements have 16 bits. A chain of primitives that stores values in
the element type on the way says how many: FUNCTION.roundings = 1; the budget allows for them, and the verdict says so.
"""
import importlib.util
import inspect
import os
import pathlib
import sys

import tigon_call
import tigon_worker

OK, INVALID, UNSUPPORTED = range(3)


class NumpyArrays(tigon_call.NumpyTensors):
    """Tensors as numpy arrays, in host memory."""

    def clear(self):
        self.numpy.ndarray(len(self.memory), "u1", self.memory)[:] = 0

    def put(self):
        pass

    get = begin_ordered = end_ordered = synchronize = flush_caches = put

    def call(self, body):
        body()


class TorchArrays(tigon_call.TorchTensors):
    """Tensors as torch's; on a GPU they lie in device memory of the shared memory's layout."""

    def __init__(self, on_gpu):
        import torch
        super().__init__(torch)
        self.on_gpu = on_gpu
        self.shared = self.staged = None
        self.stream = torch.cuda.Stream() if on_gpu else None
        if on_gpu:
            l2_bytes = getattr(torch.cuda.get_device_properties(0), "L2_cache_size", 64 << 20)  # torch before 2.2 does not tell
            self.flushed = torch.zeros(2 * l2_bytes // 4, dtype=torch.int32, device="cuda")

    def map(self, memory):
        super().map(memory)
        self.shared = self.memory
        if self.on_gpu:
            self.memory, self.staged = (self.torch.empty(len(memory), dtype=self.torch.uint8, device="cuda") for _ in range(2))

    def clear(self):
        self.memory.zero_()
        self.synchronize()

    def put(self):
        if self.on_gpu:
            self.memory.copy_(self.shared)
            self.synchronize()

    def get(self):
        if self.on_gpu:
            self.shared.copy_(self.memory)

    def begin_ordered(self):
        """The inputs arrive late and in the order of the stream: work on another stream comes too early for them."""
        if not self.on_gpu:
            return
        self.staged.copy_(self.shared)
        self.memory.fill_(255)
        self.synchronize()
        with self.torch.cuda.stream(self.stream):
            self.torch.cuda._sleep(5_000_000)  # some milliseconds
            self.memory.copy_(self.staged)

    def end_ordered(self):
        if not self.on_gpu:
            return
        with self.torch.cuda.stream(self.stream):
            self.staged.copy_(self.memory)
        self.stream.synchronize()
        self.shared.copy_(self.staged)

    def synchronize(self):
        if self.on_gpu:
            self.torch.cuda.synchronize()

    def flush_caches(self):
        """Leaves the GPU's caches without the tensors, and the GPU with this process, not the judge's."""
        if self.on_gpu:
            self.flushed.add_(1)
            self.synchronize()

    def call(self, body):
        with self.torch.no_grad():
            if not self.on_gpu:
                return body()
            with self.torch.cuda.stream(self.stream):
                return body()


class Function:
    """A pass of an op as somebody wrote it."""

    def __init__(self, module, name, defaults):
        self.function, self.defaults = getattr(module, name), defaults
        parameters = inspect.signature(self.function).parameters.values()
        self.takes_all = any(p.kind == p.VAR_KEYWORD for p in parameters)
        self.names = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
        saved = getattr(module, f"{name}_saved", None)
        self.saved = Function(module, f"{name}_saved", defaults) if saved else None

    def prepared(self, tensors, options, arrays):
        """(the call, what comes after it untimed), as functions without arguments."""
        if not self.saved:
            return self.prepared_one(tensors, options, arrays), lambda: None
        rest = {name: t for name, t in tensors.items() if t["role"] != "saved"}
        for_saved = {name: t for name, t in tensors.items() if t["role"] in ("in", "saved")}
        return self.prepared_one(rest, options, arrays), self.saved.prepared_one(for_saved, options, arrays)

    def prepared_one(self, tensors, options, arrays):
        words, outputs = {}, []
        for name, t in tensors.items():
            is_output, given = t["role"] != "in", t["at"] is not None
            if name in self.names or (t["role"] in ("in", "inout") and self.takes_all):
                words[name] = arrays.given(t) if given else None
                if is_output and given:
                    outputs.append(("written", name))
            elif is_output and given:
                outputs.append(("returned", name))
        for name, value in options.items():
            if name in self.names or self.takes_all:
                words[name] = value
            elif value != self.defaults[name]:
                raise tigon_call.Unsupported(f"the function has no parameter {name}, which this call needs")
        if prepare := getattr(self.function, "prepare", None):  # of a peer: tables in another shape, say
            words = prepare(**words)
        returned = [name for how, name in outputs if how == "returned"]

        def call():
            result = self.function(**words)
            for name, value in self.results(result, returned).items():
                arrays.take(tensors[name], value)
            for how, name in outputs:
                if how == "written":
                    arrays.take(tensors[name], words[name])
        return call

    def results(self, result, names):
        if not names:
            return {}
        if isinstance(result, dict):
            missing = [name for name in names if name not in result]
            if missing:
                raise ValueError(f"the function's dict lacks {', '.join(missing)}")
            return {name: result[name] for name in names}
        values = result if isinstance(result, tuple) else (result,)
        if len(values) != len(names) or any(v is None for v in values):
            raise ValueError(f"the function returned {0 if result is None else len(values)} results; it would be "
                             f"{', '.join(names)}, or give it parameters of these names to write into")
        return dict(zip(names, values))


class Server:
    def __init__(self, facts):
        self.facts = facts
        self.channel = tigon_worker.Channel()
        self.arrays = None
        self.ops = []
        self.mapped = 0

    def load(self):
        try:
            on_gpu = self.facts["device"] == 1
            module = load_module(self.facts["file"], on_gpu)
            self.ops = [(k, Function(module, k["function"], {o["name"]: o["default"] for o in k["options"]}), dtype)
                        for k in self.facts["kernels"] for dtype in k["dtypes"]]
            wants_torch = on_gpu or "torch" in sys.modules or "triton" in sys.modules
            self.arrays = TorchArrays(on_gpu) if wants_torch else NumpyArrays()
        except (Exception, SystemExit) as error:  # pylint: disable=broad-except
            return {"bad_library": f"{self.facts['file']}: {type(error).__name__}: {error}"}
        ops = [{"name": k["name"], "dtype": dtype, "implementation": self.facts["name"], "device": self.facts["device"],
                "roundings": k["roundings"]} for k, _, dtype in self.ops]
        return {"ops": ops, "sandbox": self.facts["sandbox"]}

    def prepared(self, request):
        kernel, function, _ = self.ops[request["op"]]
        return function.prepared(*tigon_call.named(request["call"], kernel), self.arrays)

    def map(self, size):
        if size > self.mapped:
            self.mapped = size
            self.arrays.map(tigon_worker.shared_memory(size))

    def run(self, request):
        arrays = self.arrays
        call, after = self.prepared(request)
        arrays.begin_ordered()
        arrays.call(call)
        arrays.call(after)
        arrays.end_ordered()
        return {"code": OK, "message": ""}

    def prepare(self, request):
        """One call over zeros: what is compiled, chosen and started at the first call is no part of its time."""
        self.arrays.clear()
        self.arrays.call(self.prepared(request)[0])
        self.arrays.synchronize()
        return {"code": OK, "message": ""}

    def timed(self, request):
        """The judge's clock runs from its byte to ours, so the arguments are ready before."""
        call, after, reply = lambda: None, lambda: None, {}
        if request["do"] == "timed":
            call, after = self.prepared(request)
            reply = {"code": OK, "message": ""}
        self.arrays.flush_caches()
        self.channel.send({"armed": True})
        if self.channel.byte(spins=self.facts["device"] == 1) != b"g":
            os._exit(0)
        try:
            self.arrays.call(call)
            self.arrays.synchronize()
        except Exception as error:  # pylint: disable=broad-except
            reply, after = {"fault": f"raised {type(error).__name__}: {error}"}, lambda: None
        self.channel.send_byte(b"d")
        self.arrays.call(after)
        return reply

    def answer(self, request):
        what = request["do"]
        if what == "load":
            return self.load()
        try:
            if what == "empty":
                return self.timed(request)
            self.map(request["bytes"])
            if what == "workspace":
                return {"bytes": 0}
            if what in ("put", "get"):
                getattr(self.arrays, what)()
                return {}
            if what == "settle":
                self.arrays.synchronize()
                self.arrays.get()
                return {}
            return {"timed": self.timed, "prepare": self.prepare, "run": self.run}[what](request)
        except tigon_call.Unsupported as error:
            return {"code": UNSUPPORTED, "message": str(error)}
        except Exception as error:  # pylint: disable=broad-except
            return {"fault": f"raised {type(error).__name__}: {error}"}

    def serve(self):
        self.channel.send(self.answer({"do": "load"}))  # the request came before this program
        for request in self.channel.requests():
            self.channel.send(self.answer(request))


def load_module(path, on_gpu):
    """A file as a module, with the caches of what it may compile in the one folder that is open to it."""
    cache = pathlib.Path(sys.argv[0]).resolve().parent / "cache"
    for name in ("TRITON_CACHE_DIR", "TRITON_HOME", "TORCHINDUCTOR_CACHE_DIR", "TMPDIR", "CUDA_CACHE_PATH", "XDG_CACHE_HOME"):
        os.environ[name] = str(cache)
    if not on_gpu:
        os.environ["TRITON_INTERPRET"] = "1"
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # processes that stay would be taken for work that goes on
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(pathlib.Path(path).resolve().parent))
    spec = importlib.util.spec_from_file_location("tigon_tried_file", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
