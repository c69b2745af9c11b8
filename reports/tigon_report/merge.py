# SPDX-License-Identifier: Apache-2.0
"""tigon merge: the records of several runs, shards or copies of one run as one file, as a union of sets.

Idempotent and order-free: the same records give the same bytes, in whatever files and order they come. Different
records under one name (records.name_of) contradict each other, and nothing is written.
"""
import collections
import json
import os
import pathlib
import sys
import tempfile
from typing import NamedTuple

from . import records
from .command import Parser, say
from .errors import DataError, UsageError


class Place(NamedTuple):
    """One of the lines that bear a name; without the parsed record, of which there may be very many."""

    file: str
    number: int
    raw: bytes

    @property
    def content(self):
        return json.dumps({key: value for key, value in json.loads(self.raw).items() if key != "sum"}, sort_keys=True)


class Union:
    """A set of records. Lines go in with add(); sorted() gives their bytes in an order that depends on them only."""

    def __init__(self):
        self.count = 0
        self.headers = {}
        self._order = {}  # bytes -> sort key
        self._places = {}  # name -> [Place]
        self._resumed = set()

    def add(self, line):
        record, self.count = line.record, self.count + 1
        kind, run_id = record["record"], record["run_id"]
        rank = {"run": 0, "end": 2}.get(kind, 1)
        self._order.setdefault(line.raw, (run_id, rank, record.get("time", "")))
        if kind == "run":
            self.headers[run_id] = record
        if kind == "resume":
            self._resumed.add(run_id)
        name = records.name_of(record)
        if name is not None:
            self._places.setdefault(name, []).append(Place(line.file, line.number, line.raw))

    def sorted(self):
        """Raises DataError on a conflict."""
        dropped = set()
        for name, places in self._places.items():
            if len(places) > 1 and len({place.raw for place in places}) > 1:
                dropped |= _same_content(places, name[0] in self._resumed)
        kept = ((key, raw) for raw, key in self._order.items() if raw not in dropped)
        return [raw for _, raw in sorted(kept)]


def union(lines):
    """The bytes of the set union of Lines, sorted. Raises DataError on a conflict."""
    result = Union()
    for line in lines:
        result.add(line)
    return result.sorted()


def union_text(lines):
    """As union, of records as bytes that are not in a file yet."""
    return union(records.Line("import", number, raw, records.parse(raw)) for number, raw in enumerate(lines, 1))


def _same_content(places, is_resumed):
    """The bytes to drop of lines with one name: those that say the same in other bytes. Raises DataError.

    A run that was resumed, or that measures a case again, has several records of a name; they differ in time, and the
    run's own file has them all. Two files that differ in what one run measured are a conflict.
    """
    contents, of_file, at_time = collections.defaultdict(set), collections.defaultdict(set), {}
    for place in places:
        content = place.content
        contents[content].add(place.raw)
        of_file[place.file].add(content)
        other = at_time.setdefault(json.loads(place.raw).get("time"), place)
        if other.content != content:
            raise DataError(_conflict(other, place))
    if len(contents) > 1 and not is_resumed and max(map(len, of_file.values())) < len(contents):
        raise DataError(_conflict(places[0], next(p for p in places if p.content != places[0].content)))
    return {raw for same in contents.values() for raw in same - {min(same)}}


def _conflict(a, b):
    ours, theirs = json.loads(a.raw), json.loads(b.raw)
    keys = [key for key in ours.keys() | theirs.keys() if ours.get(key) != theirs.get(key) and key != "sum"]
    what = " ".join(str(ours[key]) for key in ("case_id", "name", "config", "unit") if key in ours)
    return (f"conflict in {ours['record']} {what} of run {ours['run_id']}: {a.file}:{a.number} and {b.file}:{b.number} "
            f"differ in {', '.join(sorted(keys)[:4])}; one of them was changed or slimmed, nothing is written")


def shard_lines(headers):
    """Sentences about sharded runs: which shards of how many are there, per command line."""
    groups = collections.defaultdict(dict)
    for header in headers:
        shard = header.get("shard")
        if shard:
            commit = (header.get("tool") or {}).get("commit")
            groups[(shard.get("group") or "", str(commit), shard.get("count"))][shard.get("index")] = header
    for (group, commit, count), found in sorted(groups.items(), key=str):
        missing = [str(index) for index in range(count or 0) if index not in found]
        name = f" of {group}" if group else ""
        yield bool(missing), (f"shards{name} at commit {commit[:12]}: {len(found)} of {count}"
                              + (f", missing {', '.join(missing)}" if missing else ", complete"))


def write_whole(path, chunks):
    """Writes bytes to `path` so that a reader sees all of it or what was there before. '-' is stdout."""
    if str(path) == "-":
        for chunk in chunks:
            sys.stdout.write(chunk.decode("utf-8"))
        return
    path = pathlib.Path(path)
    if path.is_dir():
        raise UsageError(f"{path}: is a folder; name a file, e.g. {path / 'records.jsonl'}")
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            for chunk in chunks:
                stream.write(chunk)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def main(argv):
    parser = Parser("merge", "Write the records of several runs, shards or copies of runs as one file: a set union.",
                    ["results/A results/B -o both.jsonl", "shard-*/records.jsonl --complete -o run.jsonl"])
    parser.add_argument("runs", nargs="+", help="results folders, folders of them, or records files")
    parser.add_argument("-o", "--out", required=True, help="file to write; - is standard output")
    parser.add_argument("--complete", action="store_true", help="fail (exit 4) when a shard is missing")
    arguments = parser.parse_args(argv)
    merged = Union()
    for line in records.read(arguments.runs, lambda text: say("merge", text)):
        merged.add(line)
    chosen = merged.sorted()
    incomplete = False
    for is_missing, text in shard_lines(merged.headers.values()):
        say("merge", text)
        incomplete |= is_missing
    if incomplete and arguments.complete:
        raise DataError("a shard is missing, nothing is written")
    write_whole(arguments.out, (raw + b"\n" for raw in chosen))
    say("merge", f"{merged.count} records, {len(chosen)} different, of {len(merged.headers)} runs: {arguments.out}")
