# SPDX-License-Identifier: Apache-2.0
"""tigon try: one file from outside of the tree, from compiler to verdict."""
import dataclasses
import hashlib
import json
import os
import pathlib
import re
import secrets
import shlex
import shutil
import sys
import time

from tigon_report import command
from tigon_report.errors import UsageError
from tigon_trees.build import find_nvcc

from . import compiler, facts, limits, peers, python_kernel, show, signature, stages

ROOT = pathlib.Path(__file__).resolve().parents[3]
DTYPES = ("f32", "bf16", "f16")


@dataclasses.dataclass
class Job:
    """A file and what is asked about it."""

    shown: pathlib.Path  # as typed
    text: str
    op: str
    passes: list
    passes_chosen: bool
    dtypes: list
    against: list
    folder: pathlib.Path
    command: str
    model: str | None = None
    timeout: float | None = None  # --timeout
    limit: float = 0  # seconds of a case
    limit_checked: float = 0  # in the checking executor
    on_gpu: bool = False
    name: str = ""
    digest: str = ""
    what: str = ""
    allowance: str = ""
    outcomes: list = dataclasses.field(default_factory=list)
    verdicts: list = dataclasses.field(default_factory=list)
    slow: list = dataclasses.field(default_factory=list)  # cases that were killed for their time
    traffic: list = dataclasses.field(default_factory=list)
    bench: object = None

    def __post_init__(self):
        self.name = re.sub(r"[^A-Za-z0-9_.-]", "_", self.shown.stem)[:48]
        self.digest = hashlib.sha256(self.text.encode()).hexdigest()
        self.what = f"{', '.join(self.passes)}; {', '.join(self.dtypes)}"

    @property
    def is_cuda(self):
        return self.shown.suffix == ".cu"

    @property
    def folder_shown(self):
        return os.path.relpath(self.folder)


def seconds(text):
    value = float(text)
    if not 0 < value < 1e7:
        raise ValueError
    return value


def parser():
    p = command.Parser("try", "One kernel in one file outside of the tree: is it right, and how does it compare? The file includes "
                       "the signature of an op, kernels/OP/OP.h, and defines its launcher; or is Python.",
                       ["my_kernel.cu", "my_kernel.cu --op rms_norm --pass backward --dtype bf16 --against fused",
                        "my_kernel.py --op swiglu",
                        "harness/try/examples/rms_norm_right.cu      worked examples lie beside it"])
    p.add_argument("file", help="CUDA source (.cu), or Python (.py) with a function of the op's name over torch tensors or numpy arrays")
    p.add_argument("--op", help="the op (default: the one that the file includes or defines)")
    p.add_argument("--pass", dest="passes", help="forward, backward, forward_backward (default: those that the file has)")
    p.add_argument("--dtype", help="f32, bf16, f16 (default: all)")
    p.add_argument("--against", default="fused,naive",
                   help="implementations to compare with: fused, naive; on a GPU peers, too: torch, liger, ... (default: fused,naive)")
    p.add_argument("--model", help="also check and measure the op's sizes in a model, e.g. llama3-8b (./tigon list models)")
    p.add_argument("--timeout", type=seconds, metavar="SECONDS",
                   help="seconds that one case may take; a case that takes longer is not judged, and no case is wrong for its time "
                   f"(default: {limits.TIMES_FUSED} times what the tree's own kernel takes at most in the op's tiny cases on this machine, "
                   f"and at least {limits.LEAST_LIMIT_CHECKED} in the checking executor, {limits.LEAST_LIMIT} elsewhere)")
    p.add_argument("--out", help="folder of the results (default: results/try-NAME-...)")
    return p


def chosen(text, known, what):
    names = text.split(",")
    for name in names:
        if name not in known:
            raise UsageError(f"no {what} '{name}'; known: {', '.join(known)}")
    return names


def defined_op(text, known):
    """The op whose name a function of a .py file has, or None."""
    found = [op for op in known if re.search(rf"^(?:def|class) {op}\b", text, re.M)]
    return found[0] if len(found) == 1 else None


def job_of(options, argv, known, program):
    file = pathlib.Path(options.file)
    if file.suffix not in (".cu", ".py"):
        raise UsageError(f"{file}: neither CUDA (.cu) nor Python (.py)")
    try:
        text = file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file}: {getattr(error, 'strerror', None) or 'not a text file'}") from error
    op = options.op or (signature.included_op(text) if file.suffix == ".cu" else defined_op(text, known))
    if op is None:
        raise UsageError(f"{file}: which op? Give --op; known: {', '.join(sorted(known))}")
    chosen(op, sorted(known), "op")
    included = signature.included_op(text) if file.suffix == ".cu" else None
    if included in known and included != op:
        raise UsageError(f"--op {op}: {file} includes the signature of {included}, kernels/{included}/{included}.h")
    passes = list(known[op].passes)
    against = chosen(options.against, ("fused", "naive", *peers.FILES), "implementation") if options.against else []
    folder = pathlib.Path(options.out or pathlib.Path("results") / f"try-{file.stem}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-"
                          f"{secrets.token_hex(2)}")
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"--out {folder}: not empty; results are kept, choose another folder")
    model = chosen(options.model, signature.models_of(program), "model")[0] if options.model else None
    return Job(file, text, op, chosen(options.passes, passes, f"pass of {op}") if options.passes else passes, bool(options.passes),
               chosen(options.dtype, DTYPES, "dtype") if options.dtype else list(DTYPES), against, folder,
               shlex.join(["./tigon", "try", *argv]), model, options.timeout)


def run_cuda(log, job, host, gpu, of_op):
    """The static facts, when all went well."""
    nvcc, library = find_nvcc(), None
    libraries = stages.compile_for_host(log, job, host, of_op, gpu is not None)
    if gpu:
        library = stages.compile_for_gpu(log, job, gpu, of_op, nvcc)
    found = stages.fits(log, job, library or libraries["fast"], of_op)
    job.what = "; ".join(f"{name} {' '.join(dtypes)}" for name, dtypes in found.items())
    dtypes = [d for d in job.dtypes if any(d in have for have in found.values())]
    selection = ["--pass", ",".join(found), "--dtype", ",".join(dtypes)]
    limits.find_limit(job, host, True, list(found), dtypes)
    if libraries:
        stages.check(log, job, host, libraries["checked"], selection, True)
    build, library = (gpu, library) if gpu else (host, libraries["fast"])
    stages.check(log, job, build, library, selection, False)
    stages.sizes(log, job, build, library, selection)
    kernels = facts.stage(log, job, build, nvcc, of_op, list(found), dtypes)
    stages.bench(log, job, build, library, of_op, list(found), selection)
    return kernels


def run_python(log, job, host, gpu, of_op):
    build = gpu or host
    found = stages.find_functions(log, job)
    job.what = f"{', '.join(found)} {' '.join(job.dtypes)}"
    program = python_kernel.program(build, job.shown, job.text, job.name, of_op, found, job.folder)
    selection = ["--pass", ",".join(found), "--dtype", ",".join(job.dtypes)]
    limits.find_limit(job, build, False, list(found), job.dtypes)
    log.add("checking executor", "not run", "it watches CUDA kernels; this is Python", time.monotonic())
    stages.check(log, job, build, program, selection, False)
    stages.sizes(log, job, build, program, selection)
    if build.on_gpu:
        stages.bench(log, job, build, program, of_op, list(found), selection)
    else:
        log.add("speed, peak memory", "not run", "no GPU here, and what Python allocates on a CPU is not seen", time.monotonic())
    return {}


def repeated(options, job):
    """The options that ask the same again."""
    given = {"--op": job.op, "--pass": options.passes, "--dtype": options.dtype, "--against": options.against,
             "--model": options.model, "--timeout": options.timeout}
    return [word for name, value in given.items() if value is not None for word in (name, str(value))]


VERDICTS = {0: "right", 1: "wrong", 2: "does not build", 4: "not judged"}


def verdict_of(job, code, last):
    if code == command.EXIT_INFRASTRUCTURE:
        return f"not judged: too slow ({len(job.slow)} cases took longer than they may; --timeout SECONDS gives them more)"
    return VERDICTS[code] + ("" if code == 0 else f": stopped at '{last.name}'")


def main(argv):
    options = parser().parse_args(argv)
    host = compiler.Build(ROOT, os.environ.get("TIGON_TRY_BUILD") or ROOT / "build/host")
    known = signature.all_of(host.program)
    job = job_of(options, argv, known, host.program)
    gpu = compiler.Build(ROOT, os.environ.get("TIGON_TRY_CUDA_BUILD") or ROOT / "build/cuda") if os.environ.get("TIGON_DEVICE") == "cuda" else None
    job.on_gpu = gpu is not None
    job.folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(job.shown, job.folder / job.shown.name)
    # For ./tigon reproduce.
    (job.folder / "try.json").write_text(json.dumps({"file": job.shown.name, "options": repeated(options, job)}) + "\n")
    log, code, kernels = stages.Log(), 0, {}
    try:
        kernels = (run_cuda if job.is_cuda else run_python)(log, job, host, gpu, known[job.op])
    except stages.Stop as stop:
        code = stop.code
    if code == 0 and job.slow:  # time is no verdict on results, and what was not judged is not right
        code = command.EXIT_INFRASTRUCTURE
    verdict = verdict_of(job, code, log.stages[-1])
    for title, head, rows in show.tables(job, kernels):
        print(f"\n{title}")
        print("\n".join(show.plain(head, rows)))
    text = show.block(job, verdict, log.stages, kernels)
    (job.folder / "pull_request.md").write_text(text)
    print(f"\n---- for a pull request ({job.folder_shown}/pull_request.md) ----\n{text}----")
    print(f"verdict: {verdict} ({time.monotonic() - log.begun:.1f} s)")
    passed = sum(v == "passed" for v in job.verdicts)
    skipped = sum(v in stages.judge.SKIPS for v in job.verdicts)
    slow = sum(v == stages.judge.TOO_SLOW for v in job.verdicts)
    print(f"{passed} passed, {len(job.verdicts) - passed - skipped - slow} failed, {skipped} skipped" + (f", {slow} too slow" if slow else ""))
    return code


if __name__ == "__main__":
    sys.exit(command.run("try", main, sys.argv[1:]))
