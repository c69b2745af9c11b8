# SPDX-License-Identifier: Apache-2.0
"""Builds the kernels with a list of faults, without those that do not compile."""
import os
import re
import subprocess
import sys

PLACE = re.compile(r"(kernels/[\w/]+\.\w+)[:(](\d+)[^\n]*")


def places(output, only_errors):
    """{(file, line)} that the compiler names."""
    return {(match[1], int(match[2])) for match in PLACE.finditer(output) if not only_errors or "error" in match[0]}


def build(folder, target):
    """(whether it is built, the compiler's output)."""
    jobs = os.environ.get("TIGON_JOBS") or str(os.cpu_count() or 1)
    done = subprocess.run(["cmake", "--build", folder, "--target", target, "-j", jobs, "--", "-k", "0"], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False, env={**os.environ, "LC_ALL": "C"})
    return done.returncode == 0, done.stdout


def compiled(faults, write, folder, target):
    """The faults with which the kernels compile. write(faults) puts them where the build finds them."""
    while True:
        write(faults)
        print(f"tigon: building kernels with {len(faults)} mutants", file=sys.stderr, flush=True)
        built, output = build(folder, target)
        if built:
            return faults
        for only_errors in (True, False):
            named = places(output, only_errors)
            left = [f for f in faults if not any((f.file, line) in named for line in range(f.first_line, f.last_line + 1))]
            if len(left) < len(faults):
                break
        else:
            raise RuntimeError(next((line for line in output.splitlines() if "error" in line), "the build failed"))
        faults = left
