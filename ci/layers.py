#!/usr/bin/env python3
"""Fails when an include crosses the architecture's layers in a direction that is not drawn.

Reads every #include "dir/..." of the tracked C++ and CUDA sources. Usage: ci/layers.py [ROOT]
"""
import pathlib
import re
import subprocess
import sys

# A layer may include itself and the layers listed. kernels/family is what the ops of a family share, kernels/op any op's
# folder. Tests may include anything below what they test, so tests/ folders are exempt.
ALLOWED = {
    "kernels/signature": set(),
    "kernels/device": {"kernels/signature", "kernels/simt"},  # device's host side is implemented by simt
    "kernels/simt": {"kernels/signature", "kernels/device"},
    "kernels/family": {"kernels/signature", "kernels/device"},
    "kernels/op": {"kernels/signature", "kernels/device", "kernels/family"},
    "reference": {"kernels/signature", "kernels/family", "kernels/op"},
    "reference/naive": {"kernels/signature", "kernels/family", "kernels/op", "kernels/device"},
    "reference/cudnn": {"kernels/signature", "kernels/op", "kernels/device", "reference/naive"},
    "harness/spec": {"kernels/signature"},
    "harness/worker": set(),
    "harness/run": {"kernels/signature", "kernels/device", "kernels/simt", "harness/spec", "harness/judge",
                    "harness/worker"},
    "harness/judge": {"kernels/signature", "kernels/device", "harness/spec"},
    "harness/measure": {"kernels/signature", "kernels/device", "kernels/simt", "harness/spec", "harness/run",
                        "harness/judge", "harness/record", "harness/worker"},
    "harness/record": {"kernels/signature", "kernels/device", "kernels/simt", "harness/spec", "harness/judge",
                       "harness/run"},
    "harness/plugin": {"kernels/signature", "kernels/device", "harness/spec", "harness/run", "harness/judge",
                       "harness/measure", "harness/record", "harness/worker"},
    "harness/peers": {"kernels/signature", "kernels/device", "harness/spec", "harness/run", "harness/judge",
                      "harness/measure", "harness/record", "harness/worker"},
    "harness/try": {"kernels/signature", "kernels/device", "kernels/simt", "kernels/op", "harness/plugin"},
    "harness/mutants": {"kernels/signature", "kernels/device", "harness/spec", "harness/run", "harness/judge"},
    "harness/ops": {"kernels/signature", "kernels/op", "reference", "reference/naive", "reference/cudnn",
                    "harness/spec"},
    "harness/cli": {"kernels/signature", "kernels/device", "kernels/simt", "harness/spec", "harness/run",
                    "harness/judge", "harness/measure", "harness/record", "harness/plugin", "harness/peers",
                    "harness/mutants", "convergence"},
    "convergence": {"kernels/signature", "kernels/device", "kernels/simt", "kernels/family", "kernels/op",
                    "reference", "reference/naive", "harness/record", "harness/mutants"},
}
FAMILIES = {"norm", "gated", "loss", "linear_head"}
SOURCES = {".h", ".cpp", ".cc", ".cu", ".cuh"}
INCLUDE = re.compile(r'^\s*#\s*include\s+"((?:kernels|reference|harness|convergence)/[^"]+)"', re.M)


def layer(path):
    """The layer a path from the root belongs to, e.g. kernels/rms_norm/rms_norm.h -> kernels/op."""
    parts = pathlib.PurePosixPath(path).parts
    if parts[0] == "kernels":
        if parts[1] in FAMILIES:
            return "kernels/family"
        return "kernels/" + (parts[1] if parts[1] in ("signature", "device", "simt") else "op")
    if parts[0] == "reference":
        return "/".join(parts[:2]) if parts[1] in ("naive", "cudnn") else "reference"
    return "/".join(parts[:2]) if parts[0] == "harness" else parts[0]


def violations(root):
    """Yields 'file: includes X: layer A may not include layer B' for every arrow that is not drawn."""
    files = subprocess.run(["git", "-C", root, "ls-files"], capture_output=True, text=True, check=True).stdout
    for name in files.splitlines():
        path = pathlib.PurePosixPath(name)
        if path.suffix not in SOURCES or "tests" in path.parts or layer(name) not in ALLOWED:
            continue
        own = layer(name)
        for target in INCLUDE.findall((pathlib.Path(root) / name).read_text()):
            if layer(target) != own and layer(target) not in ALLOWED[own]:
                yield f"{name}: includes {target}: {own} may not include {layer(target)}"


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else str(pathlib.Path(__file__).resolve().parent.parent)
    found = list(violations(root))
    print("\n".join(found) if found else "layers: every include follows the architecture")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
