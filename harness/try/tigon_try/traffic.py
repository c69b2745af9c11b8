"""What a file's kernels move through memory, counted by the checking executor in a process of its own over zeros."""
import ctypes
import json
import re
import subprocess
import sys

ROLES = {"in": 0, "out": 1, "in/out": 2, "inout": 2, "saved": 3}
DTYPES = {"f64": (0, 8), "f32": (1, 4), "bf16": (2, 2), "f16": (3, 2), "i64": (4, 8), "i32": (5, 4), "u8": (6, 1)}
POLICIES = ("f32", "bf16", "f16")
HOST = 0


def contract(program, op, one_pass):
    """(tensors, options) of a pass as `tigon describe` tells them; None when a shape is more than names of axes."""
    text = subprocess.run([program, "describe", op], capture_output=True, text=True, check=True).stdout
    section = re.search(rf"^{one_pass}\n(.*?)^  implementations", text, re.S | re.M)[1]
    tensors = [(name, ROLES[role], shape.split(", "), dtypes.split()) for name, role, shape, dtypes in
               re.findall(r"^ {4}(\w+) +(in/out|inout|in|out|saved) +\[([\w, ]+)\] +([\w ]+?)(?:  \(.*)?$", section, re.M)]
    if len(tensors) != len(re.findall(r"^ {4}\w+ +(?:in|out|in/out|inout|saved) ", section, re.M)):
        return None
    options = []
    for name, value, choices in re.findall(r"^ {4}(\w+) +default (\S+)(?:  \((.*)\))?$", section, re.M):
        number = choices.split(", ").index(value) if choices else float(value)
        options.append((name, number, value if choices else ""))
    return tensors, options


class Tensor(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("role", ctypes.c_int32), ("dtype", ctypes.c_int32), ("rank", ctypes.c_int32),
                ("reserved", ctypes.c_int32), ("data", ctypes.c_void_p), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("stride", ctypes.POINTER(ctypes.c_int64))]


class Value(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("number", ctypes.c_double), ("text", ctypes.c_char_p)]


class Call(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("op", ctypes.c_char_p), ("pass_", ctypes.c_char_p), ("dtype", ctypes.c_int32),
                ("device", ctypes.c_int32), ("tensor_count", ctypes.c_int32), ("axis_count", ctypes.c_int32),
                ("option_count", ctypes.c_int32), ("reserved", ctypes.c_int32), ("tensors", ctypes.POINTER(Tensor)),
                ("axes", ctypes.POINTER(Value)), ("options", ctypes.POINTER(Value)), ("workspace", ctypes.c_void_p),
                ("workspace_bytes", ctypes.c_size_t), ("stream", ctypes.c_void_p)]


WORKSPACE = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.POINTER(Call))
RUN = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.POINTER(Call), ctypes.POINTER(ctypes.c_char_p))


class Kernel(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("op", ctypes.c_char_p), ("pass_", ctypes.c_char_p), ("name", ctypes.c_char_p),
                ("device", ctypes.c_int32), ("dtype_count", ctypes.c_int32), ("dtypes", ctypes.c_void_p), ("workspace", WORKSPACE),
                ("prepare", RUN), ("run", RUN)]


class Plugin(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("abi", ctypes.c_uint32), ("kernel_count", ctypes.c_int32), ("name", ctypes.c_char_p),
                ("version", ctypes.c_char_p), ("kernels", ctypes.POINTER(ctypes.POINTER(Kernel)))]


def counted(request):
    """{loaded, stored, requests, sectors} of one call."""
    library = ctypes.CDLL(request["library"])
    library.tigon_plugin_get.restype = ctypes.POINTER(Plugin)
    plugin = library.tigon_plugin_get(1).contents
    kernel = next(k.contents for k in plugin.kernels[:plugin.kernel_count] if k.contents.pass_.decode() == request["pass"])
    tensors, keep = (Tensor * len(request["tensors"]))(), []

    def memory(size):
        buffer = ctypes.create_string_buffer(size + 256)
        keep.append(buffer)
        return -(-ctypes.addressof(buffer) // 256) * 256

    for k, (name, role, dtype, shape) in enumerate(request["tensors"]):
        strides, size = [], 1
        for length in reversed(shape):
            strides.insert(0, size)
            size *= length
        code, width = DTYPES[dtype]
        of = ctypes.c_int64 * len(shape)
        tensors[k] = Tensor(name.encode(), role, code, len(shape), 0, memory(size * width), of(*shape), of(*strides))
    options = (Value * max(1, len(request["options"])))(*(Value(n.encode(), v, t.encode()) for n, v, t in request["options"]))
    axes = (Value * len(request["axes"]))(*(Value(n.encode(), v, b"") for n, v in request["axes"].items()))
    call = Call(ctypes.sizeof(Call), request["op"].encode(), request["pass"].encode(), DTYPES[request["dtype"]][0], HOST, len(tensors),
                len(axes), len(request["options"]), 0, tensors, axes, options, None, 0, None)
    call.workspace_bytes = kernel.workspace(call)
    call.workspace = memory(call.workspace_bytes) if call.workspace_bytes else None
    message = ctypes.c_char_p()
    if kernel.run(call, ctypes.byref(message)) != 0:
        raise SystemExit(message.value.decode() if message.value else "the call failed")
    figures = (ctypes.c_double * 4)()
    library.tigon_try_traffic(figures)
    return dict(zip(("loaded", "stored", "requests", "sectors"), figures))


def of_case(program, library, op, one_pass, dtype, axes):
    """Counted figures of a case with default options, or None where it cannot be counted."""
    known = contract(program, op, one_pass)
    if known is None or any(symbol not in axes for _, _, shape, _ in known[0] for symbol in shape):
        return None
    tensors = [(name, role, dtypes[POLICIES.index(dtype)] if len(dtypes) == len(POLICIES) else dtypes[0], [axes[s] for s in shape])
               for name, role, shape, dtypes in known[0]]
    request = {"library": str(library), "op": op, "pass": one_pass, "dtype": dtype, "axes": axes, "tensors": tensors, "options": known[1]}
    done = subprocess.run([sys.executable, "-m", "tigon_try.traffic"], input=json.dumps(request), capture_output=True, text=True, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else None


if __name__ == "__main__":
    print(json.dumps(counted(json.load(sys.stdin))))
