# SPDX-License-Identifier: Apache-2.0
"""The candidate's process from outside: it has an empty folder of its own with what was handed in, and a time limit.

It is no worker of the harness (harness/worker): there a built program asks, and this judge runs where nothing is built.
"""
import json
import os
import pathlib
import select
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any

import torch
from torch import Tensor

from .._testing.made import Fact, Made
from .failures import Failed, Late, NotJudged, Raised
from .submission import Submission

_HERE = pathlib.Path(__file__).resolve().parent
_MADE = _HERE.parent / "_testing/made.py"
# What malloc gives is full of bytes 0x7f: nobody finds zeros or old results in it. Small blocks, too.
_POISONED = {"MALLOC_PERTURB_": "128", "GLIBC_TUNABLES": "glibc.malloc.perturb=128:glibc.malloc.tcache_count=0"}


class Process:
    """A process with a candidate."""

    def __init__(self, submission: Submission, seconds: float):
        """`seconds`: for each answer."""
        self.submission, self.seconds = submission, seconds
        self.calls: list[str] | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="tigon-")
        self.folder = pathlib.Path(self._folder.name)
        (self.folder / "run").mkdir()
        for path, content in submission.files.items():
            (self.folder / "run" / path).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / "run" / path).write_bytes(content)
        asked, self._ask = os.pipe()
        self._answers, answer = os.pipe()
        self._said = open(self.folder / "said", "wb")
        environment = {n: v for n, v in os.environ.items() if not n.startswith("TIGON_")} | _POISONED
        words = [sys.executable, "-P", "-W", "ignore", str(_HERE / "worker.py"), str(_MADE), str(asked), str(answer)]
        self.process = subprocess.Popen(words, pass_fds=(asked, answer), cwd=self.folder / "run", env=environment, stdin=subprocess.DEVNULL,
                                        stdout=self._said, stderr=subprocess.STDOUT, start_new_session=True)
        os.close(asked)
        os.close(answer)
        self._received = b""

    def __enter__(self) -> "Process":
        return self

    def __exit__(self, *_: Any) -> None:
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        os.close(self._ask)
        os.close(self._answers)
        self._said.close()
        self._folder.cleanup()

    def ask(self, **request: Any) -> dict[str, Any]:
        """An answer. Failed: there is none. Raised: the candidate raised. NotJudged: too late, or it needs what is not installed."""
        try:
            os.write(self._ask, json.dumps(request).encode() + b"\n")
        except BrokenPipeError:
            raise Failed(self._end()) from None
        try:
            answer: dict[str, Any] = json.loads(self._line())
        except (json.JSONDecodeError, UnicodeDecodeError):
            raise Failed("it wrote into the judge's pipe") from None
        if "missing" in answer:
            raise NotJudged(f"it needs what is not here: {answer['missing']}")
        if not answer.get("ok"):
            raise (Failed if answer.get("broken") else Raised)(f"it raised {answer.get('error')}")
        return answer

    def _line(self) -> bytes:
        ends = time.monotonic() + self.seconds
        while b"\n" not in self._received:
            if not select.select([self._answers], [], [], max(0.0, ends - time.monotonic()))[0]:
                raise Late(f"no answer in {self.seconds:g} s")
            chunk = os.read(self._answers, 1 << 16)
            if not chunk:
                raise Failed(self._end())
            self._received += chunk
        line, self._received = self._received.split(b"\n", 1)
        return line

    def _end(self) -> str:
        code = self.process.wait()
        return f"its process ended by {signal.Signals(-code).name}" if code < 0 else f"its process ended with exit code {code}"

    def load(self) -> None:
        """Loads the candidate. Failed, Raised, NotJudged: see ask()."""
        given = self.submission
        folder = self.folder / "run"
        self.ask(do="load", candidate=str(folder / given.entry), names=given.names, outputs=given.outputs,
                 keywords=given.has_keywords, folder=[str(folder)] if len(given.files) > 1 else [])

    def call(self, inputs: Any, upstream: list[Tensor] | None, *, fresh: bool, device: str, destinations: Any = None) -> tuple[Made, list[str]]:
        """Calls the candidate: what it made, and which results changed after it had returned. `destinations`: shape and dtype of each.
        The first call leaves in `calls` which operations of torch it took, as its own process says."""
        given, out = self.folder / "run/given.pt", self.folder / "run/made.pt"
        out.unlink(missing_ok=True)
        torch.save({"inputs": inputs, "upstream": upstream}, given)
        answer = self.ask(do="call", file=str(given), out=str(out), fresh=fresh, device=device, backward=upstream is not None,
                          destinations=destinations, watch=self.calls is None)
        try:
            made = torch.load(out, weights_only=True)
            facts = {name: Fact(**{**fact, "shape": tuple(fact["shape"]), "inputs": tuple(fact["inputs"])}) for name, fact in made["facts"].items()}
            found, late = Made(dict(made["values"]), facts), [str(name) for name in answer.get("late", [])]
            self.calls = [str(name) for name in answer.get("calls", [])] if self.calls is None else self.calls
        except Exception as error:
            raise Failed(f"its results cannot be read: {type(error).__name__}") from error
        _hold(found)
        return found, late


def _hold(made: Made) -> None:
    """Holds what is said of results in the candidate's process against the results. Failed: it is not so."""
    for name, fact in made.facts.items():
        value = made.values.get(name)
        if isinstance(value, Tensor) and (str(value.dtype), tuple(value.shape)) != (fact.dtype, fact.shape):
            raise Failed(f"it says of its {name} that it is {fact.dtype} {list(fact.shape)}, and it is {value.dtype} {list(value.shape)}")
