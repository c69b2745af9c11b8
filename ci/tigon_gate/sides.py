# SPDX-License-Identifier: Apache-2.0
"""The two programs that a gate compares: given, or built from this tree and the base."""
import pathlib

from tigon_report.errors import InfrastructureError, UsageError
from tigon_trees import build


def base_tree(options, root):
    """(source tree, commit or None, folder for its builds) of the base, or None without one."""
    if options.base_dir:
        tree = pathlib.Path(options.base_dir).resolve()
        if not (tree / "CMakeLists.txt").is_file():
            raise UsageError(f"--base-dir {tree} is no source tree of Tigon")
        return tree, None, root / "build/gate/base-dir"
    if not options.base:
        return None
    try:
        commit = build.commit_named(root, options.base)
        return build.base_tree(root, commit), commit, root / "build/gate" / commit[:12]
    except build.UnknownRef as error:
        raise UsageError(str(error)) from error
    except build.BuildError as error:
        raise InfrastructureError(str(error)) from error


def last_commit(root):
    """As base_tree, of the commit that this tree was changed from; None where there is no history."""
    if not (pathlib.Path(root) / ".git").exists():
        return None
    try:
        commit = build.commit_named(root, "HEAD")
        return build.base_tree(root, commit), commit, root / "build/gate" / commit[:12]
    except build.BuildError as error:
        raise InfrastructureError(str(error)) from error


def head_program(options, root, device, say):
    """The program of this tree for a device, host or cuda."""
    return options.head_program or _built(root, root / "build/gate/head", device, say, "this tree")


def base_program(options, base, device, say):
    """The program of the base, which is as base_tree() returns it."""
    return options.base_program or _built(base[0], base[2], device, say, f"the base, {base[1] or base[0]}")


def _built(tree, folder, device, say, what):
    say(f"building {what}")
    return build.build(tree, folder / device, device == "cuda", ["tigon"]) / "tigon"
