#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the dashboard: what the records of a few runs bring to which page, and what is refused."""

import json
import pathlib
import shutil
import tempfile
import unittest

import site_check
from dashboard_test import read, run
from tigon_report import dashboard
from tigon_report.dashboard import scan
from tigon_report.errors import DataError

RECORDED = pathlib.Path(__file__).resolve().parents[1] / "recorded"


class Recorded(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tigon-dashboard-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.lines = []
        for line in next(RECORDED.glob("*.jsonl")).read_text().splitlines():  # one op: a page per case takes time
            record = json.loads(line)
            if record["record"] not in ("check", "bench", "memory") or record.get("op") == "swiglu":
                self.lines.append(record)

    def write(self, name="runs/recorded/run.jsonl", lines=None):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(line) + "\n" for line in lines or self.lines))
        return path

    def renumber(self, run_id, started, change=lambda record: record):
        """The run again under another id, with `change` applied to each record (None: left out)."""
        made = []
        for record in json.loads(json.dumps(self.lines)):
            record["run_id"] = run_id
            if record["record"] == "run":
                record["started"] = started
            record = change(record)
            if record:
                made.append(record)
        return made

    def site(self, *names):
        code, out, error = run("dashboard", *names, "--out", self.folder / "site")
        self.assertEqual(code, 0, error)
        return {path.name: path.read_text(encoding="utf-8") for path in (self.folder / "site").glob("*.html")}

    def test_recorded_run_is_shown_and_named_as_recorded(self):
        pages = self.site(self.write())
        self.assertIn("every run is recorded", pages["index.html"])
        self.assertIn("too few runs to see steps", pages["index.html"])
        for text in ("swiglu forward", ">µs</text>", ">T (tokens)</text>", ">% of measured copy bandwidth</text>"):
            self.assertTrue(text in pages["speed.html"], text)
        self.assertEqual(site_check.broken_links(self.folder / "site"), [])

    def test_missing_and_failed_cells_come_first(self):
        def worse(record):
            if record["record"] == "bench" and "T=16384" in record["case_id"] and record["impl"] == "fused":
                return None
            if record["record"] == "bench" and "T=4096" in record["case_id"] and record["impl"] == "fused":
                record.update(verdict="oom", reason="no memory left", median_s=None)
            if record["record"] == "check" and "T=1," in record["case_id"]:
                record.update(verdict="incorrect_numerical", reason="y[0] is wrong")
            return record

        self.write("runs/a.jsonl")
        self.write("runs/b.jsonl", self.renumber("20261122T100359Z-00000001", "2026-11-22T10:03:59.575Z", worse))
        landing = self.site(self.folder / "runs")["index.html"]
        for text in (
            "Yes:",
            "cells are missing",
            "no memory left",
            "y[0] is wrong",
            "./tigon bench --case",
            "last timed 2026-11-21",
        ):
            self.assertTrue(text in landing, text)
        self.assertLess(landing.index('id="failing"'), landing.index('id="worse"'))

    def test_times_of_the_host_executor_appear_nowhere(self):
        def host(record):
            if record["record"] == "run":
                record["device"] = {"kind": "host"}
            if record["record"] == "bench":
                record.update(executor="fast", basis="wall", median_s=0.0123456)
            return record

        pages = self.site(
            self.write(lines=self.renumber("20261122T100359Z-00000001", "2026-11-22T10:03:59.575Z", host))
        )
        self.assertIn("No GPU run is among the records", pages["speed.html"])
        for name, text in pages.items():
            self.assertFalse("12.35 ms" in text, name)

    def test_contradiction_and_nothing_to_show_are_one_line_and_exit_4(self):
        def slower(record):
            if record["record"] == "bench":
                record["median_s"] *= 2
            return record

        one = self.write("a.jsonl")
        two = self.write("b.jsonl", [slower(record) for record in json.loads(json.dumps(self.lines))])
        for arguments, text in (
            ((one, two), "another file of the same run"),
            ((self.folder / "none",), "no such file"),
        ):
            code, _, error = run("dashboard", *arguments, "--out", self.folder / "site")
            self.assertEqual(code, 4, error)
            self.assertIn(text, error)
            self.assertEqual(error.count("\n"), 1)
        one.write_text("{broken\n")
        self.assertEqual(run("dashboard", one, "--out", self.folder / "site")[0], 4)
        self.assertEqual(run("dashboard", one, "--out", self.folder / "site", "--commit-url", "https://x/")[0], 2)

    def test_default_runs_are_folders_that_hold_some(self):
        with self.assertRaisesRegex(DataError, "no run in results or reports/recorded"):
            dashboard.default_runs(self.folder)
        for name in ("run.jsonl", "judge/run.jsonl"):
            file = self.write(f"reports/recorded/{name}")
            self.assertEqual(scan.scan([file], lambda text: None).runs[0].origin, "recorded")
        self.write("results/ci/push/check/records.jsonl")  # of a gate: too deep to be a run of results
        recorded = self.folder / "reports/recorded"
        self.assertEqual(dashboard.default_runs(self.folder), [recorded, recorded / "judge"])
        self.write("results/one/records.jsonl")
        self.assertEqual(len(dashboard.default_runs(self.folder)), 3)

    def test_the_same_run_twice_counts_once(self):
        store, every = read(self.write("once/a.jsonl").parent)
        self.write("once/b.jsonl")
        twice, _ = read(self.folder / "once")
        self.assertEqual(store.runs[0].checks.passed, twice.runs[0].checks.passed)
        self.assertEqual(len(every), len(twice.cells))


class Trust(unittest.TestCase):
    """Records of the gate, of A/A, of static facts and of planted faults reach their pages."""

    def test_pages(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="tigon-dashboard-"))
        self.addCleanup(shutil.rmtree, folder)
        rate = {"suites": 1000, "false_blocks": 2, "rate": 0.002, "rate_upper_95": 0.0063}
        case = "swiglu/forward/fused/bf16/T=4096,F=5632"
        cell = {"scope": "cell", "case_id": case, "case_key": "0" * 16}
        numbers = {"registers": 40, "spill_bytes": 0}
        for day in (1, 2):
            run_id = f"2026010{day}T000000Z-0000000{day}"
            head = {"schema_version": "1.0.0", "run_id": run_id, "time": f"2026-01-0{day}T00:00:00.000Z"}
            lines = [
                {
                    "record": "run",
                    "device": {"kind": "cuda", "name": "GPU"},
                    "tool": {"commit": f"c{day}"},
                    "command": ["x"],
                },
                {
                    "record": "aa",
                    **cell,
                    "pairs": 24,
                    "gate_pairs": 12,
                    "pair_sd": 0.004,
                    "margin": 0.01,
                    "mde_80": 0.02,
                    "mde_95": None,
                },
                {
                    "record": "aa",
                    "scope": "suite",
                    "cells": 1,
                    "pairs": 24,
                    "gate_pairs": 12,
                    "measured": rate,
                    "simulated": rate,
                },
                {
                    "record": "gate",
                    **cell,
                    "outcome": "slower",
                    "change": 0.031,
                    "lower": 0.02,
                    "upper": None,
                    "margin": 0.01,
                },
                {
                    "record": "gate",
                    "scope": "suite",
                    "cells": 1,
                    "pairs": 12,
                    "exit_code": 3,
                    "base_commit": "b",
                    "head_commit": "h",
                },
                {
                    "record": "static",
                    "scope": "kernel",
                    "kernel": "swiglu_kernel",
                    "arch": "sm_90",
                    "same_code": False,
                    "numbers": {**numbers, "registers": 40 + day},
                    "base_numbers": numbers,
                    "changes": [
                        {
                            "number": "registers",
                            "base": 40,
                            "head": 40 + day,
                            "effect": "warns",
                            "cause": "swiglu.cu changed",
                        }
                    ],
                },
                {
                    "record": "mutant",
                    "mutant": "skip_last_row",
                    "group": "numeric",
                    "what": "leaves out a row",
                    "op": "swiglu",
                    "pass": "forward",
                    "dtype": "bf16",
                    "outcome": "survived",
                    "reason": "nothing noticed",
                    "case_id": case,
                },
                {
                    "record": "soak",
                    "executor": "fast",
                    "mode": "seeds",
                    "trials": 9000,
                    "false_alarms": 0,
                    "seconds_s": 1,
                },
                {
                    "record": "fault",
                    "fault": "disk_full",
                    "group": "system",
                    "expected": "exit 5",
                    "outcome": "survived",
                    "verdict": "",
                    "exit_code": 5,
                    "seconds_s": 1,
                },
                {
                    "record": "trace",
                    "case_id": "swiglu/forward/fused/bf16/T=7",
                    "op": "swiglu",
                    "pass": "forward",
                    "impl": "fused",
                    "dtype": "bf16",
                    "axes": {"T": 7},
                    "traffic_ratio": 1.25,
                    "sectors_per_request": 4,
                    "bank_conflicts": 0,
                },
            ]
            (folder / f"{day}.jsonl").write_text("".join(json.dumps({**line, **head}) + "\n" for line in lines))
        code, _, error = run("dashboard", folder, "--out", folder / "site")
        self.assertEqual(code, 0, error)
        self.assertEqual(site_check.broken_links(folder / "site"), [])
        shown = {name: (folder / f"site/{name}.html").read_text() for name in ("index", "trust", "kernels", "accuracy")}
        for name, text in (
            ("index", "2 false blocks in 1,000 suites (measured; at most 0.63 % with 95 % confidence)"),
            ("trust", "figure-aa"),
            ("trust", "0 of 1 caught"),
            ("trust", "skip_last_row"),
            ("trust", "disk_full"),
            ("trust", "9000"),
            ("trust", "3.1 %"),
            ("kernels", "swiglu.cu changed"),
            ("kernels", "swiglu_kernel"),
            ("kernels", "What changed over time"),
            ("accuracy", "1.25"),
        ):
            self.assertTrue(text in shown[name], f"{name}: {text}")


if __name__ == "__main__":
    unittest.main()
