# SPDX-License-Identifier: Apache-2.0
"""Prints torch's include folder, of the Python that runs this; nothing where it has no torch. Imports no torch."""
import pathlib
import site
import sys
import sysconfig


def folders():
    """Where packages may lie: sys.path, and the environment's own folders, which pip hides from an isolated build."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    prefixes = (sys.prefix, sys.base_prefix)
    own = [f"{prefix}/lib/{version}/{packages}" for prefix in prefixes for packages in ("site-packages", "dist-packages")]
    return [*sys.path, sysconfig.get_path("platlib"), *own, *site.getsitepackages(), site.getusersitepackages()]


def find():
    for folder in folders():
        include = pathlib.Path(folder) / "torch" / "include"
        if folder and (include / "torch" / "csrc" / "stable").is_dir():
            return include
    return None


if __name__ == "__main__":
    print(find() or "")
