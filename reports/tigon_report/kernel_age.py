# SPDX-License-Identifier: Apache-2.0
"""Which kernels changed since a commit: a figure speaks of the kernel that it was measured with."""
import functools
import pathlib
import re
import subprocess

from .errors import DataError, InfrastructureError

INCLUDE = re.compile(r'^\s*#\s*include\s+"(kernels/[^/"]+)/', re.M)
SOURCES = {".h", ".cu", ".cuh", ".cpp"}
ON_THE_HOST = "kernels/simt"  # runs the kernels on a processor; no part of them
SAYS_NOTHING = r"\`[[:space:]]*(//|#include|$)"  # a line that changes no kernel; \` is the line's start
CHANGED = re.compile(r'^--- (?:/dev/null|"?a/(.+?)"?)\n\+\+\+ (?:/dev/null|"?b/(.+?)"?)$', re.M)
OF_A_GPU = ("TIGON_GPU", "defined(__CUDACC__)")  # conditions under which a GPU's compiler is at work, and no other
CONDITION = re.compile(r"\s*#\s*(ifn?def|if|else|elif|endif)\b\s*(.*?)\s*(?://.*)?$")


def gpu_lines(name, text):
    """What a GPU's compiler sees of a file: without comments and includes, the other branch of OF_A_GPU and all of a file called ..._host."""
    if pathlib.Path(name).stem.endswith("_host"):
        return []
    seen, branches = [], []  # of each condition around a line: whether a GPU's compiler sees this branch, and the other one
    for line in text.splitlines():
        if found := CONDITION.match(line):
            directive, of = found.groups()
            if directive.startswith("if"):
                branches.append((of != "!TIGON_GPU", of not in OF_A_GPU) if directive == "if" else (True, True))
            elif directive == "else":
                branches[-1] = branches[-1][::-1]
            elif directive == "endif":
                branches.pop()
        if all(here for here, _ in branches) and not re.match(r"\s*(//|#\s*include|$)", line):
            seen.append(line)
    return seen


def _is_source(name):
    return pathlib.Path(name).suffix in SOURCES and "/tests/" not in name


class Kernels:
    """The kernels of the tree in folder `root`, and its git history."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.folders = {file.stem: self._folders(file.parent) for file in sorted(self.root.glob("kernels/*/*.cu")) if file.stem == file.parent.name}

    @property
    def ops(self):
        return list(self.folders)

    def ops_of(self, commit):
        """The ops that a commit has."""
        files = set(self.git("ls-tree", "-r", "--name-only", commit, "--", "kernels").splitlines())
        return [op for op in self.ops if f"kernels/{op}/{op}.cu" in files]

    def changed_since(self, commit):
        """The ops with a source that differs from `commit`: their own, those of their family and of kernels/device.

        A file that only moved, a comment, an include and what only a host's compiler sees make no difference."""
        changed = self._changed_folders(commit)
        return {op for op, folders in self.folders.items() if folders & changed}

    def git(self, *words):
        done = self._git(*words)
        if done.returncode:
            raise InfrastructureError(f"{self.root}: git {words[0]} failed; figures are compared with the history of a git clone")
        return done.stdout

    def _folders(self, own):
        found, rest = set(), {own.relative_to(self.root).as_posix()}
        while rest:
            folder = rest.pop()
            found.add(folder)
            for file in self.root.joinpath(folder).glob("*"):
                if file.suffix in SOURCES:
                    rest |= set(INCLUDE.findall(file.read_text(encoding="utf-8"))) - found - {ON_THE_HOST}
        return found

    @functools.lru_cache  # noqa: B019 - one object in the life of a command
    def _changed_folders(self, commit):
        if self._git("cat-file", "-e", f"{commit}^{{commit}}").returncode:
            if self.git("rev-parse", "--is-shallow-repository").strip() == "true":
                raise InfrastructureError(f"commit {commit[:7]} is not in this shallow clone; git fetch --unshallow")
            raise DataError(f"commit {commit[:7]} is not in this history, so nobody can tell what was measured")
        pairs = CHANGED.findall(self.git("diff", "--unified=0", "--find-renames", "-I", SAYS_NOTHING, commit, "--", "kernels"))
        pairs = [pair for pair in pairs if any(map(_is_source, pair))]
        was = self._files_of(commit, [before for before, _ in pairs if before])
        return {"/".join(name.split("/")[:2]) for before, now in pairs if gpu_lines(before, was.get(before, "")) != self._lines_now(now)
                for name in (before, now) if _is_source(name)}

    def _files_of(self, commit, names):
        """{name: text} of files in a commit, from one process of git."""
        asked = "".join(f"{commit}:{name}\n" for name in names).encode()
        done = subprocess.run(["git", "-C", self.root, "cat-file", "--batch"], input=asked, capture_output=True, check=True)
        texts, at = {}, 0
        for name in names:
            end = done.stdout.index(b"\n", at)
            size = done.stdout[at:end].rsplit(b" ", 1)[1]
            if size == b"missing":
                raise InfrastructureError(f"{self.root}: git has no {name} of commit {commit[:7]}, with which figures are compared")
            size = int(size)
            texts[name] = done.stdout[end + 1:end + 1 + size].decode()
            at = end + size + 2
        return texts

    @functools.lru_cache(maxsize=None)  # noqa: B019 - as above
    def _lines_now(self, name):
        return gpu_lines(name, self.root.joinpath(name).read_text(encoding="utf-8") if name else "")

    def _git(self, *words):
        try:
            return subprocess.run(["git", "-C", self.root, *words], capture_output=True, text=True)
        except FileNotFoundError as error:
            raise InfrastructureError("git is missing; figures are compared with the history of a git clone") from error
