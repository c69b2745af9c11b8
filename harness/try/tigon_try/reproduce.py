# SPDX-License-Identifier: Apache-2.0
"""tigon reproduce: builds the commit of a recorded run in a folder of its own and asks whether its figures come again."""
import collections
import dataclasses
import json
import math
import os
import pathlib
import random
import shlex
import subprocess
import sys

from tigon_report import command, statistics, units
from tigon_report.errors import DataError, InfrastructureError, UsageError
from tigon_trees import build as builds

ROOT = pathlib.Path(__file__).resolve().parents[3]
SAMPLE = 20  # cases of each kind, unless all are asked for
KINDS = ("check", "trace", "memory", "bench")
TARGETS = {"host": ["tigon", "tigon_simt", "tigon_gemm"], "cuda": ["tigon"]}
EXACT = {"check": ("verdict",), "memory": ("tensors_bytes", "workspace_bytes", "planned_bytes", "arena_bytes"),
         "trace": ("verdict", "bytes_loaded_bytes", "bytes_stored_bytes", "requests", "sectors", "bank_conflicts", "barriers", "atomics")}


def parser():
    p = command.Parser("reproduce", "Builds the commit that made a run in a folder of its own below build/ and says of each figure "
                       "whether it comes again: verdicts, counted traffic and memory exactly, a time within its interval and only "
                       "on the same device.", ["results/RUN", "results/RUN 'rms_norm/forward/fused/bf16/T=3,H=33,inputs=normal,seed=42'",
                                               "results/try-my_kernel-..."])
    p.add_argument("run", help="folder or records file of a run, or its name below results/ or reports/recorded/")
    p.add_argument("case", nargs="?", help="one case of it (default: a sample of them)")
    p.add_argument("--all", action="store_true", help=f"every case instead of {SAMPLE} of each kind")
    return p


def files_of(run):
    for path in (pathlib.Path(run), ROOT / "results" / run, ROOT / "reports/recorded" / run):
        if path.is_file():
            return path.parent, [path]
        if path.is_dir() and (found := sorted(path.glob("*.jsonl"))):
            return path, found
    raise UsageError(f"{run}: no run; give the folder of one, or its records file")


@dataclasses.dataclass
class Recorded:
    """The records of one process."""

    run: dict
    records: list

    @property
    def commit(self):
        return self.run["tool"].get("commit")

    @property
    def device(self):
        return self.run.get("device", {})


def read(files):
    """The runs in some files; a file may hold several after a merge."""
    runs = {}
    for file in files:
        for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1):
            try:
                record = json.loads(line)
            except ValueError as error:
                raise DataError(f"{file}:{number}: not a record ({error})") from error
            if record.get("record") == "run":
                runs.setdefault(record["run_id"], Recorded(record, []))
            elif record.get("run_id") in runs:
                runs[record["run_id"]].records.append(record)
    if not runs:
        raise DataError(f"{files[0]}: no run record")
    return list(runs.values())


def chosen(run, case, everything):
    """{kind: records} that are looked at again."""
    by_kind = collections.defaultdict(dict)
    for r in run.records:
        if r["record"] in KINDS and (case is None or r["case_id"] == case):
            by_kind[r["record"]][r["case_id"], r.get("executor"), r.get("basis")] = r
    found = {}
    for kind, records in by_kind.items():
        records = list(records.values())
        if not everything and case is None and len(records) > SAMPLE:
            records = random.Random(7).sample(records, SAMPLE)
        found[kind] = records
    return found


def same_device(a, b):
    return (a.get("kind"), a.get("name")) == (b.get("kind"), b.get("name"))


def judge(record, again, comparable):
    """('same' | 'differs' | 'skipped', one line) about a figure and what came this time."""
    kind, name = record["record"], f"{record['record']} {record['case_id']}"
    if again is None:
        return "differs", f"{name}: did not come again"
    if record.get("verdict") == "timeout":
        return "skipped", f"{name}: was too slow, now {again.get('verdict')}"
    if kind in EXACT:
        changed = [f"{key} {record.get(key)} -> {again.get(key)}" for key in EXACT[kind] if record.get(key) != again.get(key)]
        return ("differs", f"{name}: {', '.join(changed)}") if changed else ("same", f"{name}: same")
    if not comparable:
        return "skipped", f"{name}: a time is compared on the same GPU only"
    if not record.get("samples_s") or again.get("median_s") is None:
        ok = record.get("verdict") == again.get("verdict")
        return ("same" if ok else "differs"), f"{name}: {record.get('verdict')} -> {again.get('verdict')}"
    low, high = statistics.median_interval(record["samples_s"])
    median = again["median_s"]
    text = f"{name} {record['basis']}: {units.seconds(median)}, recorded {units.seconds(record['median_s'])}"
    if not math.isfinite(low + high):
        return "skipped", f"{text}; {len(record['samples_s'])} samples give no interval"
    inside = low <= median <= high
    return ("same" if inside else "differs",
            f"{text}, {'inside' if inside else 'outside'} {units.seconds(low)} .. {units.seconds(high)}")


def words_of(kind, records):
    words = ["check", "--trace"] if kind == "trace" else ["bench"] if kind in ("memory", "bench") else ["check"]
    if kind == "check" and len({r["executor"] for r in records}) == 1 and records[0]["executor"] == "checked":
        words += ["--executor", "checked"]
    for case in sorted({r["case_id"] for r in records}):
        words += ["--case", case]
    return words


def run_again(program, words, records_file):
    records_file.unlink(missing_ok=True)
    done = subprocess.run([str(program), *words, "--json", str(records_file)], capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL)
    if not records_file.exists():
        raise InfrastructureError(f"{shlex.join(map(str, words[:3]))}: {(done.stderr.strip() or 'it wrote no records').splitlines()[-1]}")
    return read([records_file])[0]


def groups(found):
    """(kind, records) that one call of the program does again."""
    for kind, records in found.items():
        for executor in sorted({r.get("executor") or "" for r in records}):
            yield kind, [r for r in records if (r.get("executor") or "") == executor]


def built(commit, cuda, tried):
    """(source tree, {device: folder of its build}) of a commit. What was tried ran on the host executor first."""
    devices = [d for d, wanted in (("host", tried or not cuda), ("cuda", cuda)) if wanted]
    try:
        tree = builds.base_tree(ROOT, builds.commit_named(ROOT, commit))
        for device in devices:
            folder = tree.parent / device
            print(f"building {commit[:12]} in {os.path.relpath(folder)}", flush=True)
            builds.build(tree, folder, device == "cuda", TARGETS[device])
    except builds.UnknownRef as error:
        raise DataError(f"the run was made of commit {commit}, which this repository does not have") from error
    except builds.BuildError as error:
        raise InfrastructureError(str(error)) from error
    return tree, {device: tree.parent / device for device in devices}


def tried_again(folder, tree, build_folders, cuda):
    """The libraries of a `tigon try`, made again by its commit from the file that lies in its folder."""
    facts = json.loads((folder / "try.json").read_text())
    again = tree.parent / "tried"
    subprocess.run(["rm", "-rf", str(again)], check=True)
    # Commits before 2026-11-23 have modules of theirs in ci.
    environment = {**os.environ, "TIGON_DEVICE": "cuda" if cuda else "host", "TIGON_TRY_BUILD": str(build_folders["host"]),
                   "TIGON_TRY_CUDA_BUILD": str(build_folders.get("cuda", "")),
                   "PYTHONPATH": os.pathsep.join(str(tree / part) for part in ("reports", "ci", "harness/try", "harness/trees"))}
    subprocess.run([sys.executable, "-m", "tigon_try", str(folder / facts["file"]), *facts["options"], "--out", str(again)],
                   env=environment, check=False, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    return again


def library_for(run, again):
    """--impl-from of a run of `tigon try`, from the folder where it was made again."""
    words = run.run["command"]
    if "--impl-from" not in words:
        return []
    if again is None:
        raise DataError("the run is over a plug-in library, which is not in the repository; only those of ./tigon try come again")
    given = words[words.index("--impl-from") + 1].split(",")
    paths = [again / (pathlib.Path(p).parent.name if p.endswith(".py") else "") / pathlib.Path(p).name for p in given]
    return ["--impl-from", ",".join(map(str, paths))]


def main(argv):
    options = parser().parse_args(argv)
    folder, files = files_of(options.run)
    runs = [r for r in read(files) if r.commit]
    counts, programs = collections.Counter(), {}
    if not runs:
        raise DataError(f"{files[0]}: its run record names no commit")
    for run in runs:
        found = chosen(run, options.case, options.all)
        if not found:
            continue
        if run.run["tool"].get("dirty"):
            print(f"run {run.run['run_id']}: its tree had changes beside commit {run.commit[:12]}; the commit alone is built")
        cuda = run.device.get("kind") == "cuda"
        if cuda and not builds.have_gpu():
            raise InfrastructureError(f"run {run.run['run_id']} was made on {run.device.get('name')}; there is no GPU here")
        if (run.commit, cuda) not in programs:
            tried = (folder / "try.json").exists()
            tree, build_folders = built(run.commit, cuda, tried)
            again = tried_again(folder, tree, build_folders, cuda) if tried else None
            programs[run.commit, cuda] = build_folders["cuda" if cuda else "host"], again
        build_folder, again = programs[run.commit, cuda]
        library = library_for(run, again)
        for kind, records in groups(found):
            now = run_again(build_folder / "bin/tigon", words_of(kind, records) + library, build_folder / "reproduce.jsonl")
            comparable = same_device(run.device, now.device)
            by_key = {(r["record"], r["case_id"], r.get("basis")): r for r in now.records if r["record"] in KINDS}
            for record in records:
                verdict, text = judge(record, by_key.get((kind, record["case_id"], record.get("basis"))), comparable and cuda)
                counts[verdict] += 1
                if verdict == "differs" or kind == "bench" and cuda or options.case:
                    print(f"{verdict:<8} {text}")
    if not counts:
        raise DataError(f"{options.run}: no such case" if options.case else f"{options.run}: nothing in it can be done again")
    print(f"{counts['same']} came again, {counts['differs']} differ, {counts['skipped']} cannot be compared")
    print(f"{counts['same']} passed, {counts['differs']} failed, {counts['skipped']} skipped")
    return command.EXIT_WRONG if counts["differs"] else command.EXIT_OK if counts["same"] else command.EXIT_NOTHING


if __name__ == "__main__":
    sys.exit(command.run("reproduce", main, sys.argv[1:]))
