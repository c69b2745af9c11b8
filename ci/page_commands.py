#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when a page shows a command of tigon, or an option of one, that --help does not know.

Usage: ci/page_commands.py BUILD, the folder of a build, whose program answers --help. An option of a line's comment counts.
"""
import functools
import os
import pathlib
import re
import subprocess
import sys

from pages import RECORDED

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMMAND = re.compile(r"\./tigon (?:--device \w+ )?([a-z][a-z-]*)([^`\n]*)")
OPTION = re.compile(r"(?<![\w-])--?[a-z][a-z-]*")
OF_ALL = {"--device", "--help"}
# Of the launcher's own commands, those that a program of the build answers.
BUILT = re.compile(r"^  \[([a-z-]+)\]='built (\w+): ", re.MULTILINE)


def shown():
    """(page:line, command, its options) of every command that a page shows."""
    names = subprocess.run(["git", "-C", ROOT, "ls-files", "*.md"], capture_output=True, text=True, check=True).stdout.splitlines()
    for name in names:
        if not name.startswith(RECORDED):
            for number, line in enumerate((ROOT / name).read_text(encoding="utf-8").splitlines(), 1):
                for command, rest in COMMAND.findall(line):
                    yield f"{name}:{number}", command, OPTION.findall(rest)


@functools.cache
def help_of(command, build):
    """What --help prints; nothing for a command that there is not."""
    programs = (ROOT / "harness/cli/commands.inc").read_text(encoding="utf-8")
    built = dict(BUILT.findall((ROOT / "tigon").read_text(encoding="utf-8")))
    python = os.environ.get("TIGON_PYTHON") or sys.executable
    if f"TIGON_COMMAND({command}, " in programs:
        words = [build / "bin/tigon", command]
    elif command in built:
        words = [build / "bin" / built[command]]
    else:
        words = [ROOT / "tigon", command]
    done = subprocess.run([*words, "--help"], capture_output=True, text=True, env={**os.environ, "TIGON_PYTHON": python})
    return done.stdout if done.returncode == 0 else ""


def wrong(build, commands):
    """One line for each command or option that does not exist."""
    found = []
    for where, command, options in commands:
        text = help_of(command, build)
        if not text:
            found.append(f"{where}: ./tigon {command}: no such command")
            continue
        known = set(OPTION.findall(text)) | OF_ALL
        found += [f"{where}: ./tigon {command} has no {option}" for option in options if option not in known]
    return found


def main():
    found = wrong(pathlib.Path(sys.argv[1]), shown())
    print("\n".join(found) if found else "page_commands: every command that a page shows exists, with its options")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
