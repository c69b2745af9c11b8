# SPDX-License-Identifier: Apache-2.0
"""Facts of every kernel of a translation unit, from nvcc alone: ptxas' report, the PTX and the cubin's sections."""
import collections
import hashlib
import json
import pathlib
import re
import shutil
import struct
import subprocess
import tempfile

SCALAR = re.compile(r"[a-z](\d+)")  # the type at the end of a PTX instruction: u32, f32, b8
VECTOR = re.compile(r"v[248]")
ACCESS = re.compile(r"^\s*(?:@!?%p\d+\s+)?(ld|st)\.([a-zA-Z0-9_:.]+)\s+(.*)$")
# An asynchronous copy from global to shared memory: cp.async of 4, 8 or 16 bytes, or a bulk copy of 16-byte pieces.
COPY = re.compile(r"^\s*(?:@!?%p\d+\s+)?cp\.async\.(?:(bulk)\.shared\S*global|c[ag]\.shared\.global)\S*\s+\[\S+\s\[\S+\s(\d+)?")
ADDRESS = re.compile(r"\[(%rd\d+)(?:\+(-?\d+))?\]")


class CompileError(Exception):
    """nvcc refuses a unit; its first error."""


def compiler_version(nvcc):
    return subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True).stdout.strip().splitlines()[-1]


def of_unit(unit, arch, nvcc):
    """{kernel name: facts} of one unit on one architecture."""
    with tempfile.TemporaryDirectory() as folder:
        cubin = pathlib.Path(folder) / "kernels.cubin"
        words = [nvcc, *unit.flags, f"-I{unit.root}", *(f"-I{i}" for i in unit.includes), "-x", "cu", "-cubin", f"-arch={arch}",
                 "-Xptxas", "-v", "--keep", "--keep-dir", folder, "-o", str(cubin), str(unit.root / unit.file)]
        done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=folder)
        if done.returncode != 0:
            errors = [line for line in done.stderr.splitlines() if "error" in line] or done.stderr.splitlines() or ["failed"]
            raise CompileError(f"{unit.file} for {arch}: {errors[0]}")
        ptx = next(pathlib.Path(folder).glob("*.ptx")).read_text()
        facts = resources(done.stderr)
        for name, section in sections(cubin.read_bytes()).items():
            facts.setdefault(name, {}).update(section)
        for name, body in bodies(ptx):
            facts.setdefault(name, {}).update(accesses(body))
    names = sorted(name for name in facts if "code_bytes" in facts[name])
    return dict(zip(readable(names), (facts[name] for name in names)))


def readable(mangled):
    """Names as people write them: without namespaces that every kernel has, and without parameters."""
    if not mangled:
        return []
    if not shutil.which("c++filt"):
        return [re.sub(r"_GLOBAL__N__[0-9a-f]+_", "", name) for name in mangled]
    text = subprocess.run(["c++filt"], input="\n".join(mangled), capture_output=True, text=True, check=True).stdout
    return [short_name(name) for name in text.rstrip("\n").split("\n")]


def short_name(name):
    name = re.sub(r"\(anonymous namespace\)::|\btigon::|^void ", "", name)
    depth = 0
    for k, letter in enumerate(name):
        depth += (letter == "<") - (letter == ">")
        if letter == "(" and depth == 0:
            return name[:k]
    return name


def resources(text):
    """What ptxas -v tells of every entry function, with the functions that it calls."""
    facts, entry = {}, None
    for line in text.splitlines():
        if found := re.search(r"Compiling entry function '(\w+)'", line):
            entry = found[1]
            facts[entry] = {"registers": 0, "stack_bytes": 0, "spill_bytes": 0, "shared_bytes": 0, "barriers": 0}
        elif entry and (found := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line)):
            facts[entry]["stack_bytes"] += int(found[1])
            facts[entry]["spill_bytes"] += int(found[2]) + int(found[3])
        elif entry and "Used " in line:
            for key, pattern in (("registers", r"(\d+) registers"), ("barriers", r"used (\d+) barriers"),
                                 ("shared_bytes", r"(\d+) bytes smem")):
                if found := re.search(pattern, line):
                    facts[entry][key] = int(found[1])
            entry = None
    return facts


def sections(data):
    """Size and hash of the machine code of every kernel of an ELF file: its .text.<name> sections."""
    start, = struct.unpack_from("<Q", data, 40)
    size, count, names = struct.unpack_from("<HHH", data, 58)
    headers = [struct.unpack_from("<IIQQQQ", data, start + size * i) for i in range(count)]
    strings = headers[names][4]
    found = {}
    for name_at, _, _, _, at, length in headers:
        name = data[strings + name_at:data.index(b"\0", strings + name_at)].decode()
        if name.startswith(".text."):
            found[name[6:]] = {"code_bytes": length, "code_hash": hashlib.sha256(data[at:at + length]).hexdigest()[:16]}
    return found


def bodies(ptx):
    """(name, text) of every entry of a PTX file."""
    for found in re.finditer(r"\.entry (\w+)\(.*?^}$", ptx, re.S | re.M):
        yield found[1], found[0]


def accesses(body):
    """Global loads, asynchronous copies among them, and stores by width in bytes, and 16-byte accesses made piecemeal.

    Piecemeal: accesses of less than 16 bytes in consecutive instructions to consecutive addresses that fill 16 bytes
    from a multiple of 16 on. A loop over elements that was unrolled has other instructions between its accesses.
    """
    widths, run, split = collections.Counter(), [], {"ld": 0, "st": 0}

    def close():
        if run:
            split[run[0][0]] += _filled(run)
            run.clear()

    for line in body.splitlines():
        if copied := COPY.match(line):
            widths[f"loads_{16 if copied[1] else copied[2]}"] += 1
        found = ACCESS.match(line)
        if not found or not (width := _global_width(found[2])):
            # Sixteen loads of a byte come with the shifts that put them together: only what leaves the block ends a run
            # of loads; stores follow each other.
            if run and (run[0][0] == "st" and line.strip() or re.match(r"\s*(\$L|@|bra|ret)", line)):
                close()
            continue
        widths[f"{'loads' if found[1] == 'ld' else 'stores'}_{width}"] += 1
        address = ADDRESS.search(found[3])
        item = (found[1], address[1] if address else None, int((address and address[2]) or 0), width)
        if run and (item[:2] != run[0][:2] or item[2] != run[-1][2] + run[-1][3] or width != run[-1][3]):
            close()
        if width < 16:
            run.append(item)
    close()
    facts = {f"{what}_{width}": widths[f"{what}_{width}"] for what in ("loads", "stores") for width in (16, 8, 4, 2, 1)}
    return {**facts, "split_loads_16": split["ld"], "split_stores_16": split["st"]}


def _global_width(modifiers):
    """Bytes of a global (or generic) access, 0 for another kind."""
    parts = re.sub(r"::\w+", "", modifiers).split(".")
    if set(parts) & {"param", "local", "const", "shared"}:
        return 0
    scalar = SCALAR.fullmatch(parts[-1])
    vector = next((int(part[1]) for part in parts if VECTOR.fullmatch(part)), 1)
    return int(scalar[1]) // 8 * vector if scalar else 0


def _filled(run):
    """How many aligned 16-byte spans a run of consecutive accesses fills."""
    if len(run) < 2:
        return 0
    first, last = run[0][2], run[-1][2] + run[-1][3]
    return max(0, last // 16 - -(-first // 16))


class Cache:
    """Facts of units that were compiled before, by sources.key()."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)

    def get(self, key):
        file = self.folder / f"{key}.json"
        try:
            return json.loads(file.read_text())
        except (OSError, ValueError):
            return None

    def put(self, key, facts):
        part = self.folder / f"{key}.part"
        part.write_text(json.dumps(facts))
        part.replace(self.folder / f"{key}.json")
