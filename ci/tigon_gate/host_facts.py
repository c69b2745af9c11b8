# SPDX-License-Identifier: Apache-2.0
"""What the host executor tells of a program's kernels: counted traffic, and instructions counted by valgrind."""
import collections
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile

from tigon_trees import kernel_facts

from tigon_report import records
from tigon_report.errors import DataError

COUNTERS = ("bytes_loaded_bytes", "bytes_stored_bytes", "requests", "sectors", "bank_conflicts", "barriers", "atomics")
USAGE = 2  # the exit code of a program that is not started as it wants
_KERNEL = re.compile(r"(^|::)\w*kernel\w*(<|$)")


class HostError(Exception):
    """A program that does not trace; one line."""


def traces(program, cases=()):
    """{case id: {kernel: counters}} from `tigon check --trace` of a host build."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "records.jsonl"
        words = [str(pathlib.Path(program).resolve()), "check", "--trace", "--json", str(file)]
        for case in cases:
            words += ["--case", case]
        done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=folder)
        try:
            lines = [line.record for line in records.read_file(file)] if file.is_file() else []
        except DataError as error:
            raise HostError(f"{program} check --trace: {error}") from error
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
    if not shutil.which("apt-get") or os.environ.get("TIGON_INSTALL") == "no":
        return False
    print("tigon: installing valgrind with apt", file=sys.stderr)
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
        # "trace" is for a base from before "what".
        request = json.dumps({"id": case, "save": "", "what": "check", "trace": False}) + "\n"
        words = ["valgrind", "-q", "--tool=cachegrind", "--cache-sim=no", f"--cachegrind-out-file={counts}",
                 str(pathlib.Path(program).resolve()), "child", "--executor", "fast", "--threads", "1"]
        done, reply = _as_child(words, request, folder)
        if done.returncode != 0 or not counts.is_file():
            raise HostError(f"{case}: valgrind: {(done.stderr.strip() or str(done.returncode)).splitlines()[-1]}")
        verdict = json.loads(reply)["verdict"]
        if verdict != "passed":
            raise HostError(f"{case}: {verdict}")
        return kernel_instructions(counts.read_text(errors="replace"))


def _as_child(words, request, folder):
    """(finished process, its reply) of a program that is started as tigon starts its workers: with a socket on descriptor 3."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(request.encode())
        ours.shutdown(socket.SHUT_WR)
        done = _run(words, theirs, theirs.fileno(), folder)
        theirs.close()
        if done.returncode != USAGE:
            return done, ours.makefile(encoding="utf-8").readline()
    return _as_child_of_old(words, request, folder)


def _as_child_of_old(words, request, folder):
    """The same for a base from before workers: requests come on a socket, replies go to a pipe on descriptor 3."""
    ours, theirs = socket.socketpair()
    reading, writing = os.pipe()
    with ours, theirs, os.fdopen(reading, encoding="utf-8") as reply, os.fdopen(writing, "wb") as end:
        ours.sendall(request.encode())
        ours.shutdown(socket.SHUT_WR)
        done = _run(words, theirs, writing, folder)
        end.close()
        return done, reply.read()


def _run(words, stdin, third, folder):
    move = "import os, sys; os.dup2(int(sys.argv[1]), 3); os.execvp(sys.argv[2], sys.argv[2:])"
    return subprocess.run([sys.executable, "-c", move, str(third), *words], stdin=stdin, pass_fds=(third,),
                          capture_output=True, text=True, check=False, cwd=folder)


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
