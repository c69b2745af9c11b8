# SPDX-License-Identifier: Apache-2.0
"""What a file's kernels move through memory, counted by the checking executor in a process of its own over zeros."""
import ctypes
import json
import subprocess
import sys

from . import abi


def counted(request):
    """{loaded, stored, requests, sectors} of one call with default options."""
    library = ctypes.CDLL(request["library"])
    op = abi.find(library, request["name"], request["dtype"])
    tensors, keep = (abi.Tensor * len(request["tensors"]))(), []

    def memory(size):
        buffer = ctypes.create_string_buffer(size + 256)
        keep.append(buffer)
        return -(-ctypes.addressof(buffer) // 256) * 256

    for k, (dtype, shape) in enumerate(request["tensors"]):
        size = 1
        for length in shape:
            size *= length
        code, width = abi.DTYPES[dtype]
        tensors[k] = abi.Tensor(memory(size * width), (ctypes.c_int64 * len(shape))(*shape), None, code, len(shape))
    call = abi.Call(tensors, None, None, 0, len(tensors), 0)
    call.scratch_bytes = op.contents.workspace(op, call)
    call.scratch = memory(call.scratch_bytes) if call.scratch_bytes else None
    status = op.contents.run(op, call, None)
    if status.code != 0:
        raise SystemExit(status.message.decode())
    figures = (ctypes.c_double * 4)()
    library.tigon_try_traffic(figures)
    return dict(zip(("loaded", "stored", "requests", "sectors"), figures))


def of_case(library, signature, one_pass, dtype, axes, limit):
    """Counted figures of a case with default options, or None where it cannot be counted; subprocess.TimeoutExpired after `limit` seconds."""
    described = signature.passes[one_pass]["tensors"]
    if any(symbol not in axes for t in described for symbol in t["shape"]):  # a shape that is more than names of axes
        return None
    tensors = [(t["dtypes"][dtype], [axes[symbol] for symbol in t["shape"]]) for t in described]
    request = {"library": str(library), "name": f"{signature.op}.{one_pass}", "dtype": dtype, "tensors": tensors}
    done = subprocess.run([sys.executable, "-m", "tigon_try.traffic"], input=json.dumps(request), capture_output=True, text=True, check=False,
                          timeout=limit)
    return json.loads(done.stdout) if done.returncode == 0 else None


if __name__ == "__main__":
    print(json.dumps(counted(json.load(sys.stdin))))
