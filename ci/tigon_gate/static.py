# SPDX-License-Identifier: Apache-2.0
"""tigon gate --static: what can be judged without a GPU, of this tree or against a base."""
import collections
import concurrent.futures
import dataclasses
import os
import pathlib

from tigon_report import recorder, records
from tigon_report.errors import InfrastructureError, UsageError
from tigon_trees import build, kernel_facts, sources

from . import accepted, host_facts, sides, static_compare


@dataclasses.dataclass
class Item:
    """A kernel on an architecture, or a case on the host executor, with what changed."""

    scope: str  # kernel, case
    op: str
    name: str
    arch: str
    numbers: dict
    base: dict | None
    same_code: bool | None
    changes: list
    cause: str = ""

    @property
    def title(self):
        return f"{self.name} {self.arch}".strip()


def run(options, root, say):
    """Judges, records and prints; returns the exit code."""
    part = options.only or "all"
    base = sides.base_tree(options, root)
    base_commit = base[1] if base else None
    known = accepted.between(root, base_commit) if base_commit else []
    items, missing = [], []
    before = base or (sides.last_commit(root) if part != "host" else None)  # a fault that is committed is no news
    try:
        if part != "host":
            items += kernel_items(root, before, say, missing, options.op)
        if part != "kernels":
            items += case_items(options, root, base, say, missing)
    except (build.BuildError, kernel_facts.CompileError, host_facts.HostError) as error:
        raise InfrastructureError(str(error)) from error
    if not items:
        raise InfrastructureError("; ".join(missing) or "there is nothing to judge")
    for item in items:
        item.changes = accepted.marked(item.op, item.changes, known)
    items.sort(key=lambda item: (item.scope, item.op, item.name, item.arch))
    code = 3 if any(change.effect == "blocks" for item in items for change in item.changes) else 0
    record(options, root, items, code, base_commit)
    show(items, missing, before is not None or options.base_program is not None)
    failed = sum(any(c.effect == "blocks" for c in item.changes) for item in items)
    print(f"{len(items) - failed} passed, {failed} failed, {len(missing)} skipped")
    return code


# ---- kernels ------------------------------------------------------------------------------------


def kernel_items(root, base, say, missing, ops=()):
    nvcc = build.find_nvcc()
    if nvcc is None:
        missing.append("without nvcc nothing is known of registers, spills, stack, shared memory, code and 16-byte access")
        return []
    folder = root / "build/gate"
    head_units, archs = _configured(root, folder / "head/cuda")
    base_units, base_archs = _configured(base[0], base[2] / "cuda") if base else ([], archs)
    if ops:
        wanted = set(ops) | {"device"}
        head_units, base_units = ([u for u in us if u.op in wanted] for us in (head_units, base_units))
    cache, compiler = kernel_facts.Cache(folder / "facts"), kernel_facts.compiler_version(nvcc)
    files = {id(u): sources.closure(u) for u in (*head_units, *base_units)}
    jobs = {}
    for unit, arch in [(u, a) for u in head_units for a in archs] + [(u, a) for u in base_units for a in base_archs]:
        jobs[sources.key(unit, files[id(unit)], arch, compiler)] = (unit, arch)
    _compile(jobs, cache, nvcc, say)
    facts_of = lambda unit, arch: cache.get(sources.key(unit, files[id(unit)], arch, compiler))  # noqa: E731
    by_file = {unit.file: unit for unit in base_units}
    old_of = {unit.file: by_file.pop(unit.file, None) for unit in head_units}
    items = []
    for unit in head_units:
        old = old_of[unit.file]
        if old is None and base:
            gone = {file: facts_of(u, base_archs[0]) for file, u in by_file.items()}
            old = by_file.pop(static_compare.moved_from(facts_of(unit, archs[0]), gone), None)
        why = sources.cause(old, unit, files[id(old)], files[id(unit)]) if old else "new file"
        for arch in archs:
            before = facts_of(old, arch) if old and arch in base_archs else {}
            items += _kernels(unit, arch, before if base else None, facts_of(unit, arch), why)
    for file in by_file:
        say(f"gone with the base's {file}: its kernels are not compared")
    return items


def _configured(tree, folder):
    build.configure(tree, folder, True)
    return sources.units(tree, folder), sources.architectures(folder)


def _compile(jobs, cache, nvcc, say):
    todo = {key: job for key, job in jobs.items() if cache.get(key) is None}
    if not todo:
        return
    workers = int(os.environ.get("TIGON_JOBS") or len(os.sched_getaffinity(0)))
    say(f"compiling the kernels of {len(todo)} files ({len(jobs) - len(todo)} are known)")
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        running = {pool.submit(kernel_facts.of_unit, unit, arch, nvcc): key for key, (unit, arch) in todo.items()}
        for done in concurrent.futures.as_completed(running):
            cache.put(running[done], done.result())


def _kernels(unit, arch, before, after, why):
    """Items of one unit; `before` is None without a base."""
    wide = static_compare.missing_wide(after)
    items = []
    for name, old, new in static_compare.matched(before or {}, after):
        same = None if old is None else bool(new.get("code_hash")) and old.get("code_hash") == new.get("code_hash")
        found = [] if same else static_compare.changes(old, new, why)
        known = {c.number for c in found}
        was = static_compare.missing_wide(before or {})
        if old is None:
            found += static_compare.of_new_kernel(new)
        alone = [*static_compare.faults(new), *([wide[name]] if name in wide else [])]
        for fault in alone:
            if fault.number in known:
                continue
            old_fault = old is not None and (old.get(fault.number, 0) >= fault.head > 0 or name in was)
            found.append(dataclasses.replace(fault, effect="warns", cause=f"{fault.cause}; as in the base") if old_fault
                         else dataclasses.replace(fault, cause=f"{fault.cause}; {why}" if before is not None else fault.cause))
        items.append(Item("kernel", unit.op, name, arch, new, old, same, found, why))
    return items


# ---- cases on the host executor -----------------------------------------------------------------


def case_items(options, root, base, say, missing):
    head_program = options.head_program or _host_program(root, root / "build/gate/head/host", say)
    head = _traced(head_program, options, say)
    before, base_program = {}, None
    if base or options.base_program:
        base_program = options.base_program or _host_program(base[0], base[2] / "host", say)
        before = _traced(base_program, options, say)
    counted = [head_program] if base_program is None else [head_program, base_program]
    if host_facts.need_valgrind():
        say(f"counting instructions of {len(head)} cases")
        for program, traced in zip(counted, (head, before)):
            _count(program, traced)
    else:
        missing.append("without valgrind no host-executor instructions are counted (apt-get install valgrind)")
    items = []
    for case, kernels in head.items():
        op = case.split("/")[0]
        why = host_cause(root, base[0] if base else None, op)
        old_kernels = before.get(case)
        found = []
        if old_kernels is not None:
            for name, old, new in static_compare.matched(old_kernels, kernels):
                found += [dataclasses.replace(c, cause=f"{name}: {c.cause}") for c in static_compare.changes(old, new, why)]
        total = _sum(kernels)
        old_total = _sum(old_kernels) if old_kernels is not None else None
        # A kernel that is new raises only the sum.
        named = {c.number for c in found}
        found += [c for c in static_compare.changes(old_total, total, why) if c.number not in named and c.effect != "better"]
        items.append(Item("case", op, case, "", total, old_total, None, found, why))
    missing += [f"{case} is traced with the base only" for case in before if case not in head]
    return items


def _host_program(tree, folder, say):
    say(f"building the host executor of {tree}")
    return build.build(tree, folder, False, ["tigon"]) / "tigon"


def _traced(program, options, say):
    found = host_facts.traces(program, options.case)
    if options.op:
        found = {case: kernels for case, kernels in found.items() if case.split("/")[0] in options.op}
        if not found:
            raise UsageError(f"no traced case of {', '.join(options.op)}")
    say(f"{len(found)} cases traced with {program}")
    return found


def _count(program, traced):
    workers = int(os.environ.get("TIGON_JOBS") or len(os.sched_getaffinity(0)))
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        for case, counts in zip(traced, pool.map(lambda case: host_facts.instructions(program, case), traced)):
            for name, numbers in traced[case].items():
                if name in counts:
                    numbers["instructions"] = counts[name]


def _sum(kernels):
    total = collections.Counter()
    for numbers in kernels.values():
        total.update(numbers)
    total = dict(total)
    if total.get("requests"):
        total["sectors_per_request"] = total["sectors"] / total["requests"]
    return total


def host_cause(root, base, op):
    """Which files differ that an op's kernels on the host executor are made of."""
    if base is None:
        return "two programs; their sources are not known"
    texts = []
    for tree in (pathlib.Path(base), pathlib.Path(root)):
        files = {}
        shared = [p for folder in ("device", "loss", "linear_head") for p in sorted(tree.glob(f"kernels/{folder}/*.cu"))]
        for file in [f"kernels/{op}/{op}.cu", *(p.relative_to(tree).as_posix() for p in shared)]:
            files.update(sources.closure(sources.Unit(tree, file, (), ())))
        for pattern in ("kernels/simt/*", "kernels/**/*.cmake", "kernels/**/CMakeLists.txt"):
            for path in tree.glob(pattern):
                if path.is_file():
                    files.update(sources.closure(sources.Unit(tree, path.relative_to(tree).as_posix(), (), ())))
        texts.append(files)
    changed = sorted(n for n in texts[0].keys() | texts[1].keys() if texts[0].get(n) != texts[1].get(n))
    groups = collections.defaultdict(list)
    for name in changed:
        kind = ("source changed" if name.startswith(f"kernels/{op}/") else
                "build flags changed" if name.endswith((".cmake", "CMakeLists.txt")) else
                "executor changed" if name.startswith("kernels/simt/") else "callee changed")
        groups[kind].append(name)
    return "; ".join(f"{kind}: {', '.join(names)}" for kind, names in sorted(groups.items())) or \
        "nothing in kernels/ changed: the harness did"


# ---- output -------------------------------------------------------------------------------------


def record(options, root, items, code, base_commit):
    folder = options.out or root / "results" / recorder.new_run_id()
    writer = recorder.Recorder(options.json or pathlib.Path(folder) / "records.jsonl", ["./tigon", "gate", "--static"], build.commit_of(root))
    for item in items:
        numbers = {k: v for k, v in item.numbers.items() if isinstance(v, (int, float))}
        base = item.base and {k: v for k, v in item.base.items() if isinstance(v, (int, float))}
        fields = {"scope": item.scope, "op": item.op, "numbers": numbers, "base_numbers": base, "same_code": item.same_code,
                  "cause": item.cause, "changes": [dataclasses.asdict(change) for change in item.changes]}
        if item.scope == "kernel":
            fields.update(kernel=item.name, arch=item.arch, code_hash=item.numbers.get("code_hash", ""))
        else:
            fields.update(case_id=item.name, case_key=records.case_key(item.name))
        writer.write("static", fields)
    failed = sum(any(c.effect == "blocks" for c in item.changes) for item in items)
    writer.write("static", {"scope": "suite", "items": len(items), "base_commit": base_commit,
                              "head_commit": build.commit_of(root)[0], "exit_code": code})
    writer.end(len(items) - failed, failed, 0, code)
    print(f"results: {writer.path}")


def show(items, missing, compared):
    kernels = [item for item in items if item.scope == "kernel"]
    cases = [item for item in items if item.scope == "case"]
    if kernels:
        _show_kernels(kernels, compared)
    if cases:
        _show_cases(cases)
    by_cause = collections.defaultdict(lambda: collections.defaultdict(list))
    for item in items:
        for change in item.changes:
            by_cause[change.cause][change.effect, change.text()].append(item.title)
    rank = lambda entry: min(static_compare.ORDER[effect] for effect, _ in entry[1])  # noqa: E731
    for cause, texts in sorted(by_cause.items(), key=rank):
        print(f"because of {cause}" if compared else cause)
        for (effect, text), names in sorted(texts.items(), key=lambda entry: static_compare.ORDER[entry[0][0]]):
            print(f"  {effect}: {text}: {', '.join(names)}")
    for line in missing:
        print(f"skipped: {line}")


def _show_kernels(kernels, compared):
    archs = ", ".join(sorted({item.arch for item in kernels}))
    if not compared:
        print(f"kernels: {len(kernels)} on {archs}")
    else:
        same = sum(item.same_code is True for item in kernels)
        new = sum(item.base is None for item in kernels)
        print(f"kernels: {len(kernels)} on {archs}: {same} with the base's machine code, "
              f"{len(kernels) - same - new} with another, {new} new")
    print(f"{'op':<22} {'arch':<7} {'kernels':>7} {'changed':>7} {'registers':>9} {'spilled':>8} {'stack':>6} {'shared':>7} "
          f"{'code':>9} {'16-byte loads':>13} {'stores':>7}")
    groups = collections.defaultdict(list)
    for item in kernels:
        groups[item.op, item.arch].append(item)
    for (op, arch), of in groups.items():
        most = lambda key: max(item.numbers.get(key, 0) for item in of)  # noqa: E731
        total = lambda key: sum(item.numbers.get(key, 0) for item in of)  # noqa: E731
        changed = sum(item.same_code is False for item in of)
        print(f"{op:<22} {arch:<7} {len(of):>7} {changed:>7} {most('registers'):>9} {total('spill_bytes'):>8} "
              f"{most('stack_bytes'):>6} {most('shared_bytes'):>7} {total('code_bytes'):>9} {total('loads_16'):>13} "
              f"{total('stores_16'):>7}")


def _show_cases(cases):
    width = max(len(item.name.split(",inputs=")[0]) for item in cases)
    print(f"{'case':<{width}} {'loaded':>10} {'stored':>10} {'sectors':>8} {'per request':>11} {'instructions':>12}")
    for item in cases:
        n = item.numbers
        print(f"{item.name.split(',inputs=')[0]:<{width}} {n['bytes_loaded_bytes']:>10.0f} {n['bytes_stored_bytes']:>10.0f} "
              f"{n['sectors']:>8.0f} {n.get('sectors_per_request', 0):>11.3g} {n.get('instructions', '-'):>12}")
