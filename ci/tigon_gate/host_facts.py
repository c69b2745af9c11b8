"""What the host executor tells of a program's kernels: counted traffic, and instructions counted by valgrind."""
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from . import kernel_facts, records

COUNTERS = ("bytes_loaded_bytes", "bytes_stored_bytes", "requests", "sectors", "bank_conflicts", "barriers", "atomics")
_KERNEL = re.compile(r"(^|::)\w*kernel\w*(<|$)")


class HostError(Exception):
    """A program that does not trace; one line."""


def traces(program, cases=()):
    """{case id: {kernel: counters}} from `tigon check --trace` of a host build."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "records.jsonl"
        words = [str(program), "check", "--trace", "--json", str(file)]
        for case in cases:
            words += ["--case", case]
        done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=folder)
        lines = records.read(file) if file.is_file() else []
    found = {}
    for record in lines:
        if record["record"] != "trace":
            continue
        if record["verdict"] != "passed":
            raise HostError(f"{record['case_id']}: {record['verdict']}: {record['reason']}")
        kernels = found.setdefault(record["case_id"], {})
        for kernel in record["kernels"]:
            counters = kernels.setdefault(kernel["name"], collections.Counter())
            counters.update({name: kernel[name] or 0 for name in COUNTERS})
    if not found or done.returncode != 0:
        told = (done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}").splitlines()[-1]
        raise HostError(f"{program} check --trace: {told}")
    return {case: {name: dict(c) for name, c in kernels.items()} for case, kernels in found.items()}


def need_valgrind():
    """True when valgrind is there or apt can install it."""
    if shutil.which("valgrind"):
        return True
    apt = ["apt-get"] if os.geteuid() == 0 else ["sudo", "-n", "apt-get"]
    if not shutil.which("apt-get"):
        return False
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for words in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", "valgrind"]):
        try:
            subprocess.run([*apt, *words], capture_output=True, check=False, env=environment, stdin=subprocess.DEVNULL)
        except OSError:
            return False
    return shutil.which("valgrind") is not None


def instructions(program, case):
    """{kernel: instructions} of the kernels' own code while the program checks a case once on one thread.

    Cachegrind counts instructions of a process; those of functions that belong to a kernel are the same in every run,
    on every machine that runs the same binary.
    """
    with tempfile.TemporaryDirectory() as folder:
        counts = pathlib.Path(folder) / "counts"
        request = json.dumps({"id": case, "save": "", "trace": False}) + "\n"
        words = ["valgrind", "-q", "--tool=cachegrind", "--cache-sim=no", f"--cachegrind-out-file={counts}", str(program),
                 "child", "--executor", "fast", "--threads", "1"]
        reply = pathlib.Path(folder) / "reply"
        script = 'exec "$@" 3>"$0"'  # replies come on descriptor 3
        done = subprocess.run(["sh", "-c", script, str(reply), *words], input=request, capture_output=True, text=True,
                              check=False, cwd=folder)
        if done.returncode != 0 or not counts.is_file():
            raise HostError(f"{case}: valgrind: {(done.stderr.strip() or str(done.returncode)).splitlines()[-1]}")
        verdict = json.loads(reply.read_text())["verdict"]
        if verdict != "passed":
            raise HostError(f"{case}: {verdict}")
        return kernel_instructions(counts.read_text(errors="replace"))


def kernel_instructions(text):
    """{kernel: instructions} of a cachegrind file; inlined code counts for the function that it is inlined into."""
    found, name = collections.Counter(), None
    for line in text.splitlines():
        if line.startswith("fn="):
            short = kernel_facts.short_name(line[3:])
            name = short if _KERNEL.search(short) else None
        elif name and line[:1].isdigit():
            found[name] += int(line.split()[1])
    return dict(found)
