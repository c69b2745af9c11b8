# SPDX-License-Identifier: Apache-2.0
"""Numbers of kernels and cases against those of a base: what blocks, what warns, what is better."""
import collections
import dataclasses
import hashlib
import re

# A rise of these blocks: they cost time on every machine, and nothing that a kernel wants raises them.
BLOCKING = {"spill_bytes", "stack_bytes", "split_loads_16", "split_stores_16", "loads_1", "stores_1",
            "bytes_loaded_bytes", "bytes_stored_bytes", "sectors"}
# A rise of these may be what a faster kernel needs.
WARNING = {"registers", "shared_bytes", "barriers", "code_bytes", "requests", "bank_conflicts", "atomics", "instructions"}
TEXT = {
    "spill_bytes": "bytes spilled", "stack_bytes": "bytes of stack", "split_loads_16": "16-byte loads made piecemeal",
    "split_stores_16": "16-byte stores made piecemeal", "loads_1": "one-byte loads", "stores_1": "one-byte stores",
    "bytes_loaded_bytes": "bytes loaded", "bytes_stored_bytes": "bytes stored", "sectors": "32-byte sectors",
    "registers": "registers", "shared_bytes": "bytes of shared memory", "barriers": "barriers", "code_bytes": "bytes of code",
    "requests": "requests", "bank_conflicts": "bank conflicts", "atomics": "atomics", "instructions": "host instructions",
    "loads_16": "16-byte loads", "stores_16": "16-byte stores"}
ORDER = {"blocks": 0, "accepted": 1, "warns": 2, "better": 3}


@dataclasses.dataclass(frozen=True)
class Change:
    """One number that differs, or that is wrong by itself (base is None)."""

    effect: str
    number: str
    base: float | None
    head: float
    cause: str

    def text(self):
        what = TEXT.get(self.number, self.number)
        return f"{self.head:g} {what}" if self.base is None else f"{what} {self.base:.10g} -> {self.head:.10g}"


def changes(base, head, cause):
    """Changes of one kernel or case. `base` is None where there is nothing to compare with."""
    if base is None:
        return []
    found = []
    for what in ("loads", "stores"):
        wide = f"{what}_16"
        if head.get(wide, 0) < base.get(wide, 0):
            more = sum(w * max(0, head.get(f"{what}_{w}", 0) - base.get(f"{what}_{w}", 0)) for w in (8, 4, 2, 1))
            narrower = more >= 16 * (base[wide] - head.get(wide, 0))  # all that was moved by them
            found.append(Change("blocks" if narrower else "warns", wide, base[wide], head.get(wide, 0),
                                f"narrower ones took their place; {cause}" if narrower else cause))
    for name in sorted((BLOCKING | WARNING) & base.keys() & head.keys()):
        if head[name] > base[name]:
            found.append(Change("blocks" if name in BLOCKING else "warns", name, base[name], head[name], cause))
        elif head[name] < base[name]:
            found.append(Change("better", name, base[name], head[name], cause))
    return sorted(found, key=lambda change: ORDER[change.effect])


def faults(facts):
    """What is wrong with a kernel by itself."""
    found = []
    for name in ("split_loads_16", "split_stores_16"):
        if facts.get(name):
            found.append(Change("blocks", name, None, facts[name], "consecutive narrow accesses fill 16 aligned bytes"))
    for name in ("loads_1", "stores_1"):
        if facts.get(name, 0) >= 8:
            found.append(Change("blocks", name, None, facts[name], "no tensor has elements of one byte"))
    return found


def of_new_kernel(facts):
    """What a kernel without a counterpart in the base should be looked at for."""
    return [Change("warns", name, None, facts[name], "a kernel that has nothing to be compared with")
            for name in ("spill_bytes", "stack_bytes") if facts.get(name)]


def _element_bytes(name):
    found = re.search(r"\b(bf16|f16|float)\b", name)
    return {"bf16": 2, "f16": 2, "float": 4}[found[1]] if found else None


def _numbers(name):
    """The integers among a kernel's own template arguments, outside of nested ones."""
    inside = name[name.find("<") + 1:name.rfind(">")] if "<" in name else ""
    depth, argument, found = 0, "", []
    for letter in inside + ",":
        depth += (letter == "<") - (letter == ">")
        if letter == "," and depth == 0:
            found.append(int(argument) if argument.strip().isdigit() else None)
            argument = ""
        else:
            argument += letter
    return found


def stem(name):
    return name.split("<")[0]


def missing_wide(kernels):
    """{kernel: Change}: kernels made for 16-byte pieces that have no 16-byte access.

    A kernel template that is instantiated for single elements (1) and for pieces (16 / element size) in the same
    argument must load and store pieces by 16 bytes wherever the version for elements loads and stores elements.
    """
    found = {}
    families = collections.defaultdict(list)
    for name in kernels:
        if size := _element_bytes(name):
            families[stem(name), size].append(name)
    for (_, size), names in families.items():
        numbers = {name: _numbers(name) for name in names}
        for at in range(min(len(n) for n in numbers.values())):
            if {n[at] for n in numbers.values()} != {1, 16 // size}:
                continue
            singles = [name for name in names if numbers[name][at] == 1]
            for name in names:
                if numbers[name][at] == 1:
                    continue
                for what in ("loads", "stores"):
                    if all(kernels[s].get(f"{what}_{size}") for s in singles) and not kernels[name].get(f"{what}_16"):
                        found[name] = Change("blocks", f"{what}_16", None, 0, "it is made for 16-byte pieces")
            break
    return found


def matched(base, head):
    """Pairs (name, base facts or None, head facts): by name, else by function, else all that is left of the file.

    Kernels whose names changed are compared as a group, the largest number of each side, so that a new template
    argument or a new name does not hide a rise.
    """
    pairs = [(name, base[name], head[name]) for name in head if name in base]
    new = collections.defaultdict(list)
    old = collections.defaultdict(list)
    for name in head.keys() - base.keys():
        new[stem(name)].append(name)
    for name in base.keys() - head.keys():
        old[stem(name)].append(name)
    for function in sorted(new.keys() & old.keys()):
        pairs.append(_group(function, old.pop(function), new.pop(function), base, head))
    gone, come = (sorted(sum(names.values(), [])) for names in (old, new))
    if gone and come:  # functions were renamed
        pairs.append(_group(", ".join(sorted({stem(name) for name in come})), gone, come, base, head))
    else:
        pairs += [(name, None, head[name]) for name in come]
    return pairs


def _group(name, gone, come, base, head):
    title = f"{name} ({len(come)} kernels under new names, of {len(gone)})"
    return title, _of_all(base[n] for n in gone), _of_all(head[n] for n in come)


def _of_all(facts):
    """The largest number of each kind, and the codes of all as one."""
    facts = list(facts)
    codes = sorted(one.get("code_hash", "") for one in facts)
    return largest(facts) | ({"code_hash": hashlib.sha256(" ".join(codes).encode()).hexdigest()[:16]} if all(codes) else {})


def largest(facts):
    found = {}
    for one in facts:
        for name, value in one.items():
            if isinstance(value, (int, float)):
                found[name] = max(found.get(name, 0), value)
    return found


def moved_from(kernels, gone):
    """The one of `gone`, {file: its kernels}, that has most of the names of `kernels`; None where none has any."""
    shared = {file: len(kernels.keys() & theirs.keys()) for file, theirs in gone.items()}
    return max((file for file in shared if shared[file]), key=shared.get, default=None)
