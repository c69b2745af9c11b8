# SPDX-License-Identifier: Apache-2.0
"""Makes two programs multiply by the same algorithms of cuBLASLt.

prepare() of a matrix product times the library's algorithms and takes the fastest, which another process may find to be
another one. No switch turns that off in every commit, so a library of cuBLASLt's name stands before it in both programs
and answers with one algorithm where they ask for many.
"""
import os
import pathlib
import shutil
import subprocess

from tigon_report.errors import InfrastructureError
from tigon_trees import build

SOURCE = pathlib.Path(__file__).with_name("first_algorithm.c")


def library():
    """cuBLASLt where the toolkit's nvcc is, or None."""
    nvcc = build.find_nvcc()
    found = sorted(pathlib.Path(nvcc).resolve().parents[1].glob("lib64/libcublasLt.so.*")) if nvcc else []
    # The name that programs ask for ends with the major version alone.
    return next((file for file in found if file.suffixes[-2:-1] == [".so"]), None)


def environment(folder, say):
    """Variables for the programs; the library that they name is built in `folder`."""
    real = library()
    if real is None:
        say("cuBLASLt is not where nvcc is: matrix products may take other algorithms in each process")
        return {}
    return {"LD_PRELOAD": str(built(real, folder))}


def built(real, folder):
    """The library that stands before `real`."""
    folder = pathlib.Path(folder)
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise InfrastructureError("no C compiler (cc) is found")
    stand_in, path = folder / real.name, folder / "path.so"
    # A library that needs another one is linked with its file and looks for it by its soname. This one's is the path of
    # `real`: by its own soname the loader would find the library that asks.
    _run([compiler, "-shared", "-x", "c", os.devnull, f"-Wl,-soname,{real}", "-o", str(path)])
    _run([compiler, "-shared", "-fPIC", "-O1", str(SOURCE), "-Wl,--no-as-needed", str(path), "-ldl",
          f"-Wl,-soname,{real.name}", "-o", str(stand_in)])
    return stand_in


def _run(words):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise InfrastructureError(f"{SOURCE.name}: {(done.stderr.strip().splitlines() or ['failed'])[0]}")
