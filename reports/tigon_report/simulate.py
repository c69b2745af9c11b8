# SPDX-License-Identifier: Apache-2.0
"""tigon simulate: a made-up history of runs, for tests of what reads histories. Nothing is measured.

The same seed gives the same bytes. Each run has one cold bench record per case and the ceilings of its session; every
30th also checks, memory and a training. truth.json says what was planted: `events` with the index of the first run
that shows them, and the case keys that stay flat. Every run says "simulated" in its tags and its device's name.
"""
import argparse
import datetime
import json
import math
import pathlib
import random

from . import records, simulated_cases
from .command import Parser, say
from .errors import UsageError
from .simulated_plan import DETAILS_EVERY, DRIVERS, plan

START = datetime.datetime(2025, 1, 1, 2, 0, 0)
SAMPLES = 23
SPREAD = 0.008  # of the samples within a run
NOT_TIMED = ('"basis":"cold","executor":"cuda","median_s":null,"q1_s":null,"q3_s":null,"min_s":null,"max_s":null,"n":0,'
             '"samples_s":[],"bandwidth_bytes_per_s":null,"flop_rate_per_s":null,"share_of_copy":null,'
             '"share_of_gemm":null,"sets":0,"verdict":"oom","reason":"simulated: out of memory",')
SPIKE_RATE, SESSION_SD = 0.0008, 0.004
CEILINGS = (("copy", 4.16e12, "bytes_per_s"), ("gemm_bf16", 7.17e14, "flop_per_s"), ("gemm_f16", 6.6e14, "flop_per_s"),
            ("gemm_f32", 5.0e13, "flop_per_s"), ("read", 4.47e12, "bytes_per_s"), ("triad", 4.15e12, "bytes_per_s"))


def _dump(value):
    return json.dumps(value, separators=(",", ":"))


class Writer:
    """The lines of one run."""

    def __init__(self, run_id, day):
        self.run_id, self.day, self.count, self.lines = run_id, day, 0, []
        self._second = ""

    def time(self):
        """A later time for every record, ten a second."""
        if self.count % 10 == 0:
            self._second = (self.day + datetime.timedelta(seconds=self.count // 10)).strftime("%Y-%m-%dT%H:%M:%S")
        self.count += 1
        return f"{self._second}.{(self.count - 1) % 10}00Z"

    def add(self, kind, fields):
        """`fields` is JSON text from behind the brace, ending with the closing brace."""
        head = _dump(records.head(kind, self.run_id, self.time()))
        self.lines.append(records.with_sum(f"{head[:-1]},{fields}") + "\n")

    def object(self, kind, fields):
        self.add(kind, _dump(fields)[1:])


class History:
    """The state that goes on from run to run."""

    def __init__(self, seed, count, runs):
        self.random = random.Random(seed)
        self.seed, self.runs = seed, runs
        self.cases = simulated_cases.cases(count)
        self.plan = plan(self.cases, runs, self.random)
        self.levels = [0.0] * len(self.cases)
        self.session = 0.0
        self.machines = [f"GPU-{self.random.getrandbits(128):032x}" for _ in range(len(self.plan.machines) + 1)]
        self.heads = [self._head(case) for case in self.cases]
        self.truth = []

    @staticmethod
    def _head(case):
        return (f'"case_id":"{case.case_id}","case_key":"{case.case_key}","op":"{case.op}","pass":"{case.pass_name}",'
                f'"impl":"{case.impl}","dtype":"{case.dtype}","axes":{_dump(dict(sorted(case.axes.items())))},'
                '"options":{},')

    def run(self, index, day):
        """(run id, text) of the run with this index."""
        r = self.random
        run_id = f"{day:%Y%m%dT%H%M%SZ}-{r.getrandbits(32):08x}"
        writer = Writer(run_id, day)
        self._header(writer, index, day)
        self.session = 0.8 * self.session + r.gauss(0, SESSION_SD * 0.6)  # clocks and heat: all kernels alike
        common = self.session + sum(size for run, size in self.plan.common if run <= index)
        ceilings = {}
        for name, value, unit in CEILINGS:
            ceilings[name] = value * math.exp(-common + r.gauss(0, 0.001))
            writer.object("ceiling", {"name": name, "value": ceilings[name], "unit": unit})
        passed = sum(self._bench(writer, index, i, common, ceilings) for i in range(len(self.cases)))
        failed = self._details(writer, index) if index % DETAILS_EVERY == 0 else 0
        writer.object("end", {"passed": passed, "failed": failed, "skipped": 0, "exit_code": 1 if failed else 0,
                              "seconds_s": writer.count / 10, "interrupted": False})
        return run_id, "".join(writer.lines)

    def _header(self, writer, index, day):
        driver = DRIVERS[sum(run <= index for run in self.plan.drivers)]
        machine = self.machines[sum(run <= index for run in self.plan.machines)]
        writer.object("run", {
            "tool": {"name": "tigon", "version": "0.1.0", "commit": f"{self.random.getrandbits(160):040x}",
                     "dirty": False},
            "command": ["./tigon", "simulate", "--seed", str(self.seed)], "seed": 42,
            "started": day.strftime("%Y-%m-%dT%H:%M:%S.000Z"),
            "host": {"name": "simulated", "os": "Ubuntu 24.04", "kernel": "Linux", "cpu": "simulated", "cores": 16,
                     "memory_bytes": 1 << 37},
            "device": {"kind": "cuda", "name": "simulated NVIDIA H200", "sm_count": 132, "l2_bytes": 62914560,
                       "memory_bytes": 150109880320, "uuid": machine, "compute_capability": "9.0", "driver": driver,
                       "runtime": "13.0"},
            "build": {"preset": "cuda", "compiler": "GNU 13.3.0", "flags": "-O3 -DNDEBUG", "type": "Release"},
            "libraries": {"eigen": "3.4.0"}, "environment": {},
            "tags": {"simulated": "true", "simulated_seed": str(self.seed)}})

    def _level(self, index, i):
        """Sum of what is planted in case i up to this run, as a logarithm."""
        level = sum(size for run, size in self.plan.levels.get(i, ()) if run <= index)
        if i in self.plan.drifts:
            first, last, size = self.plan.drifts[i]
            level += size * min(max(index - first, 0) / (last - first), 1.0)
        return level

    def _bench(self, writer, index, i, common, ceilings):
        """Writes one bench record; 1 when it passed."""
        case, r, noise = self.cases[i], self.random, self.plan.noise[i]
        if index in self.plan.gaps.get(i, ()):
            return 0
        if index in self.plan.ooms.get(i, ()):
            writer.add("bench", f'{self.heads[i]}{NOT_TIMED}"bytes_min_bytes":{case.bytes_min!r},"flop":{case.flop!r},'
                                f'"bound":"{case.bound}"}}')
            return 0
        shift = common + self._level(index, i) + r.gauss(0, noise)
        if r.random() < SPIKE_RATE:
            size = r.uniform(0.04, 0.3)
            shift += size
            self.plan.events.append({"kind": "spike", "run": index, "case_id": case.case_id, "case_key": case.case_key,
                                     "basis": "cold", "size": size})
        median = case.seconds * math.exp(shift)
        bandwidth, rate = case.bytes_min / median, case.flop / median
        gemm = ceilings["gemm_" + case.dtype]
        spread = [SPREAD * r.uniform(0.5, 1) for _ in range(2)]
        writer.add("bench", (
            f'{self.heads[i]}"basis":"cold","executor":"cuda","median_s":{median!r},'
            f'"q1_s":{median * (1 - spread[0])!r},"q3_s":{median * (1 + spread[1])!r},'
            f'"min_s":{median * (1 - 2 * SPREAD)!r},"max_s":{median * (1 + 5 * SPREAD)!r},"n":{SAMPLES},"samples_s":[],'
            f'"bytes_min_bytes":{case.bytes_min!r},"flop":{case.flop!r},"bandwidth_bytes_per_s":{bandwidth!r},'
            f'"flop_rate_per_s":{rate!r},"share_of_copy":{bandwidth / ceilings["copy"]!r},'
            f'"share_of_gemm":{rate / gemm!r},"bound":"{case.bound}","sets":4,"verdict":"passed","reason":""}}'))
        return 1

    def _details(self, writer, index):
        """Memory, checks and a training; how many checks failed."""
        failed = 0
        for i, case in enumerate(self.cases):
            extra = 0
            if self.plan.memory and self.plan.memory[0] == i and index >= self.plan.memory[1]:
                extra = self.plan.memory[2]
            size = case.workspace + extra
            writer.add("memory", f'{self.heads[i]}"tensors_bytes":{case.tensors},"workspace_bytes":{size},'
                                 f'"planned_bytes":{case.tensors // 2 + size},"arena_bytes":{size},"device_bytes":0,'
                                 '"host_bytes":null}')
            wrong = self.plan.wrong == (i, index)
            failed += wrong
            error = 1.7 if wrong else abs(self.random.gauss(0.3, 0.1))
            reason = "simulated: y[0,3] is 1.7 times its budget off" if wrong else ""
            writer.add("check", f'{self.heads[i]}"inputs":"normal","seed":42,"executor":"cuda",'
                                f'"verdict":"{"incorrect_numerical" if wrong else "passed"}","reason":"{reason}",'
                                f'"outputs":[{{"name":"y","error_over_budget":{error!r},'
                                f'"rms_over_budget":{error / 2!r},"bias":0.0}}],'
                                f'"seconds_s":0.01,"repro":"./tigon check --case \'{case.case_id}\'"}}')
        losses = [8.3 * math.exp(-step / 60) + 3 for step in range(100)]
        for impl, factor, peak in (("naive", 1.0, 1 << 28), ("fused", 1.4, 1 << 27)):
            writer.object("converge", {
                "config": "tiny", "impl": impl, "dtype": "bf16", "twin": 0, "steps": 100, "parameters": 1417856,
                "vocabulary": 4096, "tokens_per_step": 512, "data": "simulated", "loss": losses,
                "final_loss": losses[-1],
                "held_out_loss": losses[-1] + 0.1, "peak_bytes": peak, "planned_bytes": peak,
                "tokens_per_s": 40000.0 * factor, "seconds_s": 1.3 / factor, "seed": 42, "executor": "cuda"})
        writer.object("converge_verdict", {
            "config": "tiny", "dtype": "bf16", "verdict": "passed", "reason": "", "largest_difference": 0.001,
            "budget": 0.01, "step_of_largest": 3, "differences": [0.001] * 100, "budgets": [0.01] * 100,
            "memory_ratio": 2.0, "speed_ratio": 1.4})
        return failed


def _count(least, most=None):
    def parse(text):
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least or (most is not None and value > most):
            raise argparse.ArgumentTypeError(f"'{text}': a whole number from {least}" + (f" to {most}" if most else ""))
        return value
    return parse


def main(argv):
    parser = Parser("simulate", "Write a made-up history of runs and what was planted in it. Nothing is measured.",
                    ["--out /tmp/history --seed 7", "--out /tmp/short --seed 1 --days 60 --cases 40"])
    parser.add_argument("--out", required=True, help="folder to write; new or empty")
    parser.add_argument("--seed", type=_count(0), required=True, help="the same seed gives the same bytes")
    parser.add_argument("--days", type=_count(1, 20000), default=730, help="one run a day (default: 730)")
    parser.add_argument("--cases", type=_count(1, simulated_cases.MOST), default=400,
                        help=f"at most {simulated_cases.MOST} (default: 400)")
    arguments = parser.parse_args(argv)
    out = pathlib.Path(arguments.out)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"--out {out}: not an empty folder; name a new one")
    history, ids, total = History(arguments.seed, arguments.cases, arguments.days), [], 0
    for index in range(arguments.days):
        run_id, text = history.run(index, START + datetime.timedelta(days=index))
        (out / run_id).mkdir(parents=True)
        (out / run_id / "records.jsonl").write_text(text, encoding="utf-8")
        ids.append(run_id)
        total += text.count("\n")
    events = [{**event, "run_id": ids[event["run"]]} for event in sorted(history.plan.events, key=lambda e: e["run"])]
    changed = history.plan.changed()
    truth = {"simulated": True, "seed": arguments.seed, "days": arguments.days, "cases": arguments.cases, "runs": ids,
             "events": events, "flat": [case.case_key for i, case in enumerate(history.cases) if i not in changed]}
    (out / "truth.json").write_text(json.dumps(truth, indent=1) + "\n", encoding="utf-8")
    say("simulate", f"{total} simulated records of {len(ids)} runs in {out}; truth.json says what was planted")
