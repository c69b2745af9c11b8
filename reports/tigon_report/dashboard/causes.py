# SPDX-License-Identifier: Apache-2.0
"""Why a series moved: code, driver, machine or noise, from what changed between runs and which series moved with it.

A machine or a driver moves many series at once and is written in the run's environment; code moves its own op; a step
that comes back within a few points, or that has neither a new commit nor a new environment, is noise.
"""

import collections
import dataclasses

NEAR = 2  # a change point is placed within two points of the step
TOGETHER = 0.3  # share of a device's series that must move at once for a cause outside the code
FEWEST_TOGETHER = 4
BRIEF = 6  # a step that comes back within so many points was noise


@dataclasses.dataclass
class Label:
    """`cause` in one word, `text` with what exactly changed, and the two runs that enclose the step."""

    cause: str
    text: str
    before: object
    after: object


def environment_changes(before, after):
    """{machine|driver|build: 'name old -> new, ...'} of what differs between two runs."""
    old, new = before.environment(), after.environment()
    found = {}
    for kind, values in new.items():
        different = [
            f"{name} {old[kind][name]} → {value}" for name, value in values.items() if old[kind][name] != value
        ]
        if different:
            found[kind] = ", ".join(different)
    return found


def _around(series, index):
    """Neighbouring runs within NEAR points of the step, the pair that encloses it first."""
    for distance in range(NEAR + 1):
        for place in sorted({index - distance, index + distance}):
            if 0 < place < len(series.runs):
                yield series.runs[place - 1], series.runs[place]


def _near(series, index):
    """{kind: (exactly at the step, what changed)} of environment changes around the step, the nearest of each kind."""
    found = {}
    for number, pair in enumerate(_around(series, index)):
        for kind, text in environment_changes(*pair).items():
            found.setdefault(kind, (number == 0, text))
    return found


def _joint(every):
    """{device: {run_id: share of the device's series with a change point within NEAR runs, by sign}}."""
    shares = {}
    for device in {series.cell.device for series in every}:
        mine = [series for series in every if series.cell.device == device]
        counts = collections.Counter()
        for series in mine:
            seen = set()
            for change in series.changes:
                for place in range(max(0, change.index - NEAR), min(len(series.runs), change.index + NEAR + 1)):
                    seen.add((series.runs[place].id, change.change > 0))
            counts.update(seen)
        shares[device] = {key: (count / len(mine), count) for key, count in counts.items()}
    return shares


def _comes_back(series, position):
    """Whether the step at `position` among the change points is undone within BRIEF points."""
    changes = series.changes
    for first, second in ((position, position + 1), (position - 1, position)):
        if 0 <= first and second < len(changes) and changes[second].index - changes[first].index <= BRIEF:
            if abs((1 + changes[first].change) * (1 + changes[second].change) - 1) < abs(changes[position].change) / 2:
                return True
    return False


def _label(series, position, joint):
    change = series.changes[position]
    before, after = series.runs[change.index - 1], series.runs[change.index]
    share, count = joint.get((after.id, change.change > 0), (0.0, 0))
    together = share >= TOGETHER and count >= FEWEST_TOGETHER
    near = _near(series, change.index)
    moved = f"; {100 * share:.0f} % of the cases moved with it" if together else ""
    for kind in ("machine", "driver", "build"):
        if kind in near and (together or near[kind][0]):
            cause = "driver" if kind == "build" else kind
            return Label(cause, ("toolchain: " if kind == "build" else "") + near[kind][1] + moved, before, after)
    if _comes_back(series, position):
        return Label("noise", f"came back within {BRIEF} points", before, after)
    if together:
        return Label(
            "machine", f"{100 * share:.0f} % of the cases moved at once, nothing recorded says why", before, after
        )
    for low, high in _around(series, change.index):
        if low.commit != high.commit or high.dirty:
            return Label(
                "code", f"{low.commit[:12]}..{high.commit[:12]}" + (" (modified)" if high.dirty else ""), low, high
            )
    return Label("noise", "same commit, same machine, same driver", before, after)


def label(every):
    """Sets `labels` of every series, one per change point."""
    joint = _joint(every)
    for series in every:
        series.labels = [_label(series, position, joint[series.cell.device]) for position in range(len(series.changes))]
