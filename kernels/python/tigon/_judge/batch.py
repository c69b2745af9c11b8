# SPDX-License-Identifier: Apache-2.0
"""Many candidates, some at a time, each verdict kept as soon as it is there. Needs no torch itself."""
import contextlib
import json
import os
import pathlib
import queue
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Sequence
from typing import Any

from .entry import Entry

_PACKAGES = pathlib.Path(__file__).resolve().parents[2]
_ALL_OF_IT = 10.0  # times the seconds of one answer, for a verdict with all that the reference does
_START = 60.0  # seconds in which the process loads torch
_SECONDS_TO_END = 5.0  # its candidate with it


class _Server:
    """A process that judges (server.py), started when it is needed. A thread uses it, and another may kill it."""

    def __init__(self, threads: int):
        self._process: subprocess.Popen[bytes] | None = None
        self._threads, self._ask, self._answers = threads, -1, -1
        self._lock, self._killed = threading.Lock(), False

    def _started(self) -> subprocess.Popen[bytes] | None:
        """The process, which may have been there; None when it was killed."""
        with self._lock:
            if self._process or self._killed:
                return self._process
            asked, self._ask = os.pipe()
            self._answers, answer = os.pipe()
            path = os.pathsep.join(filter(None, (str(_PACKAGES), os.environ.get("PYTHONPATH"))))
            self._process = subprocess.Popen(
                [sys.executable, "-W", "ignore", "-m", "tigon._judge.server", str(asked), str(answer)], pass_fds=(asked, answer),
                env={"OMP_NUM_THREADS": str(self._threads), **os.environ, "PYTHONPATH": path}, stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
            os.close(asked)
            os.close(answer)
            return self._process

    def judge(self, entry: Entry) -> dict[str, Any]:
        """The verdict on an entry, whatever happens to the process."""
        begin, most = time.monotonic(), _ALL_OF_IT * entry.options["timeout"] + (_START if self._process is None else 0)
        process = self._started()
        if process is None:
            return _without("not judged", "the batch was ended", begin)
        request = {"candidate": entry.candidate, "reference": entry.reference, "options": entry.options, "folder": str(entry.folder)}
        received = b""
        with contextlib.suppress(BrokenPipeError):  # the read below finds that it has ended
            os.write(self._ask, json.dumps(request).encode() + b"\n")
        while not received.endswith(b"\n"):
            if not select.select([self._answers], [], [], max(0.0, begin + most - time.monotonic()))[0]:
                self.end()
                return _without("too slow", f"no verdict in {most:g} s: the reference, or all together", begin)
            chunk = os.read(self._answers, 1 << 16)
            if not chunk:
                code = process.wait()
                self.end()
                return _without("not judged", f"the judge's own process ended with exit code {code}: the reference, or no memory", begin)
            received += chunk
        verdict: dict[str, Any] = json.loads(received)
        return verdict

    def end(self) -> None:
        """Ends the process and its candidate; the next entry starts another."""
        with self._lock:
            if self._process:
                _end(self._process)
                os.close(self._ask)
                os.close(self._answers)
            self._process = None

    def kill(self) -> None:
        """Ends it, and what judge() waits for comes; there is no next one."""
        with self._lock:
            self._killed = True
            if self._process:
                _end(self._process)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)  # it ends its candidate
    try:
        process.wait(_SECONDS_TO_END)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _without(verdict: str, reason: str, begin: float) -> dict[str, Any]:
    """The verdict where the judge itself gave none."""
    return {"record": "verdict", "schema": 1, "verdict": verdict, "reason": reason, "cases": [], "notes": [], "calls": [], "limits": [], "inputs": [],
            "seed": None, "seconds": time.monotonic() - begin, "errors": {"max_absolute_error": None, "max_relative_error": None}}


def judge_all(entries: Sequence[Entry], jobs: int) -> Generator[tuple[Entry, dict[str, Any]], None, None]:
    """Each entry with its verdict's record, in the order in which they are known. Closing it ends what runs."""
    left: queue.SimpleQueue[Entry] = queue.SimpleQueue()
    done: queue.SimpleQueue[tuple[Entry, dict[str, Any]]] = queue.SimpleQueue()
    for entry in entries:
        left.put(entry)
    jobs = max(1, min(jobs, len(entries)))
    servers = [_Server(max(1, len(os.sched_getaffinity(0)) // jobs)) for _ in range(jobs)]
    ended = threading.Event()
    threads = [threading.Thread(target=_work, args=(server, left, done, ended), daemon=True) for server in servers]
    for thread in threads:
        thread.start()
    try:
        for _ in entries:
            yield done.get()
    finally:
        ended.set()
        for server in servers:
            server.kill()
        for thread in threads:
            thread.join()


def _work(server: _Server, left: "queue.SimpleQueue[Entry]", done: "queue.SimpleQueue[tuple[Entry, dict[str, Any]]]", ended: threading.Event) -> None:
    with contextlib.suppress(queue.Empty):
        while not ended.is_set():
            entry = left.get_nowait()
            record = entry.record(server.judge(entry))
            if not ended.is_set():  # else it may be what the end did to it
                done.put((entry, record))
    server.end()
