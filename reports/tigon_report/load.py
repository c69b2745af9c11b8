# SPDX-License-Identifier: Apache-2.0
"""Loading of a run: a folder with records.jsonl, or the file itself."""
import collections
import dataclasses
import pathlib

from . import records
from .errors import DataError


@dataclasses.dataclass
class Run:
    """The records of one run by kind, in file order. `header` is its `run` record, `end` its last, or None."""

    path: pathlib.Path
    header: dict
    records: dict
    end: dict | None

    def of(self, kind):
        return self.records.get(kind, [])

    def only(self, op):
        """This run with the records of `op` alone (None: of no op), and with its ceilings."""
        kept = {kind: [record for record in found if kind == "ceiling" or (record.get("op") or None) == op]
                for kind, found in self.records.items()}
        return Run(self.path, self.header, kept, self.end)

    @property
    def on_gpu(self):
        return self.header["device"]["kind"] == "cuda"

    @property
    def device(self):
        return self.header["device"].get("name") or "host"

    @property
    def commit(self):
        tool = self.header["tool"]
        return (tool.get("commit") or "unknown")[:12] + (" (modified)" if tool.get("dirty") else "")

    @property
    def date(self):
        return str(self.header.get("started") or self.header.get("time", ""))[:10]


def load_run(path, run_id=None, notice=lambda text: None):
    """Loads the run in folder or file `path`; of a file with several runs that of `run_id`, or the shards of one.

    What records.read_file leaves out is said to `notice`. Raises DataError when there is no record file, no run record,
    a line that is no record, or several runs and no choice.
    """
    runs = load_runs(path, run_id, notice)
    if len(runs) > 1:
        raise DataError(f"{runs[0].path}: {len(runs)} runs in it; choose one with --run, of {_names(runs)}")
    return runs[0]


def load_runs(path, run_id=None, notice=lambda text: None):
    """Loads every run in folder or file `path`, or the one of `run_id`, in file order; the shards of one run are one.

    Raises DataError as load_run does, but for several runs.
    """
    path = pathlib.Path(path)
    file = path / "records.jsonl" if path.is_dir() else path
    if not file.is_file():
        raise DataError(f"{file}: no such file; a run writes records.jsonl into its results folder")
    kinds = {}  # of each run
    for line in records.latest(records.read_file(file, notice)):
        run = kinds.setdefault(line.record["run_id"], collections.defaultdict(list))
        run[line.record["record"]].append(line.record)
    runs = [Run(file, run["run"][0], dict(run), (run.get("end") or [None])[-1]) for run in kinds.values() if "run" in run]
    if not runs:
        raise DataError(f"{file}: no run record; the first line of a run is its environment")
    chosen = [run for run in runs if run_id in (None, run.header["run_id"])]
    if not chosen:
        raise DataError(f"{file}: no run {run_id} in it; it holds {_names(runs)}")
    return [joined(chosen)] if _are_shards([run.header for run in chosen]) else chosen


def joined(runs):
    """The records of several runs as one run with the header of the first."""
    kinds = collections.defaultdict(list)
    for run in runs:
        for kind, found in run.records.items():
            kinds[kind] += found
    return Run(runs[0].path, runs[0].header, dict(kinds), _joined_end([run.end for run in runs]))


def _joined_end(ends):
    """The last end with the counts of all; None when one is missing."""
    if None in ends:
        return None
    counts = {kind: sum(end.get(kind, 0) for end in ends) for kind in ("passed", "failed", "skipped")}
    return {**ends[-1], **counts}


def _names(runs):
    ids = [run.header["run_id"] for run in runs]
    return ", ".join(ids[:3]) + (f" and {len(ids) - 3} more" if len(ids) > 3 else "")


def _are_shards(headers):
    """True when these are different parts of one run: same commit, kind of device and number of parts."""
    parts = {(shard.get("index"), shard.get("count")) for h in headers if (shard := h.get("shard"))}
    same = {((h.get("tool") or {}).get("commit"), h["device"].get("kind"), h["device"].get("name")) for h in headers}
    return len(parts) == len(headers) and len({count for _, count in parts}) == 1 and len(same) == 1


def load_recorded(folder):
    """Every run in `folder`/*.jsonl, newest first; an empty list when there is no such folder."""
    folder = pathlib.Path(folder)
    runs = [run for file in sorted(folder.glob("*.jsonl")) for run in load_runs(file)] if folder.is_dir() else []
    return sorted(runs, key=lambda run: run.date, reverse=True)
