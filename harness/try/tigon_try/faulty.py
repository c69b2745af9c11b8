# SPDX-License-Identifier: Apache-2.0
"""Libraries of somebody's source, as it is and with a fault: what `tigon mutants --faults FILE --in SOURCE` judges."""
import concurrent.futures
import os
import pathlib
import re
import shlex
import subprocess
import sys

from tigon_report import command
from tigon_report.errors import InfrastructureError, UsageError

from . import compiler, signature, source

ROOT = pathlib.Path(__file__).resolve().parents[3]
RIGHT = "right"  # the folder without a fault; the others are fault-NAME


def tried(build, file, dtypes, folder):
    """A file for `tigon try`."""
    text, name = (folder / file.name).read_text(), re.sub(r"[^A-Za-z0-9_.-]", "_", file.stem)
    of_op = signature.all_of(build.program)[signature.included_op(text)]
    if build.on_gpu:
        compiler.gpu_library(build, build.facts["compiler"], of_op, file, text, name, folder, list(of_op.passes), dtypes)
        return
    try:
        compiler.host_libraries(build, of_op, file, text, name, folder, list(of_op.passes), dtypes)
    except compiler.CompileError as error:
        if foreign := source.not_on_host(text):
            line, what = foreign[0]
            raise source.NotCuda(line, f"the host executor does not run {what}") from error
        raise


def plugin(build, file, _dtypes, folder):
    """A plug-in's source, as harness/plugin/README.md builds it."""
    position = ["-arch=native", "-Xcompiler", "-fPIC"] if build.on_gpu else ["-fPIC"]
    unit, library = folder / file.name, folder / ("cuda.so" if build.on_gpu else "fast.so")
    unit.write_text(f'#line 1 "{file}"\n{unit.read_text()}')
    done = subprocess.run([build.facts["compiler"], "-O2", "-shared", *position, f"-I{file.parent.resolve()}", str(unit), "-o", str(library),
                           *shlex.split(os.environ.get("CXXFLAGS", ""))], capture_output=True, text=True, check=False,
                          env={**os.environ, "LC_ALL": "C"})
    if done.returncode != 0:
        raise compiler.CompileError(done.stderr.strip())


def kind_of(build, file):
    """What makes libraries of the source."""
    try:
        text = file.read_text()
    except UnicodeDecodeError as error:
        raise UsageError(f"{file}: not a text file") from error
    if re.search(r"\btigon_find\b", source.masked(text)):
        return plugin
    if signature.included_op(text) in signature.all_of(build.program):
        return tried
    raise UsageError(f"--in {file}: neither a file for ./tigon try, which includes an op's signature, kernels/OP/OP.h, nor a plug-in, "
                     "which defines tigon_find()")


def make(kind, build, file, dtypes, folder):
    try:
        kind(build, file, dtypes, folder)
    except (compiler.CompileError, source.NotCuda) as error:
        fault = "" if folder.name == RIGHT else f" with {folder.name.removeprefix('fault-')}"
        said = f"{file}:{error.line}: {error}" if isinstance(error, source.NotCuda) else str(error)
        first = next((line for line in said.splitlines() if "error" in line), said.split("\n")[0])
        raise InfrastructureError(f"{file}{fault} cannot be built: {first}") from error


def main(argv):
    folder, file, dtypes, *folders = argv
    build, file = compiler.Build(ROOT, folder), pathlib.Path(file)
    kind, (right, *faulty) = kind_of(build, file), map(pathlib.Path, folders)
    command.say("mutants", f"building {file} as it is and with each of its faults: {len(folders)} times")
    make(kind, build, file, dtypes.split(","), right)  # first: what all have in common is built with it
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for made in [pool.submit(make, kind, build, file, dtypes.split(","), one) for one in faulty]:
            made.result()


if __name__ == "__main__":
    sys.exit(command.run("mutants", main, sys.argv[1:]))
