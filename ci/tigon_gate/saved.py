# SPDX-License-Identifier: Apache-2.0
"""What a built program computes: the tensors of its cases, as `tigon check --save` writes them."""
import dataclasses
import functools
import json
import os
import pathlib
import re
import subprocess

import numpy

from tigon_report import records
from tigon_report.errors import DataError, InfrastructureError

DTYPES = ("f32", "bf16", "f16")
CASE_TIMEOUT_S = 300  # a case that is late on a busy machine would look like a difference
PROPERTIES = ",prop="  # in the id of a case that compares a kernel with itself, which saves no tensors


@dataclasses.dataclass
class Ran:
    """A case in one program. `files` is empty where the kernel did not run to its end."""

    verdict: str
    reason: str
    files: dict  # (tensor, input or output) -> (file, dtype)


class Program:
    """A built tigon that checks cases and keeps their tensors."""

    def __init__(self, side, path, device, seed, environment=()):
        self.side, self.path, self.seed = side, pathlib.Path(path).resolve(), seed
        self.executor = "cuda" if device == "cuda" else "fast"
        # Tuned launch shapes are no part of a tree.
        self.environment = {**os.environ, "TIGON_LAUNCH_TABLE": "", **dict(environment)}
        self.header = None  # run record of its first process
        if not os.access(self.path, os.X_OK):
            raise InfrastructureError(f"{side}: {self.path} is no program")

    @functools.cached_property
    def kernels(self):
        """{(op, dtype)} that it has fused kernels for."""
        done = self._run(["list"], None)
        if done.returncode != 0:
            raise InfrastructureError(f"{self.side}: {self.path} list: {_last_line(done) or done.returncode}")
        rows = [line.split() for line in done.stdout.splitlines()]
        return {(row[0], dtype) for row in rows if len(row) > 3 and row[2] == "fused" for dtype in set(row) & set(DTYPES)}

    def check(self, selection, folder):
        """{case id: Ran} of the cases that options of `tigon check` select; their tensors go to `folder`."""
        file = pathlib.Path(folder) / "records.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        done = self._run(["check", "--impl", "fused", "--executor", self.executor, "--seed", str(self.seed), "--exclude",
                          PROPERTIES, "--shrink", "0", "--timeout", str(CASE_TIMEOUT_S), "--save", str(folder),
                          "--json", str(file), *selection], folder)
        if done.returncode in (130, -2):
            raise KeyboardInterrupt
        try:
            lines = [line.record for line in records.read_file(file)] if file.is_file() else []
        except DataError as error:
            raise InfrastructureError(f"{self.side}: {error}") from error
        if done.returncode == 4 and not any(line["record"] == "check" for line in lines):
            return {}  # nothing is selected
        if not any(line["record"] == "end" for line in lines):
            raise InfrastructureError(f"{self.side}: {self.path} check: {_last_line(done) or f'exit code {done.returncode}'}")
        self.header = self.header or next(line for line in lines if line["record"] == "run")
        return {line["case_id"]: Ran(line["verdict"], line.get("reason", ""), _files(pathlib.Path(folder) / line["case_key"]))
                for line in lines if line["record"] == "check"}

    def _run(self, words, folder):
        return subprocess.run([str(self.path), *words], capture_output=True, text=True, errors="replace", check=False,
                              cwd=folder, env=self.environment, stdin=subprocess.DEVNULL)


def _last_line(done):
    return ((done.stderr.strip() or done.stdout.strip()).splitlines() or [""])[-1]


def _files(folder):
    manifest = folder / "manifest.json"
    if not manifest.is_file():
        return {}
    return {(tensor["name"], what): (folder / tensor["files"][what], tensor["dtype"])
            for tensor in json.loads(manifest.read_text())["tensors"] for what in ("input", "output")
            if what in tensor["files"]}


@dataclasses.dataclass
class Difference:
    """Where two programs' bytes of a tensor first differ."""

    tensor: str
    what: str  # input, output
    where: str  # index of the element, or the two shapes
    base: str
    head: str
    elements: int  # that differ
    of: int


def difference(key, base, head):
    """The Difference of one tensor, or None."""
    (base_file, base_type), (head_file, head_type) = base, head
    if base_type == head_type and base_file.read_bytes() == head_file.read_bytes():
        return None
    a, b = numpy.load(base_file), numpy.load(head_file)
    if (base_type, a.shape) != (head_type, b.shape):
        return Difference(*key, " (type and shape)", f"{base_type} {list(a.shape)}", f"{head_type} {list(b.shape)}",
                          max(a.size, b.size), max(a.size, b.size))
    rows_a, rows_b = (x.reshape(-1).view(numpy.uint8).reshape(x.size, x.itemsize) for x in (a, b))
    differs = numpy.flatnonzero((rows_a != rows_b).any(axis=1))
    first = numpy.unravel_index(differs[0], a.shape)
    return Difference(*key, f"[{', '.join(str(i) for i in first)}]", _value(a[first], base_type), _value(b[first], head_type),
                      len(differs), a.size)


def _value(element, dtype):
    """An element as a number and, since numbers that print alike may differ in a bit, its bits."""
    bits = element.tobytes()[::-1].hex()
    if dtype == "bf16":  # which numpy lacks; it is the upper half of an f32
        element = numpy.array(numpy.uint32(element) << 16, numpy.uint32).view(numpy.float32)[()]
    return f"{element:.9g} (0x{bits})" if re.match("b?f", dtype) else f"{element} (0x{bits})"
