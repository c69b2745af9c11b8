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

    @property
    def on_gpu(self):
        return self.header["device"]["kind"] == "cuda"

    @property
    def device(self):
        return self.header["device"].get("name") or "host"

    @property
    def date(self):
        return str(self.header.get("started") or self.header.get("time", ""))[:10]


def load_run(path, run_id=None, notice=lambda text: None):
    """Loads the run in folder or file `path`; of a file with several runs that of `run_id`, or the shards of one.

    What records.read_file leaves out is said to `notice`. Raises DataError when there is no record file, no run record,
    a line that is no record, or several runs and no choice.
    """
    path = pathlib.Path(path)
    file = path / "records.jsonl" if path.is_dir() else path
    if not file.is_file():
        raise DataError(f"{file}: no such file; a run writes records.jsonl into its results folder")
    lines = records.latest(records.read_file(file, notice))
    headers = [line.record for line in lines if line.record["record"] == "run"]
    if not headers:
        raise DataError(f"{file}: no run record; the first line of a run is its environment")
    chosen = [header for header in headers if run_id in (None, header["run_id"])]
    if not chosen:
        raise DataError(f"{file}: no run {run_id} in it; it holds {_names(headers)}")
    if len(chosen) > 1 and not _are_shards(chosen):
        raise DataError(f"{file}: {len(chosen)} runs in it; choose one with --run, of {_names(chosen)}")
    ids, kinds = {header["run_id"] for header in chosen}, collections.defaultdict(list)
    for line in lines:
        if line.record["run_id"] in ids:
            kinds[line.record["record"]].append(line.record)
    return Run(file, chosen[0], dict(kinds), (kinds.get("end") or [None])[-1])


def _names(headers):
    ids = [header["run_id"] for header in headers]
    return ", ".join(ids[:3]) + (f" and {len(ids) - 3} more" if len(ids) > 3 else "")


def _are_shards(headers):
    """True when these are different parts of one run: same commit, kind of device and number of parts."""
    parts = {(shard.get("index"), shard.get("count")) for h in headers if (shard := h.get("shard"))}
    same = {((h.get("tool") or {}).get("commit"), h["device"].get("kind"), h["device"].get("name")) for h in headers}
    return len(parts) == len(headers) and len({count for _, count in parts}) == 1 and len(same) == 1


def load_recorded(folder):
    """The runs in `folder`/*.jsonl, newest first; an empty list when there is no such folder."""
    folder = pathlib.Path(folder)
    runs = [load_run(file) for file in sorted(folder.glob("*.jsonl"))] if folder.is_dir() else []
    return sorted(runs, key=lambda run: run.date, reverse=True)
