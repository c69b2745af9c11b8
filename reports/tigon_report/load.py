"""Loading of a run: a folder with records.jsonl, or the file itself."""
import collections
import dataclasses
import json
import pathlib

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


def load_run(path):
    """Loads the run in folder or file `path`. A torn last line (a killed writer) is dropped; other damage is an error.

    Raises DataError when there is no record file, no run record, or a line that is not JSON.
    """
    path = pathlib.Path(path)
    file = path / "records.jsonl" if path.is_dir() else path
    if not file.is_file():
        raise DataError(f"{file}: no such file; a run writes records.jsonl into its results folder")
    lines = file.read_text(encoding="utf-8", errors="replace").split("\n")
    records = collections.defaultdict(list)
    last = len(lines) - 1  # text behind the last newline: empty, or a line that was not finished
    for number, line in enumerate(lines):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            records[record["record"]].append(record)
        except (ValueError, KeyError, TypeError) as error:
            if number == last:
                continue
            raise DataError(f"{file}:{number + 1}: not a record ({error})") from error
    if not records["run"]:
        raise DataError(f"{file}: no run record; the first line of a run is its environment")
    return Run(file, records["run"][0], dict(records), (records.get("end") or [None])[-1])


def load_recorded(folder):
    """The runs in `folder`/*.jsonl, newest first; an empty list when there is no such folder."""
    folder = pathlib.Path(folder)
    runs = [load_run(file) for file in sorted(folder.glob("*.jsonl"))] if folder.is_dir() else []
    return sorted(runs, key=lambda run: run.date, reverse=True)
