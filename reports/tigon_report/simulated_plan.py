# SPDX-License-Identifier: Apache-2.0
"""What a simulated history plants: steps, drifts, spikes, changes of driver, machine and baseline, gaps, failures."""
import dataclasses

DRIVERS = ("12.8", "12.9", "13.0", "13.1", "13.2")
STEP_SIZES = (0.02, 0.02, 0.025, 0.03, 0.04, 0.05, 0.08, -0.02, -0.03, -0.06)
MARGIN = 20  # runs before and behind a planted change, so that it can be seen
DETAILS_EVERY = 30  # runs between two that also record checks, memory and a training


@dataclasses.dataclass
class Plan:
    """Per case index: levels[case] = [(run, log size)], drifts[case] = (first, last, log size), ..."""

    noise: list
    levels: dict = dataclasses.field(default_factory=dict)
    drifts: dict = dataclasses.field(default_factory=dict)
    common: list = dataclasses.field(default_factory=list)  # (run, log factor) of everything, the ceilings too
    drivers: list = dataclasses.field(default_factory=list)  # runs at which the driver changes
    machines: list = dataclasses.field(default_factory=list)
    gaps: dict = dataclasses.field(default_factory=dict)  # case -> runs without a record
    ooms: dict = dataclasses.field(default_factory=dict)  # case -> runs that run out of memory
    wrong: tuple = None  # (case, run) of a check that fails
    memory: tuple = None  # (case, run, bytes)
    events: list = dataclasses.field(default_factory=list)  # the truth

    def changed(self):
        return set(self.levels) | set(self.drifts)


def plan(cases, runs, random):
    """A Plan for `runs` runs of `cases`, drawn from `random`. Short histories hold fewer changes."""
    noise = [random.uniform(0.002, 0.005) + 2e-8 / case.seconds for case in cases]
    result = Plan(noise)
    room = runs - 2 * MARGIN
    if room < 1:
        return result
    fused = [i for i, case in enumerate(cases) if case.impl == "fused"]
    _plant_kernel_steps(result, cases, fused, room, random)
    _plant_steps(result, cases, [i for i in fused if i not in result.levels], room, random)
    _plant_drifts(result, cases, fused, room, random)
    _plant_environment(result, cases, runs, room, random)
    _plant_failures(result, cases, fused, runs, room, random)
    return result


def _event(result, kind, run, **fields):
    result.events.append({"kind": kind, "run": run, **fields})


def _step(result, cases, index, run, size, kind="step", **fields):
    result.levels.setdefault(index, []).append((run, size))
    _event(result, kind, run, case_id=cases[index].case_id, case_key=cases[index].case_key, basis="cold", size=size,
           noise=result.noise[index], **fields)


def _plant_kernel_steps(result, cases, fused, room, random):
    """A commit that changes one kernel moves all of its shapes."""
    groups = sorted({(cases[i].op, cases[i].pass_name, cases[i].dtype) for i in fused})
    for group, size in zip(random.sample(groups, min(len(groups), 3 if room > 300 else 1)), (0.05, -0.08, 0.06)):
        run = MARGIN + random.randrange(room)
        for i in fused:
            if (cases[i].op, cases[i].pass_name, cases[i].dtype) == group:
                _step(result, cases, i, run, size, scope="/".join(group))


def _plant_steps(result, cases, free, room, random):
    for index in random.sample(free, min(len(free), max(1, min(len(cases) // 16, room // 4)))):
        size = random.choice(STEP_SIZES)
        least = 4 * result.noise[index]  # what no method could see is not planted
        size = (1 if size > 0 else -1) * max(abs(size), least)
        _step(result, cases, index, MARGIN + random.randrange(room), size, scope="case")


def _plant_drifts(result, cases, fused, room, random):
    free = [i for i in fused if i not in result.levels]
    for index in random.sample(free, min(len(free), 4 if room > 200 else 0)):
        length = random.randint(90, min(180, room))
        first = MARGIN + random.randrange(room - length + 1)
        size = random.choice((0.04, 0.05, -0.04))
        result.drifts[index] = (first, first + length, size)
        _event(result, "drift", first, last_run=first + length, case_id=cases[index].case_id,
               case_key=cases[index].case_key, basis="cold", size=size)


def _plant_environment(result, cases, runs, room, random):
    for number in range(4 if room > 300 else 1):
        run = MARGIN + (number * room) // 4 + random.randrange(max(1, room // 5))
        factor = random.choice((0.015, -0.01, 0.01))
        result.drivers.append(run)
        result.common.append((run, factor))
        _event(result, "driver", run, driver=DRIVERS[number + 1], size=factor)
    run = runs * 3 // 5
    result.machines.append(run)
    result.common.append((run, 0.03))
    _event(result, "machine", run, size=0.03)
    op, at, size = "rope", result.drivers[-1], -0.1
    for index, case in enumerate(cases):  # a library of the naive baseline is updated with the driver
        if case.op == op and case.impl == "naive":
            _step(result, cases, index, at, size, kind="baseline", scope=f"{op}/naive")


def _plant_failures(result, cases, fused, runs, room, random):
    for index in random.sample(fused, min(len(fused), 2)):
        first = MARGIN + random.randrange(room)
        result.gaps[index] = range(first, first + 8)
        _event(result, "missing", first, last_run=first + 7, case_id=cases[index].case_id)
    naive = [i for i, case in enumerate(cases) if case.impl == "naive"]
    index, first = (random.choice(naive) if naive else 0), MARGIN + random.randrange(room)
    result.ooms[index] = range(first, first + 5)
    _event(result, "oom", first, last_run=first + 4, case_id=cases[index].case_id)
    details = [run for run in range(0, runs, DETAILS_EVERY) if run >= MARGIN]
    if details:
        index, run = random.choice(fused), random.choice(details)
        result.wrong = (index, run)
        _event(result, "wrong", run, case_id=cases[index].case_id)
        index, run = random.choice(fused), random.choice(details)
        result.memory = (index, run, 1 << 20)
        _event(result, "memory", run, case_id=cases[index].case_id, bytes=1 << 20)
