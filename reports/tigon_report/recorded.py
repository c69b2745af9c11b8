# SPDX-License-Identifier: Apache-2.0
"""Runs of other machines that a report shows beside its own, each named as recorded."""
import dataclasses
import itertools
import pathlib

from . import load


@dataclasses.dataclass
class Recorded:
    folder: pathlib.Path = pathlib.Path()
    runs: list = dataclasses.field(default_factory=list)  # whole
    benches: list = dataclasses.field(default_factory=list)
    trainings: list = dataclasses.field(default_factory=list)
    gates: list = dataclasses.field(default_factory=list)
    judged: list = dataclasses.field(default_factory=list)

    @staticmethod
    def load(folder):
        folder = pathlib.Path(folder)
        return Recorded(folder, *(load.load_recorded(folder / part) for part in ("", "bench", "converge", "gate", "judge")))

    @property
    def measured(self):
        """What measured kernels on a GPU, newest first."""
        found = [run for run in (*self.runs, *self.benches) if run.on_gpu]
        return sorted(found, key=lambda run: run.header["run_id"], reverse=True)

    def file_of(self, run):
        return f"reports/recorded/{run.path.relative_to(self.folder).as_posix()}"


def by_file(runs):
    """Lists of the runs that one file holds: parts of one thing that took several commands."""
    return [list(group) for _, group in itertools.groupby(runs, key=lambda run: run.path)]
