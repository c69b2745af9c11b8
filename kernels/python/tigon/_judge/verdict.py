# SPDX-License-Identifier: Apache-2.0
"""Calls of a candidate, each judged by the reference after it has answered, and what came of them."""
import copy
import dataclasses
import pathlib
import secrets
import time
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from .._testing.made import Made, copies
from .._testing.oracle import Oracle
from .._testing.report import Case
from .entry import Entry
from .flashinfer import Definition
from .errors import Errors
from .failures import BadProblem, Failed, Late, NotJudged, Raised
from .inputs import UNALIGNED, Call
from .opinfo import PREFIX, Operator
from .problem import Problem, PythonFile
from .process import Process
from .workload import workload


@dataclasses.dataclass(frozen=True)
class Settings:
    """How to judge: `seconds` are for each answer of the candidate; without a seed it is drawn after the candidate is loaded; `workload`: FILE#UUID
    of a Definition."""
    backward: bool = False
    dtype: str = ""
    device: str = "cpu"
    seed: int | None = None
    seconds: float = 60.0
    workload: str = ""


@dataclasses.dataclass(frozen=True)
class Verdict:
    """verdict: one of entry.EXIT; reason: one line; cases: each comparison; notes: what was not looked at; errors: the largest
    of finite results, None where there are none; calls: operations of torch that the candidate took, as its own process says;
    limits: which layouts of inputs it refuses; inputs: dtype and shape of each tensor of the first call."""
    verdict: str
    reason: str
    cases: tuple[Case, ...]
    notes: tuple[str, ...]
    seed: int | None
    seconds: float
    errors: dict[str, float | None]
    calls: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"record": "verdict", "schema": 1, **dataclasses.asdict(self)}


class _Judging:
    """One candidate and one reference."""

    def __init__(self, problem: Problem, process: Process, settings: Settings):
        self.problem, self.process, self.settings = problem, process, settings
        self.cases: list[Case] = []
        self.notes: list[str] = []
        self.limits: list[str] = []
        self.inputs: tuple[str, ...] = ()
        self.known: tuple[Any, Oracle] | None = None  # of the first call, whose inputs come again
        self.seed: int | None = None
        self.errors = Errors()

    def run(self) -> None:
        """All calls, until one is wrong. Failed, NotJudged: see there."""
        self.process.load()
        self.seed = secrets.randbits(31) if self.settings.seed is None else self.settings.seed
        init = self.problem.init_inputs() if self.problem.build else []
        reference = self.problem.reference(self.seed, init)
        if self.problem.build and isinstance(reference, nn.Module):
            self._build(reference, init)
        seen: set[str] = set()
        for call in self.problem.calls(self.seed):
            self.inputs = self.inputs or _described(call.inputs)
            self._judge(reference, call, seen)
            if any(case.is_failure for case in self.cases):
                return
        if not [case for case in self.cases if case.verdict == "passed"]:
            raise NotJudged("the reference could judge none of the inputs: " + "; ".join(self.notes)[:300])
        if len(seen) == 1:
            self.notes.append("the reference gave the same results for all inputs")

    def _build(self, reference: nn.Module, init: Any) -> None:
        file = self.process.folder / "run/state.pt"
        torch.save({"inputs": init, "state": {n: t.cpu() for n, t in reference.state_dict().items()}}, file)
        answer = self.process.ask(do="build", file=str(file), seed=self.seed, dtype=self.settings.dtype, device=self.settings.device)
        if not answer["state"]:
            raise Failed("its parameters and buffers have other shapes than the reference's, so they cannot be given the same values")

    def _judge(self, reference: Any, call: Call, seen: set[str]) -> None:
        kind, failed = call.kind, None
        try:
            upstream = Oracle.upstream_of(copy.deepcopy(reference), copies(call.inputs, False), self.seed or 0) if self.settings.backward else None
        except Exception as error:  # what the reference itself cannot do is no fault
            self._skipped(kind, error)
            return
        try:
            made, late = self._called(call, upstream)
        except Failed as error:
            failed = error
        try:  # only now is there something to be found
            oracle = self._oracle(reference, call)
        except Exception as error:
            self._skipped(kind, error)
            return
        if failed and call.relaid_of is not None and (isinstance(failed, Raised) or kind == UNALIGNED):  # these values were right as they were drawn
            does = "refuses" if isinstance(failed, Raised) else "breaks on"
            self.limits.append(f"{does} {kind}: {failed}")
            self.cases.append(Case(kind, "skipped", f"it {does} them: {failed}"))
            return
        if failed:
            raise type(failed)(f"{kind}: {failed}") from failed
        seen.add(str([v.float().sum().item() if isinstance(v, torch.Tensor) else v for v in oracle.values.values()]))
        self.errors.add(made, oracle)
        self.cases += [Case(f"{kind}: {case.name}", case.verdict, case.reason) for case in oracle.cases(made)]
        self.cases += [Case(f"{kind}: {name}", "late", "it changed after the call had returned") for name in late]

    def _called(self, call: Call, upstream: Any) -> tuple[Made, list[str]]:
        destinations = self.problem.outputs(call.inputs) if self.process.submission.is_destination else None
        return self.process.call(call.inputs, upstream, fresh=call.fresh, device=self.settings.device, destinations=destinations)

    def _oracle(self, reference: Any, call: Call) -> Oracle:
        """What is right, which other addresses do not change, and another layout by rounding alone."""
        if self.known and self.known[0] is call.inputs:
            return self.known[1]
        if self.known and self.known[0] is call.relaid_of:
            return self.known[1].of_layout(copy.deepcopy(reference), call.inputs)
        oracle = Oracle(copy.deepcopy(reference), call.inputs, backward=self.settings.backward, seed=self.seed or 0)
        self.known = self.known or (call.inputs, oracle)
        return oracle

    def _skipped(self, kind: str, error: Exception) -> None:
        reason = (str(error).splitlines() or [""])[0][:200]
        self.cases.append(Case(kind, "skipped", reason))
        self.notes.append(f"{kind}: {reason}")


def judge(candidate: pathlib.Path, reference: pathlib.Path, settings: Settings = Settings()) -> Verdict:
    """Judges a candidate's file by a reference's file. It raises nothing for what they contain: the verdict says it."""
    begin, verdict, reason = time.monotonic(), "right", ""
    judging: _Judging | None = None
    try:
        problem = _problem(reference, settings)
        if not candidate.is_file():
            raise BadProblem(f"{candidate} is no file")
        with Process(problem.submission(candidate), settings.seconds) as process:
            judging = _Judging(problem, process, settings)
            judging.run()
        wrong = [case for case in judging.cases if case.is_failure]
        if wrong:
            verdict, reason = "wrong", f"{wrong[0].name}: {wrong[0].reason}"
    except Failed as error:
        verdict, reason = "wrong", str(error)
    except NotJudged as error:
        verdict, reason = "too slow" if isinstance(error, Late) else "not judged", str(error)
    except BadProblem as error:
        verdict, reason = "bad problem", str(error)
    return Verdict(verdict, reason, tuple(judging.cases) if judging else (), tuple(judging.notes) if judging else (),
                   judging.seed if judging else None, time.monotonic() - begin, judging.errors.found if judging else Errors().found,
                   *((tuple(judging.process.calls or ()), tuple(judging.limits), judging.inputs) if judging else ()))


def _described(inputs: Any) -> tuple[str, ...]:
    leaves = [leaf for leaf in pytree.tree_leaves(inputs) if isinstance(leaf, torch.Tensor)]
    return tuple(f"{str(leaf.dtype).removeprefix('torch.')} {list(leaf.shape)}" for leaf in leaves)


def _problem(reference: pathlib.Path, settings: Settings) -> Problem:
    """The reference in its format. BadProblem: it is none."""
    dtype = getattr(torch, settings.dtype) if settings.dtype else None
    if reference.name.startswith(PREFIX) and not reference.exists():
        return Operator(reference.name, dtype, settings.device)
    if reference.suffix != ".json":
        return PythonFile(reference, dtype, settings.device)
    if settings.backward or settings.dtype or not settings.workload:
        raise BadProblem("a Definition is judged by a workload, without gradients and in its own dtypes")
    return Definition(reference, *workload(settings.workload), settings.device)


def judged(entry: Entry) -> Verdict:
    """Judges a line of a batch, or the words of a command."""
    options = entry.options
    place = str(entry.folder / options["workload"]) if options["workload"] else ""
    settings = Settings(options["backward"], options["dtype"], options["device"], options["seed"], options["timeout"], place)
    return judge(*entry.files(), settings)
