# SPDX-License-Identifier: Apache-2.0
"""Compiles somebody's .cu file as a plug-in: for the host executor, or with nvcc for a GPU."""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess

from tigon_report.errors import InfrastructureError

from . import signature as signatures
from . import source

MOST_LINES = 24  # of what a compiler says


class CompileError(Exception):
    """The file does not compile: the compiler's words about it."""


class Build:
    """A built tree, from its try.json."""

    def __init__(self, root, folder):
        self.root = pathlib.Path(root)
        self.folder = pathlib.Path(folder)
        try:
            self.facts = json.loads((self.folder / "try.json").read_text())
        except (OSError, ValueError) as error:
            raise InfrastructureError(f"{folder} is no build of Tigon: {error}") from error

    @property
    def program(self):
        return self.facts["program"]

    @property
    def on_gpu(self):
        return self.facts["device"] == "cuda"


def generated(signature, shown, text, passes, dtypes, host):
    """The translation unit: the file between the op's signature and the use of its launchers, with its own lines."""
    body = source.for_host(text) if host else text
    return (signatures.before(signature) + f'#line 1 {json.dumps(str(shown))}\n{body}\n#line 1 "behind {shown.name}"\n' +
            signatures.behind(signature, passes, dtypes))


def _host_words(build, object_file, unit, options):
    return [build.facts["compiler"], "-std=c++20", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", "-fdiagnostics-color=never",
            f"-I{build.root}", *options, "-c", str(unit), "-o", str(object_file)]


def host_object(build, signature, shown, text, folder, passes, dtypes):
    """fast.o in `folder`; the compiler's warnings about the file."""
    unit, object_file = folder / "fast.cpp", folder / "fast.o"
    unit.write_text(generated(signature, shown, text, passes, dtypes, True))
    options = ["-iquote", str(shown.parent), *build.facts["options"].split("|")]
    return object_file, _run(_host_words(build, object_file, unit, options), shown)


def host_name(build, name, folder, executor):
    """The object that names the library of an executor, "fast" or "checked", and makes it the one."""
    unit, object_file = folder / f"{executor}_name.cpp", folder / f"{executor}_name.o"
    checked = executor == "checked"
    unit.write_text(signatures.named(f"{name}.checked" if checked else name, checked))
    _run(_host_words(build, object_file, unit, []), unit)
    return object_file


def host_plugin(build, signature):
    """The object with the op's plug-in, which is compiled once for all files."""
    text = signatures.plugin(signature)
    sources = [*sorted((build.root / "harness/try").glob("*.h")), *sorted((build.root / "kernels").glob("*/*.h"))]
    digest = hashlib.sha256("\0".join([text, *(file.read_text() for file in sources)]).encode()).hexdigest()[:16]
    folder = build.folder / "try"
    object_file = folder / f"{signature.op}-{digest}.o"
    if not object_file.exists():
        folder.mkdir(exist_ok=True)
        unit, part = object_file.with_suffix(".cpp"), object_file.with_suffix(f".{os.getpid()}.part")
        unit.write_text(text)
        _run(_host_words(build, part, unit, ["-O1"]), unit)
        part.replace(object_file)
    return object_file


def host_libraries(build, signature, shown, text, name, folder, passes, dtypes):
    """{executor: library}, "fast" and "checked", and the warnings."""
    facts, libraries = build.facts, {}
    with concurrent.futures.ThreadPoolExecutor() as pool:
        plugin = pool.submit(host_plugin, build, signature)
        object_file, warnings = host_object(build, signature, shown, text, folder, passes, dtypes)
    for executor in ("fast", "checked"):
        libraries[executor] = folder / f"{executor}.so"
        _run([facts["compiler"], "-shared", "-Wl,--exclude-libs,ALL", "-Wl,-Bsymbolic", "-Wl,--no-undefined", "-o",
              str(libraries[executor]), str(object_file), str(host_name(build, name, folder, executor)), str(plugin.result()),
              facts["erase"], facts["gemm"], facts["executor"], "-pthread"], shown)
    return libraries, warnings


def gpu_library(build, nvcc, signature, shown, text, name, folder, passes, dtypes, arch="native"):
    """The library for the GPU of this machine and nvcc's warnings about the file."""
    unit, object_file, library = folder / "cuda.cu", folder / "cuda.o", folder / "cuda.so"
    unit.write_text(generated(signature, shown, text, passes, dtypes, False) + signatures.named(name) + signatures.plugin(signature))
    told = _run([nvcc, "-std=c++20", "-O3", f"-arch={arch}", "-lineinfo", "-DTIGON_CUDA", "-Xcompiler", "-fPIC,-fvisibility=hidden", f"-I{build.root}",
                 f"-I{shown.parent.resolve()}", "-c", str(unit), "-o", str(object_file)], shown)
    _weaken_launchers(object_file, signature)
    _run([nvcc, f"-arch={arch}", "-shared", "-Xlinker", "-Bsymbolic,--no-undefined,--exclude-libs,ALL", str(object_file),
          build.facts["erase"], "-o", str(library)], shown)
    return library, told


def _weaken_launchers(object_file, signature):
    """Launchers that the file leaves out are null, as on the host: nvcc loses the attribute for types that are used late."""
    names = [subprocess.run(["nm", "-u", *options, str(object_file)], capture_output=True, text=True, check=True).stdout.split("\n")
             for options in ([], ["-C"])]
    ours = re.compile(rf" U .*\btigon::{signature.op}::({'|'.join([*signature.passes, 'workspace', 'tune'])})<")
    weak = [f"--weaken-symbol={mangled.split()[-1]}" for mangled, plain in zip(*names) if ours.search(plain)]
    if weak:
        subprocess.run(["objcopy", *weak, str(object_file)], check=True)


def _run(words, shown):
    done = subprocess.run(words, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
                          env={**os.environ, "LC_ALL": "C"})
    told = _about(done.stderr, shown)
    if undefined := sorted(set(re.findall(r"undefined reference to `(.+)'", done.stderr))):
        raise CompileError("\n".join(["these functions are declared and not defined; all that a kernel calls must be in the one file:",
                                      *undefined[:MOST_LINES]]))
    if done.returncode != 0:
        raise CompileError(told or "\n".join(done.stderr.strip().splitlines()[:MOST_LINES]) or f"{words[0]} failed")
    return told


def _about(text, shown):
    """The messages whose line is in the file, with the lines that explain them."""
    kept, keep = [], False
    for line in text.splitlines():
        if re.match(r"^\S[^:()]*[:(]\d+", line):  # file:line: or nvcc's file(line):
            keep = line.startswith(str(shown))
        elif re.match(r"^(In file included|\s+from |\S+: (At global|In ))", line):
            keep = line.startswith(str(shown)) and "In file" not in line
        if keep:
            kept.append(line)
    return "\n".join(kept[:MOST_LINES])


def defined_launchers(library, signature, dtypes):
    """{pass: dtypes whose launcher the file defines}, from its object file."""
    object_file = pathlib.Path(library).with_suffix(".o")
    listed = subprocess.run(["nm", "-C", "--defined-only", str(object_file)], capture_output=True, text=True, check=True).stdout
    element = {"f32": "float", "bf16": "tigon::bf16", "f16": "tigon::f16"}
    found = {}
    for name in signature.passes:
        start = rf"tigon::Status tigon::{signature.op}::{name}<tigon::Policy<"
        have = [d for d in dtypes if re.search(rf"[TW] {start}{element[d]}, float> >\(", listed)]
        if have:
            found[name] = have
    return found
