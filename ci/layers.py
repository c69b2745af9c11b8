#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when an include or a Python import crosses the architecture's layers in a direction that is not drawn.

An arrow that is drawn and that no file uses fails, too. Usage: ci/layers.py [ROOT]
"""
import pathlib
import re
import subprocess
import sys

# A layer may include itself and the layers listed. kernels/<op> is any op's folder. Tests may include anything below
# what they test, so tests/ folders are exempt.
ALLOWED = {
    "kernels/signature": set(),
    "kernels/device": {"kernels/signature", "kernels/simt"},  # device's host side is implemented by simt
    "kernels/simt": {"kernels/signature"},
    "kernels/collective": {"kernels/signature", "kernels/device"},
    "kernels/family": {"kernels/signature", "kernels/device"},
    "kernels/op": {"kernels/signature", "kernels/device", "kernels/collective", "kernels/family"},
    "kernels/call": {"kernels/signature", "kernels/device", "kernels/op"},
    "kernels/python": {"kernels/call"},
    "reference": {"kernels/signature", "kernels/family", "kernels/op"},
    "reference/naive": {"kernels/call", "kernels/signature", "kernels/family", "kernels/op", "kernels/device"},
    "reference/cudnn": {"kernels/call", "kernels/signature", "kernels/op", "kernels/device", "reference/naive"},
    "harness/json": set(),
    "harness/spec": {"kernels/call", "kernels/signature"},
    "harness/worker": {"kernels/call", "harness/json"},
    "harness/run": {"kernels/signature", "kernels/device", "kernels/simt", "harness/json", "harness/spec",
                    "harness/judge", "harness/worker"},
    "harness/judge": {"kernels/signature"},
    "harness/measure": {"kernels/signature", "kernels/device", "harness/json", "harness/run",
                        "harness/judge", "harness/record", "harness/worker"},
    "harness/record": {"harness/json"},
    "harness/plugin": {"kernels/device", "kernels/call", "harness/json", "harness/spec", "harness/run", "harness/judge",
                       "harness/measure", "harness/worker"},
    "harness/peers": {"harness/spec", "harness/run", "harness/measure", "harness/record", "harness/worker"},
    "harness/try": {"kernels/device", "kernels/simt", "kernels/call", "harness/trees",
                    "harness/peers", "harness/worker", "reports"},
    "harness/mutants": {"kernels/signature", "kernels/device", "harness/json", "harness/run", "harness/judge"},
    "harness/ops": {"kernels/call", "kernels/signature", "kernels/device", "reference", "reference/naive", "reference/cudnn", "harness/spec"},
    "harness/cli": {"kernels/device", "harness/json", "harness/spec", "harness/run", "harness/judge",
                    "harness/measure", "harness/record", "harness/plugin", "harness/peers", "harness/mutants",
                    "convergence", "harness/worker"},
    "convergence": {"kernels/call", "kernels/signature", "kernels/device", "kernels/family", "kernels/op", "reference/naive",
                    "harness/json", "harness/mutants"},
    "harness/trees": set(),
    "harness/lines": set(),
    "harness/scaffold": set(),
    "harness/training": {"kernels/python", "harness/trees", "reports"},
    "reports": set(),
    "ci": {"reports", "harness/trees"},
}
FAMILIES = {"norm", "gated", "loss", "linear_head"}
# What is somebody else's or only shown: not part of the tree's own architecture.
EXEMPT = {"tests", "examples", "recorded", "goldens", "templates"}
SOURCES = {".h", ".cpp", ".cc", ".cu", ".cuh", ".inc"}
ALL_OPS = "@TIGON_OP_INCLUDES@"  # where CMake writes an include of every op
INCLUDE = re.compile(r'^\s*#\s*include\s+"((?:kernels|reference|harness|convergence)/[^"]+)"', re.M)
IMPORT = re.compile(r"^\s*(?:from\s+(\w+)|import\s+(\w.*))", re.M)


def layer(path):
    """The layer a path from the root belongs to, e.g. kernels/rms_norm/rms_norm.h -> kernels/op."""
    parts = pathlib.PurePosixPath(path).parts
    if parts[0] == "kernels":
        if parts[1] in FAMILIES:
            return "kernels/family"
        return "kernels/" + (parts[1] if parts[1] in ("signature", "call", "collective", "device", "simt", "python") else "op")
    if parts[0] == "reference":
        return "/".join(parts[:2]) if parts[1] in ("naive", "cudnn") else "reference"
    return "/".join(parts[:2]) if parts[0] == "harness" else parts[0]


def tracked(root):
    files = subprocess.run(["git", "-C", root, "ls-files"], capture_output=True, text=True, check=True).stdout
    return [pathlib.PurePosixPath(name) for name in files.splitlines()]


def modules(files):
    """{name: a file of it} of what the tree's Python can import: packages, and files that are in none."""
    files = list(files)
    folders = {path.parent for path in files if path.name == "__init__.py"}
    alone = {path.stem: path for path in files if path.suffix == ".py" and path.parent not in folders}
    return {**alone, **{folder.name: folder / "__init__.py" for folder in folders}}


def kind(path):
    """The suffix of a file, or of what CMake makes of it."""
    return pathlib.PurePosixPath(path.stem).suffix if path.suffix == ".in" else path.suffix


def imported(text):
    """The first words of all modules that Python text imports."""
    for one, many in IMPORT.findall(text):
        yield from [one] if one else re.findall(r"(?:^|,)\s*(\w+)", many)


def included(text):
    """(what a source names, a file of it) of each include of the tree's own."""
    return [(name, name) for name in INCLUDE.findall(text)] + [(ALL_OPS, "kernels/<op>")] * (ALL_OPS in text)


def uses(root):
    """Yields (file, what it names, its layer, the layer of that) for every include and import of another layer."""
    files = tracked(root)
    of_module = modules(path for path in files if not EXEMPT & set(path.parts))
    for path in files:
        if EXEMPT & set(path.parts) or layer(path) not in ALLOWED or kind(path) not in SOURCES | {".py"}:
            continue
        text = (pathlib.Path(root) / path).read_text()
        if path.suffix == ".py":
            named = [(name, of_module[name]) for name in imported(text) if name in of_module]
        else:
            named = included(text)
        for name, target in named:
            if layer(target) != layer(path):
                yield path, name, layer(path), layer(target)


def violations(root, allowed=None):
    """One line for every arrow that is used and not drawn, and for every one that is drawn and not used."""
    allowed = ALLOWED if allowed is None else allowed
    found, used = [], set()
    for path, name, own, other in uses(root):
        used.add((own, other))
        if other not in allowed[own]:
            verb = "imports" if path.suffix == ".py" else "includes"
            found.append(f"{path}: {verb} {name}: {own} may not include {other}")
    drawn = {(own, other) for own, others in allowed.items() for other in others}
    found += [f"ci/layers.py: {own} -> {other}: nothing uses this arrow; take it out" for own, other in sorted(drawn - used)]
    return found


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else str(pathlib.Path(__file__).resolve().parent.parent)
    found = violations(root)
    print("\n".join(found) if found else "layers: every include and import follows the architecture, and every arrow is used")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
