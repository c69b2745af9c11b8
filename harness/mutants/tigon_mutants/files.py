# SPDX-License-Identifier: Apache-2.0
"""Which sources an op is made of."""
import pathlib
import re
import subprocess

# What mutating would only show of the compiler, of the launch or of the executor.
LEFT_OUT = re.compile(r"kernels/(signature|call|simt)/|kernels/device/(platform|runtime|nvtx|memory_ledger|owned_stream)\.h|_(host|cuda)\.h$")
LAUNCHER = re.compile(r"^(?:TIGON_INSTANTIATE\(|TIGON_INSTANTIATE_FOR\(\w+, |template Status |Status )(\w+)", re.M)
INCLUDE = re.compile(r'^\s*#\s*include\s+"(kernels/[^"]+)"', re.M)


def ops(root):
    """Their names: folders with a source and a header of the same name."""
    sources = root.glob("kernels/*/*.cu")
    return sorted(path.stem for path in sources if path.stem == path.parent.name and path.with_suffix(".h").exists())


def calls(root, text, source):
    """Whether the text calls a launcher of that source, in its namespace where the source is an op's; true where it names no launcher."""
    path = pathlib.PurePath(source)
    scope = f"{path.stem}::" if path.stem == path.parent.name else ""
    launchers = set(LAUNCHER.findall((root / source).read_text()))
    return not launchers or any(re.search(rf"\b{scope}{name}\b\s*[<(]", text) for name in launchers)


def sources_of(root, op):
    """Paths of what is compiled for the op: its source, all that it includes, and of the sources beside those headers the ones of which it
    calls a launcher."""
    found, left = set(), [f"kernels/{op}/{op}.cu"]
    while left:
        while left:
            path = left.pop()
            if path in found or LEFT_OUT.search(path) or not (root / path).exists():
                continue
            found.add(path)
            left += INCLUDE.findall((root / path).read_text())
        for header in found:
            source = re.sub(r"\.h$", ".cu", header)
            if source not in found and (root / source).exists():
                text = "".join((root / path).read_text() for path in found if path != header)
                left += [source] if calls(root, text, source) else []
    return sorted(path for path in found if not path.startswith("kernels/device/") or is_device_code((root / path).read_text()))


def compiled_lines(build, paths):
    """{(file name, line)} that the host's objects of these sources have code of; nothing where there are no such objects."""
    found = set()
    for path in paths:
        for unit in build.glob(f"kernels/CMakeFiles/*_fast.dir/__/host_sources/{path}.cpp.o"):
            listing = subprocess.run(["objdump", "--dwarf=decodedline", unit], capture_output=True, text=True, check=True).stdout
            found.update((name, int(line)) for name, line in re.findall(r"^(\S+\.\w+)\s+(\d+)\s+0x", listing, re.M))
    return found


def mutated_code(build, paths):
    """The objects of these sources with faults in them, and of the registry, which takes options' defaults, one behind the other."""
    folder = build / "harness/mutants/CMakeFiles/tigon_kernels_own_objects.dir"
    objects = [unit for path in [*paths, "kernels/call/registry.cpp"] for unit in folder.glob(f"**/{path}.*.o")]
    return b"".join(unit.read_bytes() for unit in objects)


def is_device_code(text):
    return re.search(r"\bTIGON_(DEVICE|KERNEL)\b", text) is not None
