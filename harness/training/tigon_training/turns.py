# SPDX-License-Identifier: Apache-2.0
"""All variants in turns, each in its own process, of which only one holds memory of the GPU at a time."""
import contextlib
import dataclasses
import json
import math
import os
import subprocess
import sys
import threading


LIMIT_S = 1800  # for an answer: a step may compile first
CLOSE_S = 60  # for the end of a process that was told to
WORKER = "tigon_training.worker"


class Process:
    """A worker's process; one that does not answer in time is ended."""

    def __init__(self, variant, seed, limit_s=LIMIT_S, place=None):
        self.variant, self._limit_s = variant, limit_s
        self._is_late = False
        # Segments that grow: else what is reserved says more of the allocator than of the variant.
        environment = {"PYTORCH_ALLOC_CONF": "expandable_segments:True", **os.environ}
        command = [sys.executable, "-m", WORKER, variant, str(seed), *([str(place)] if place else [])]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        self.facts = None

    def hello(self):
        """What it runs on, when it is ready. ValueError: it ended before."""
        self.facts = self.facts or self._read()
        return self.facts

    def turn(self, request):
        """Its answer, or that it ended, or was ended."""
        try:
            self.hello()
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            return self._read()
        except (OSError, ValueError):
            code = self._process.wait()
            if self._is_late:
                return {"verdict": "timeout", "reason": f"no answer within {self._limit_s} s; its process was ended"}
            return {"verdict": "crashed", "reason": f"its process ended with code {code}"}

    def _read(self):
        timer = threading.Timer(self._limit_s, self._end_late)
        timer.start()
        try:
            return json.loads(self._process.stdout.readline())
        finally:
            timer.cancel()

    def _end_late(self):
        self._is_late = True
        self.end()

    def devices(self):
        """The name of the device that it runs on, or its kind."""
        device = self.hello()["device"]
        return [device.get("name", device["kind"])]

    def end(self):
        """Ends it at once, whatever it does."""
        self._process.kill()

    def close(self):
        """Has it end."""
        with contextlib.suppress(OSError):  # what it was to read when it ended
            self._process.stdin.close()
        self._process.stdout.close()
        try:
            self._process.wait(CLOSE_S)
        except subprocess.TimeoutExpired:
            self.end()
            self._process.wait()


def in_turns(processes, cases, rounds, request, profile_of=lambda case, variant: None):
    """Yields (case, variant, round, answer). In each round another variant is first; one that fails is not asked again for that case."""
    for case in cases:
        failed = set()
        theirs = [process for process in processes if not case.only or process.variant in case.only]
        for number in range(rounds):
            first = number % len(theirs)
            for process in theirs[first:] + theirs[:first]:
                if process.variant in failed:
                    continue
                profile = profile_of(case, process.variant) if number == rounds - 1 else None
                answer = _ask(process, {**request, "case": str(case), "round": number, "profile": profile})
                if answer["verdict"] != "passed":
                    failed.add(process.variant)
                yield case, process.variant, number, answer


def longest(processes, cases, limit, request):
    """Yields as in_turns does, of sequences that are twice as long each time, up to the limit, until no variant is left that trains them."""
    for case in cases:
        alive = [process for process in processes if not case.only or process.variant in case.only]
        while alive and case.length <= limit:
            for process in list(alive):
                answer = _ask(process, {**request, "case": str(case), "round": 0})
                if answer["verdict"] != "passed":
                    alive.remove(process)
                yield case, process.variant, 0, answer
            case = dataclasses.replace(case, length=2 * case.length)


def _ask(process, request):
    answer = process.turn(request)
    if answer["verdict"] == "passed" and not all(map(math.isfinite, answer["loss"])):
        return {**answer, "verdict": "nonfinite", "reason": "a loss is not finite"}
    return answer
