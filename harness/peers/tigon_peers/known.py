# SPDX-License-Identifier: Apache-2.0
"""Which peers there are: a file NAME_peer.py in harness/peers, or in a folder of TIGON_PEERS, each.

Such a file has functions of the ops' names. Each takes tensors and options of its op's forward signature by the names of
its parameters. It returns the outputs in the order of that signature, differentiable unless a function OP_PASS beside it
says what the pass is; that one takes the upstream gradient too and returns {output: value}. Attributes of a function:
  prepare              makes the words of a call from those of the signature, before anything is timed
  gradient_in_forward  the gradient is made in forward, so that only forward_backward compares
  waits                the host waits for the GPU in the middle, so that no graph captures it
PACKAGE names what the file imports. PREPARES: what a first call compiles or loads is kept, so that `tigon run` has the first calls made
during other stages.
"""
import ast
import importlib.util
import os
import pathlib

FOLDER = pathlib.Path(__file__).resolve().parents[1]
SUFFIX = "_peer.py"


def folders():
    return [FOLDER, *map(pathlib.Path, filter(None, os.environ.get("TIGON_PEERS", "").split(":")))]


def files():
    """{name of a peer: its file}, by name."""
    found = {file.name.removesuffix(SUFFIX): file for folder in folders() for file in sorted(folder.glob(f"*{SUFFIX}"))}
    return dict(sorted(found.items()))


def package_of(file):
    """What the file says in PACKAGE, or the name of a package in a statement `from FILE import PACKAGE, ...`."""
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.Assign) and any(getattr(target, "id", None) == "PACKAGE" for target in node.targets):
            return ast.literal_eval(node.value)
        if isinstance(node, ast.ImportFrom) and any(alias.name == "PACKAGE" for alias in node.names):
            return package_of(file.with_name(f"{node.module}.py"))
    return None


def is_installed(name):
    """Whether this interpreter finds what the peer imports. It imports nothing, so a broken package is installed, too."""
    package = package_of(files()[name])
    return package is None or importlib.util.find_spec(package) is not None
