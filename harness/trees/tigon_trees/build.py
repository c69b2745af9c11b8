# SPDX-License-Identifier: Apache-2.0
"""Source trees of commits and their builds, each in its own folder below build/gate."""
import os
import pathlib
import shutil
import subprocess

CUDA_BIN = pathlib.Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "bin"


class BuildError(Exception):
    """A tree that cannot be had or built: one line."""


class UnknownRef(Exception):
    """--base names no commit."""


def find_nvcc():
    """Path of nvcc, or None."""
    found = shutil.which("nvcc") or (CUDA_BIN / "nvcc" if os.access(CUDA_BIN / "nvcc", os.X_OK) else None)
    return str(found) if found else None


def have_gpu():
    if not shutil.which("nvidia-smi"):
        return False
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False)
    return listed.returncode == 0 and listed.stdout.startswith("GPU")


def _git(root, *words):
    done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BuildError(f"git {' '.join(words[:2])}: {(done.stderr.strip().splitlines() or ['failed'])[-1]}")
    return done.stdout.strip()


def commit_of(root):
    """(commit, dirty) of a work tree; what TIGON_COMMIT says comes first."""
    if told := os.environ.get("TIGON_COMMIT"):
        return told, False
    try:
        return _git(root, "rev-parse", "HEAD"), bool(_git(root, "status", "--porcelain", "-uno"))
    except (OSError, BuildError):
        return None, False


def commit_named(root, ref):
    """The commit that a name stands for."""
    if not (pathlib.Path(root) / ".git").exists():
        raise BuildError(f"{root} has no .git, so --base cannot name a commit; give --base-dir or --base-program")
    try:
        return _git(root, "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
    except BuildError as error:
        raise UnknownRef(f"--base {ref}: no such commit") from error


def differing(root, commit, folder):
    """Files of a folder of the work tree that differ from the commit's."""
    return _git(root, "diff", "--name-only", commit, "--", folder).splitlines()


def trailers(root, base, key):
    """[(commit, values)] of the commits from `base` to HEAD whose message has trailers `key`."""
    listed = _git(root, "log", f"--format=%h%x1f%(trailers:key={key},valueonly,unfold,separator=%x1f)", f"{base}..HEAD")
    lines = (line.split("\x1f") for line in listed.splitlines())
    return [(commit, [value for value in values if value]) for commit, *values in lines]


def base_tree(root, commit):
    """A work tree of `commit` in build/gate/<commit>/source, made when it is not there."""
    tree = pathlib.Path(root) / "build" / "gate" / commit[:12] / "source"
    if (tree / "CMakeLists.txt").is_file() and _git(tree, "rev-parse", "HEAD") == commit:
        return tree
    if tree.exists():
        shutil.rmtree(tree)
    _git(root, "worktree", "prune")
    tree.parent.mkdir(parents=True, exist_ok=True)
    _git(root, "worktree", "add", "--detach", str(tree), commit)
    return tree


def configure(tree, folder, cuda):
    """Configures `folder` for a tree, without tests. Idempotent."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    words = ["cmake", "-S", str(tree), "-B", str(folder), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DTIGON_TESTS=OFF",
             f"-DTIGON_CUDA={'ON' if cuda else 'OFF'}"]
    nvcc = find_nvcc()
    if cuda and nvcc is None:
        raise BuildError("nvcc is missing; it comes with the CUDA Toolkit 13")
    if cuda:
        words.append(f"-DCMAKE_CUDA_COMPILER={nvcc}")
    _logged(words, folder / "configure.log", f"configuring {tree}")
    return folder


def build(tree, folder, cuda, targets):
    """Configures and builds targets; returns the folder of the programs."""
    folder = configure(tree, folder, cuda)
    jobs = os.environ.get("TIGON_JOBS") or str(len(os.sched_getaffinity(0)))
    _logged(["cmake", "--build", str(folder), "-j", jobs, "--target", *targets], folder / "build.log", f"building {tree}")
    return folder / "bin"


def _logged(words, log, what):
    with open(log, "w", encoding="utf-8") as file:
        code = subprocess.run(words, stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, check=False).returncode
    if code != 0:
        lines = [line.strip() for line in log.read_text(errors="replace").splitlines()]
        at = next((k for k, line in enumerate(lines) if "error" in line.lower() or "undefined reference" in line),
                  max(0, len(lines) - 1))
        told = " ".join(line for line in lines[at:at + 4] if line)  # CMake says what is wrong below the word
        raise BuildError(f"{what} failed: {told[:300] or 'no output'}; see {log}")
