#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when a file of the tree cites a page that is not in the tree. Usage: ci/pages.py [ROOT]

A page is a .md file whose name is in capitals (README.md, reference/OPS.md); it is cited by its path from the root, by
its path from the file that cites it, or by its name where it lies in a folder above that file.
"""
import pathlib
import re
import subprocess
import sys

PAGE = re.compile(r"(?<![\w/.$}*])((?:[\w.-]+/)*[A-Z][A-Z_]*\.md)\b")
RECORDED = "reports/recorded"  # what other trees and runs wrote


def missing(root):
    """'file:line: cites X, which is not in the tree' for every such line."""
    root = pathlib.Path(root)
    listed = subprocess.run(["git", "-C", str(root), "ls-files"], capture_output=True, text=True, check=True).stdout
    found = []
    for name in listed.splitlines():
        if name.startswith(RECORDED) or not (root / name).is_file():
            continue
        try:
            lines = (root / name).read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:  # no text
            continue
        folders = [root / parent for parent in pathlib.PurePosixPath(name).parents]
        for number, line in enumerate(lines, 1):
            found += [f"{name}:{number}: cites {page}, which is not in the tree" for page in PAGE.findall(line)
                      if not any((folder / page).is_file() for folder in folders)]
    return found


def main():
    found = missing(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent)
    print("\n".join(found) if found else "pages: every page that is cited is in the tree")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
