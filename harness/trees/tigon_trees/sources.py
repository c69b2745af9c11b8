# SPDX-License-Identifier: Apache-2.0
"""Translation units of the kernels: their flags, the files they read, and why two of them differ."""
import dataclasses
import hashlib
import json
import pathlib
import re
import shlex

_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


@dataclasses.dataclass(frozen=True)
class Unit:
    """A .cu file of the product with the flags that the build compiles it with, without paths and architectures."""

    root: pathlib.Path
    file: str  # relative to the root
    flags: tuple
    includes: tuple  # -I folders outside the tree

    @property
    def op(self):
        return pathlib.PurePosixPath(self.file).parts[1]


def units(root, build):
    """The kernels' translation units in a configured build, sorted; those of tests are left out."""
    root = pathlib.Path(root).resolve()
    found = []
    for command in json.loads((pathlib.Path(build) / "compile_commands.json").read_text()):
        file = pathlib.Path(command["file"])
        if file.suffix != ".cu" or not file.is_relative_to(root / "kernels"):
            continue
        relative = file.relative_to(root).as_posix()
        if "/tests/" not in relative:
            found.append(_unit(root, relative, shlex.split(command["command"])[1:]))
    return sorted({unit.file: unit for unit in found}.values(), key=lambda unit: unit.file)


def _unit(root, relative, words):
    flags, includes, k = [], [], 0
    while k < len(words):
        word = words[k]
        if word in ("-gencode", "-o", "-x", "-MF", "-MT"):
            k += 1
        elif word == "-isystem" or word == "-I":
            includes.append(words[k + 1])
            k += 1
        elif word.startswith("-I"):
            includes.append(word[2:])
        elif word not in ("-c", "-MD") and not word.startswith(("--generate-code", "-arch")) and word != str(root / relative):
            flags.append(word)
        k += 1
    return Unit(root, relative, tuple(flags), tuple(sorted(i for i in includes if not _inside(i, root))))


def _inside(path, root):
    return pathlib.Path(path).resolve() == root


def architectures(build):
    """Architectures that the build makes machine code for: sm_80, sm_90a, ..."""
    text = (pathlib.Path(build) / "compile_commands.json").read_text()
    return sorted(set(re.findall(r"code=(sm_[0-9a-z]+)", text)))


def closure(unit):
    """{file: hash of its text} of a unit and of all the tree's files that it includes, however deep."""
    found, todo = {}, [unit.file]
    while todo:
        file = todo.pop()
        path = unit.root / file
        if file in found or not path.is_file():
            continue
        text = path.read_bytes()
        found[file] = hashlib.sha256(text).hexdigest()
        for name in _INCLUDE.findall(text.decode(errors="replace")):
            todo += [name, (pathlib.PurePosixPath(file).parent / name).as_posix()]
    return found


def key(unit, files, arch, compiler):
    """Equal for two units whose machine code is equal because all that goes into it is."""
    parts = [compiler, arch, *unit.flags, *unit.includes, *(f"{name} {value}" for name, value in sorted(files.items()))]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


def cause(base, head, base_files, head_files):
    """Why the code of a unit differs from the base's: source, callee, flags."""
    changed = sorted(name for name in base_files.keys() | head_files.keys() if base_files.get(name) != head_files.get(name))
    folder = f"kernels/{head.op}/"
    own = [name for name in changed if name.startswith(folder) and head.op != "device" or name == head.file]
    callees = [name for name in changed if name not in own]
    told = []
    if own:
        told.append("source changed: " + ", ".join(own))
    if callees:
        told.append("callee changed: " + ", ".join(callees))
    if base.flags != head.flags or base.includes != head.includes:
        gone = [f for f in (*base.flags, *base.includes) if f not in (*head.flags, *head.includes)]
        new = [f for f in (*head.flags, *head.includes) if f not in (*base.flags, *base.includes)]
        told.append(f"compiler flags: {' '.join(gone) or '(nothing)'} became {' '.join(new) or '(nothing)'}")
    return "; ".join(told) or "nothing that this tree holds changed"
