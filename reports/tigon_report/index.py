# SPDX-License-Identifier: Apache-2.0
"""tigon index: a database of records that a person can query, made from JSONL; delete and rebuild it at any time."""
import datetime
import os
import pathlib
import sqlite3
import tempfile

from . import index_schema as schema
from . import records
from .command import Parser, say
from .errors import DataError, InfrastructureError, UsageError

BATCH = 20000


class Sqlite:
    """Writes an SQLite file: all of it or nothing."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        if self.path.exists() and not self._is_index():
            raise UsageError(f"-o {path}: exists and is no index of tigon; name another file")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        handle, self._name = tempfile.mkstemp(dir=self.path.parent, prefix=f".{self.path.name}.")
        os.close(handle)
        self._connection = sqlite3.connect(self._name, isolation_level=None)
        for pragma in ("journal_mode = OFF", "synchronous = OFF", "cache_size = -65536"):
            self._connection.execute(f"PRAGMA {pragma}")
        for table, columns in schema.TABLES.items():
            key = schema.KEYS.get(table)
            text = ", ".join(f"{name} {kind.upper()}{' PRIMARY KEY' if name == key else ''}" for name,
                             kind in columns.items())
            self._connection.execute(f"CREATE TABLE {table} ({text})")
        self._connection.execute("BEGIN")

    def _is_index(self):
        if not self.path.is_file() or self.path.stat().st_size == 0:
            return False
        try:
            with sqlite3.connect(f"file:{self.path}?mode=ro", uri=True) as connection:
                return bool(connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'tigon_index'").fetchall())
        except sqlite3.Error:
            return False

    def insert(self, table, rows):
        marks = ", ".join("?" * len(schema.TABLES[table]))
        self._connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)

    def delete(self, ids):
        self._connection.executemany("DELETE FROM records WHERE id = ?", [(number,) for number in ids])

    def finish(self):
        for name, columns in schema.INDEXES.items():
            self._connection.execute(f"CREATE INDEX {name} ON {columns}")
        for name, text in schema.VIEWS.items():
            self._connection.execute(f"CREATE VIEW {name} AS {text}")
        self._connection.execute("COMMIT")
        self._connection.execute("ANALYZE")
        self._connection.close()
        os.chmod(self._name, 0o644)
        os.replace(self._name, self.path)

    def abandon(self):
        self._connection.close()
        os.unlink(self._name)


def fill(database, lines):
    """Puts Lines into a database; returns (records, runs). Raises DataError."""
    runs, ends, cases, seen, stale, batch = {}, {}, set(), {}, [], []
    number = 0
    for line in lines:
        record = line.record
        name = records.name_of(record) or (record["run_id"], line.raw)
        before = seen.get(name)
        fingerprint = hash(line.raw)
        if before:
            if before[1] == fingerprint:
                continue  # the same record in two files
            if before[2] != line.file and before[3] == record.get("time"):
                raise DataError(f"{line.where} contradicts a record of the same run and case in {before[2]}; "
                                "./tigon merge says how they differ")
            if (record.get("time") or "") < (before[3] or ""):
                continue
            stale.append(before[0])
        number += 1
        seen[name] = (number, fingerprint, line.file, record.get("time"))
        if record["record"] == "run":
            runs[record["run_id"]] = schema.run_row(line)
        elif record["record"] == "end":
            ends[record["run_id"]] = schema.end_row(record)
        if record.get("case_key") not in cases and (case := schema.case_row(record)):
            cases.add(case[0])
            database.insert("cases", [case])
            database.insert("sizes", schema.size_rows(record))
        batch.append(schema.record_row(number, line))
        if len(batch) >= BATCH:
            database.insert("records", batch)
            batch.clear()
    without = {name[0] for name in seen} - set(runs)
    if without:
        raise DataError(f"no run record of {sorted(without)[0]}; it says where its records were measured")
    database.insert("records", batch)
    database.insert("runs", [tuple({**row, **ends.get(run_id, {})}.get(key) for key in schema.TABLES["runs"])
                             for run_id, row in runs.items()])
    database.delete(stale)
    made = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    database.insert("tigon_index", [(schema.VERSION, made)])
    return number - len(stale), len(runs)


def main(argv):
    parser = Parser("index", "Make a database of records: SQLite, or PostgreSQL through SQLAlchemy.",
                    ["results -o index.sqlite", "results --db postgresql://user@host/tigon"])
    parser.epilog += f"\n\n{schema.HELP}"
    parser.add_argument("runs", nargs="+", help="results folders, folders of them, or records files")
    target = parser.add_mutually_exclusive_group()
    target.add_argument("-o", "--out", default="index.sqlite", help="SQLite file, replaced (default: index.sqlite)")
    target.add_argument("--db", help="URL of a PostgreSQL database; the index in it is replaced in one transaction")
    arguments = parser.parse_args(argv)
    records.files_of(arguments.runs)  # a wrong name is found before anything is touched
    if arguments.db:
        from .index_server import Server
        database, name = Server(arguments.db), "the database"
    else:
        database, name = Sqlite(arguments.out), arguments.out
    try:
        count, runs = fill(database, records.read(arguments.runs, lambda text: say("index", text)))
        database.finish()
    except BaseException as error:
        database.abandon()
        if isinstance(error, sqlite3.Error):
            raise InfrastructureError(f"{name}: {error}") from error
        raise
    say("index", f"{count} records of {runs} runs in {name}")
