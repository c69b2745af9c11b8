#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of what the dashboard takes for the state of main, and of what it leaves alone."""
import datetime
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from command_test import CommandTest, full  # noqa: E402
from dashboard_test import read  # noqa: E402
import sample  # noqa: E402
from tigon_report import records  # noqa: E402
from tigon_report.dashboard import history, landing, state  # noqa: E402

START = datetime.datetime(2026, 1, 1)
WRONG = {"verdict": "incorrect_numerical", "reason": "y[0] is wrong"}


def end(**more):
    return {"record": "end", "passed": 1, "failed": 0, "skipped": 0, "exit_code": 0, "seconds_s": 1, "interrupted": False,
            **more}


ENDED = (end(),)


def timed(seconds=0.001, impl="fused", **more):
    return {**sample.bench(impl, 8192, 32000, seconds), **more}


def a_run(day, *held, words=("run",), last=ENDED, **tool):
    """The records of a GPU's run on a day, of a commit of its own."""
    run_id, at = f"{START + datetime.timedelta(days=day):%Y%m%dT%H%M%SZ}-{day:08x}", START + datetime.timedelta(days=day)
    time = f"{at:%Y-%m-%dT%H:%M:%S}.000Z"
    header = {**sample.header("cuda", "NVIDIA H200"), "command": ["./tigon", *words], "started": time,
              "tool": {"name": "tigon", "version": "0.1.0", "commit": f"{day:040x}", "dirty": False, **tool}}
    return [full({**record, "run_id": run_id}, run_id, time) for record in (header, *held, *last)]


class StateOfMain(CommandTest):
    def landing(self, *runs):
        """(failures, sentence) of the landing page on these runs."""
        self.store, every = read(self.write("runs.jsonl", [line for run in runs for line in run]))
        failed = landing.failures(self.store, every)
        worse, _ = landing.steps(every, history.RECENT_DAYS)
        return failed, landing.summary(self.store, every, failed, worse)["sentence"]

    def test_a_peer_never_counts(self):
        failing = {"verdict": "runtime_error", "reason": "Cannot launch", "median_s": None}
        failed, sentence = self.landing(a_run(1, timed(), timed(impl="liger", **failing),
                                              sample.check(impl="liger", executor="cuda", **WRONG)))
        self.assertEqual(failed, [])
        self.assertNotIn("Yes", sentence)

    def test_what_is_not_supported_is_no_failure(self):
        refused = {"verdict": "unsupported", "reason": "cuDNN: no engine", "median_s": None}
        failed, sentence = self.landing(a_run(1, timed(), timed(impl="naive", **refused)))
        self.assertEqual(failed, [])
        self.assertNotIn("Yes", sentence)

    def test_a_peer_that_becomes_slower_is_no_regression(self):
        runs = [a_run(day, timed(), timed(0.002 if day > 10 else 0.001, impl="liger")) for day in range(20)]
        self.assertIn("No: nothing failed", self.landing(*runs)[1])

    def test_only_complete_runs_of_committed_trees_say_how_main_is(self):
        main = a_run(1, timed(), sample.check(executor="cuda", **WRONG))
        passing = timed(), sample.check(executor="cuda")
        for name, other in {
                "filtered": a_run(2, *passing, words=("bench", "--op", "rms_norm")),
                "joined": a_run(2, *passing, words=("check", "--dtype=bf16")),
                "positional": a_run(2, *passing, words=("check", "rms_norm")),
                "plug-in": a_run(2, *passing, words=("check", "--impl-from", "mine.so")),
                "one case": a_run(2, *passing, words=("check", "--case", "rms_norm/forward/fused/bf16/T=7,H=127")),
                "changed": a_run(2, *passing, dirty=True),
                "unknown": a_run(2, *passing, commit=None),
                "killed": a_run(2, *passing, last=()),
                "interrupted": a_run(2, *passing, last=(end(interrupted=True),)),
                "other command": a_run(2, *passing, words=("soak",))}.items():
            with self.subTest(name):
                failed, sentence = self.landing(main, other)
                self.assertIn("Yes: 1 failed", sentence)
                self.assertEqual([run.id for run in landing.newest_runs(self.store)], [main[0]["run_id"]])
                self.assertEqual([row["run"].id for row in failed], [main[0]["run_id"]])
                self.assertTrue(self.store.runs[1].why_not)
        _, sentence = self.landing(main, a_run(2, *passing, words=("run", "--out", "there", "--tag=a=b", "-v")))
        self.assertNotIn("Yes", sentence)

    def test_failures_of_other_runs_do_not_count(self):
        _, sentence = self.landing(a_run(1, timed()), a_run(2, sample.check(executor="cuda", **WRONG), dirty=True))
        self.assertNotIn("Yes", sentence)
        _, sentence = self.landing(a_run(2, sample.check(executor="cuda", **WRONG), dirty=True))
        self.assertIn("no complete run of a committed tree", sentence)

    def test_a_short_run_does_not_hide_what_a_full_one_found(self):
        found = a_run(1, sample.check(executor="cuda", **WRONG), words=("run", "--full"))
        short, later = a_run(2, sample.check(executor="cuda")), a_run(3, sample.check(executor="cuda"), words=("run", "--full"))
        self.assertIn("Yes: 1 failed", self.landing(found, short)[1])
        self.assertNotIn("Yes", self.landing(found, short, later)[1])
        self.assertEqual([run.id for run in state.newest(self.store)], [later[0]["run_id"]])

    def test_a_slowdown_stays_until_it_is_resolved(self):
        slow = [a_run(day, timed(0.0011 if day >= 20 else 0.001)) for day in range(150)]
        sentence = self.landing(*slow)[1]
        self.assertIn("1 of 1 cases are slower by code", sentence)
        self.assertIn("by 10.0 % since 2026-01-21", sentence)
        mended = [a_run(day, timed(0.001)) for day in range(150, 170)]
        self.assertIn("No: nothing failed", self.landing(*slow, *mended)[1])

    def test_a_slowdown_is_not_resolved_by_a_changed_tree(self):
        slow = [a_run(day, timed(0.0011 if day >= 20 else 0.001)) for day in range(40)]
        tried = [a_run(day, timed(0.001), dirty=True) for day in range(40, 60)]
        self.assertIn("1 of 1 cases are slower", self.landing(*slow, *tried)[1])


class Folder(CommandTest):
    def test_writes_into_no_folder_of_somebody_else(self):
        runs, site = self.write("run.jsonl", a_run(1, timed())), self.folder / "site"
        site.mkdir()
        (site / ".nojekyll").touch()
        for _ in range(2):  # new, then its own
            self.assertEqual(self.tigon("dashboard", runs, "--out", site)[0], 0)
        foreign = self.folder / "foreign"
        foreign.mkdir()
        (foreign / "index.html").write_text("mine")
        self.refused(2, "did not write", "dashboard", runs, "--out", foreign)
        self.assertEqual([path.read_text() for path in foreign.iterdir()], ["mine"])
        self.refused(2, "did not write", "dashboard", runs, "--out", runs)
        (foreign / "dashboard.css").write_text("body {}")
        self.refused(2, "did not write", "dashboard", runs, "--out", foreign)

    def test_damage_is_left_out_counted_and_named(self):
        good, site = a_run(1, timed()), self.folder / "site"
        header_lost = [b'{"record":"run", torn', *a_run(2, timed())[1:]]
        runs = self.write("run.jsonl", [good[0], b"{broken", *good[1:], *header_lost])
        code, _, errors = self.tigon("dashboard", runs, "--out", site)
        self.assertEqual(code, 0, errors)
        page = (site / "index.html").read_text()
        for text in (f"{runs}:2: not a record", "(2 such lines); left out", "2 records of 20260103T000000Z-00000002 have no run record"):
            self.assertIn(text, errors)
            self.assertIn(text, page)
        self.assertIn("2 damages in the records", page)
        with self.assertRaises(records.DataError):
            list(records.read_file(runs))


if __name__ == "__main__":
    unittest.main()
