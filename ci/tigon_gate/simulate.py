# SPDX-License-Identifier: Apache-2.0
"""Simulated programs: the noise model that the gate's error rates are shown under, and a runner that obeys it.

log time = the cell's own + an offset per process and cell (address layout, L2 slices) + an offset per process for all
cells (clocks) + a drift over the session + noise of the median of the samples; some processes are hit by a neighbour.
"""
import dataclasses
import time

import numpy

from . import pairs


@dataclasses.dataclass(frozen=True)
class Noise:
    """Standard deviations of log times; `hit_rate` of the processes are slower by an exponential of mean `hit`."""

    process: float = 0.003  # per process and cell
    shared: float = 0.002  # per process, of all cells together
    drift: float = 0.002  # random walk per process, of all cells together
    sample: float = 0.002  # of a median
    hit_rate: float = 0.02
    hit: float = 0.02


def processes(random, noise, suites, count, cells):
    """Log times of `count` processes in a row, shape (suites, count, cells)."""
    own = random.normal(0, noise.process, (suites, count, cells)) + random.normal(0, noise.sample, (suites, count, cells))
    shared = random.normal(0, noise.shared, (suites, count, 1))
    drift = numpy.cumsum(random.normal(0, noise.drift, (suites, count, 1)), axis=1)
    hit = (random.random((suites, count, 1)) < noise.hit_rate) * random.exponential(noise.hit, (suites, count, 1))
    return own + shared + drift + hit


def log_ratios(random, noise, suites, pairs, cells, shifts=0.0):
    """Log ratios of pairs run as AB, BA, AB, ...: shape (suites, cells, pairs); `shifts` are log changes per cell."""
    times = processes(random, noise, suites, 2 * pairs, cells)
    first, second = times[:, 0::2], times[:, 1::2]
    sign = numpy.where(numpy.arange(pairs) % 2 == 0, 1.0, -1.0)[:, None]
    return (sign * (second - first) + shifts).transpose(0, 2, 1)


class Runner:
    """Runs simulated processes of a base and a head program, like pairs.ProgramRunner runs real ones.

    base_s   seconds of each cell           slow     relative change of cells in the head program
    failing  (side, cell) -> why it fails   seconds  that a process really takes
    """

    def __init__(self, base_s, slow=None, noise=Noise(), seed=0, failing=None, seconds=0.0):
        self.base_s, self.slow, self.noise = dict(base_s), slow or {}, noise
        self.failing, self.seconds = failing or {}, seconds
        self.random = numpy.random.default_rng(seed)
        self.level = 0.0
        self.headers = {"base": {"device": {"kind": "host", "name": "simulated programs (test)"}}}

    def measure(self, side, cells):
        """{case id: median seconds} of one process of `side` ("base" or "head")."""
        time.sleep(self.seconds)
        noise = dataclasses.replace(self.noise, drift=0.0)
        self.level += self.random.normal(0, self.noise.drift)
        times = processes(self.random, noise, 1, 1, len(cells))[0, 0] + self.level
        result = {}
        for cell, log_time in zip(cells, times):
            if (side, cell) in self.failing:
                raise pairs.RunnerError(f"{side}: {cell}: {self.failing[side, cell]}")
            change = self.slow.get(cell, 0.0) if side == "head" else 0.0
            result[cell] = self.base_s[cell] * (1 + change) * float(numpy.exp(log_time))
        return result
