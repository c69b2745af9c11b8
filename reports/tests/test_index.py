# SPDX-License-Identifier: Apache-2.0
"""Tests of tigon index: what a person asks the database is what the records say."""
import json
import re
import sqlite3
import unittest

import sample
from command_test import CommandTest, full, full_run
from tigon_report import index_schema


class IndexTest(CommandTest):
    def index(self, *paths):
        code, _, errors = self.tigon("index", *paths, "-o", self.folder / "i.sqlite")
        self.assertEqual(code, 0, errors)
        connection = sqlite3.connect(self.folder / "i.sqlite")
        self.addCleanup(connection.close)
        return connection

    def test_views_hold_what_the_records_say(self):
        run = full_run()
        run[0]["tags"] = {"simulated": "true"}
        run.append(full({"record": "end", "passed": 5, "failed": 1, "skipped": 0, "exit_code": 1, "seconds_s": 2.5,
                         "interrupted": False}))
        db = self.index(self.write("a.jsonl", run))
        bench = [r for r in run if r["record"] == "bench"]
        rows = db.execute("SELECT case_id, median_s, axes, device, simulated, line FROM bench ORDER BY line").fetchall()
        self.assertEqual(len(rows), len(bench))
        for row, record in zip(rows, bench):
            self.assertEqual((*row[:2], json.loads(row[2]), *row[3:5]),
                             (record["case_id"], record["median_s"], record["axes"], "NVIDIA H200", 1))
            self.assertEqual(json.loads((self.folder / "a.jsonl").read_text().split("\n")[row[5] - 1]), record)
            sizes = db.execute("SELECT axis, size FROM sizes WHERE case_key = ?", (record["case_key"],)).fetchall()
            self.assertEqual(dict(sizes), record["axes"])
        self.assertEqual(db.execute("SELECT passed, failed, interrupted FROM runs").fetchall(), [(5, 1, 0)])
        ratios = [row[0] for row in db.execute("SELECT speed_up FROM speed_up")]
        self.assertEqual(len(ratios), 2)
        self.assertAlmostEqual(ratios[0], 4 / 1.2)

    def test_columns_are_of_the_declared_types_and_hold_the_worst_output(self):
        worse = {"name": "dx", "error_over_budget": 0.75, "rms_over_budget": 0.125}
        check = full(sample.check(error=0.5))
        db = self.index(self.write("a.jsonl", [*full_run(), {**check, "outputs": [worse, *check["outputs"]]}]))
        types = {row[1]: row[2] for table in ("records", "runs") for row in db.execute(f"PRAGMA table_info({table})")}
        self.assertEqual([types[name] for name in ("median_s", "peak_bytes", "n", "verdict", "dirty", "seed", "tags", "seconds_s")],
                         ["REAL", "REAL", "INTEGER", "TEXT", "INTEGER", "INTEGER", "TEXT", "REAL"])
        row = db.execute("SELECT error_over_budget, rms_over_budget FROM checks ORDER BY line DESC").fetchone()
        self.assertEqual(row, (0.75, 0.25))

    def test_the_queries_of_the_help_run(self):
        db = self.index(self.write("a.jsonl", full_run()))
        queries = re.findall(r"SELECT.*?;", index_schema.HELP.split("psql:")[1], re.S)
        self.assertEqual(len(queries), 4)
        for query in queries:
            db.execute(query).fetchall()
        for view in index_schema.VIEWS:
            db.execute(f"SELECT * FROM {view}").fetchall()

    def test_rebuilding_gives_the_same_rows_and_duplicates_do_not_count(self):
        a = self.write("a.jsonl", full_run())
        b = self.write("b.jsonl", full_run("20260102T120000Z-00000001"))
        query = "SELECT run_id, kind, case_key, median_s FROM records ORDER BY 1, 2, 3"
        dump = lambda db: list(db.execute(query))  # noqa: E731
        once = dump(self.index(a, b))
        self.assertEqual(len(once), 2 * len(full_run()))
        self.assertEqual(dump(self.index(a, b)), once)
        self.tigon("merge", a, b, "-o", self.folder / "c.jsonl")
        self.assertEqual(dump(self.index(self.folder / "c.jsonl", b, a)), once)

    def test_the_last_record_of_a_resumed_case_counts_and_latest_is_the_newest_run(self):
        run = full_run()
        bench = next(r for r in run if r["record"] == "bench")
        again = {**bench, "median_s": 0.125, "time": "2026-01-01T13:00:00.000Z"}
        newer = full_run("20260109T120000Z-00000001")
        newer[0]["started"] = "2026-01-09T12:00:00.000Z"
        db = self.index(self.write("a.jsonl", [*run, again]), self.write("b.jsonl", newer))
        rows = db.execute("SELECT run_id, median_s FROM bench WHERE case_key = ?", (bench["case_key"],)).fetchall()
        self.assertEqual(sorted(rows), sorted([(run[0]["run_id"], 0.125), (newer[0]["run_id"], bench["median_s"])]))
        self.assertEqual(db.execute("SELECT DISTINCT run_id FROM latest").fetchall(), [(newer[0]["run_id"],)])

    def test_contradictions_and_runs_without_header_are_refused_and_leave_the_old_index(self):
        a = self.write("a.jsonl", full_run())
        self.index(a)
        before = (self.folder / "i.sqlite").read_bytes()
        changed = full_run()
        next(r for r in changed if r["record"] == "bench")["median_s"] = 9.0
        self.refused(4, "contradicts", "index", a, self.write("b.jsonl", changed), "-o", self.folder / "i.sqlite")
        self.refused(4, "no run record", "index", self.write("c.jsonl", full_run()[1:]), "-o", self.folder / "i.sqlite")
        self.assertEqual((self.folder / "i.sqlite").read_bytes(), before)
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["a.jsonl", "b.jsonl", "c.jsonl", "i.sqlite"])

    def test_a_file_that_is_no_index_is_never_replaced(self):
        a = self.write("a.jsonl", full_run())
        self.refused(2, "is no index of tigon", "index", a, "-o", a)
        self.assertTrue(a.read_bytes())

    def test_odd_values_do_not_stop_it(self):
        run = full_run()
        run[0].update(seed=2**64 - 1, tool={"commit": {"a": 1}}, shard={"index": "x"}, build={"preset": [5]})
        odd = full({"record": "news", "name": {"a": 1}, "executor": [1], "basis": 3, "verdict": 7})
        odd_axes = {**next(r for r in run if r["record"] == "bench"), "axes": {"T": 10**40, "V": "x"},
                    "case_key": "0" * 16}
        self.index(self.write("a.jsonl", [*run, odd, odd_axes]))

    def test_usage(self):
        a = self.write("a.jsonl", full_run())
        self.refused(4, "no such file", "index", self.folder / "nosuch")
        self.refused(2, "not allowed with", "index", a, "-o", "x", "--db", "y")
        code, _, errors = self.tigon("index", a, "--db", "not a url")
        self.assertIn(code, (2, 5), errors)  # 5 where SQLAlchemy is missing
        self.assertEqual(errors.count("\n"), 1)


if __name__ == "__main__":
    unittest.main()
