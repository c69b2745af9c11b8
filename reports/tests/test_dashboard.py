#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the dashboard: the site's pages, links, labels and bytes."""

import contextlib
import csv
import filecmp
import io
import json
import pathlib
import re
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import site_check  # noqa: E402
from tigon_report import __main__ as program  # noqa: E402
from tigon_report import dashboard, records  # noqa: E402
from tigon_report.errors import DataError  # noqa: E402
from tigon_report.dashboard import case_figure, history, scan  # noqa: E402

RECORDED = pathlib.Path(__file__).resolve().parents[1] / "recorded"


def run(*arguments):
    """(exit code, stdout, stderr) of ./tigon ARGUMENTS."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = program.main([str(argument) for argument in arguments])
    return code, out.getvalue(), err.getvalue()


class Serial:
    """What a process pool offers, in this process."""

    @staticmethod
    def map(function, values, chunksize=1):
        del chunksize
        return map(function, values)


def read(folder):
    store = scan.scan(records.files_of([folder]), lambda text: None)
    return store, history.build(store, Serial)


class Simulated(unittest.TestCase):
    """A short simulated history: what was planted is found and named, and the site shows it."""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="tigon-dashboard-"))
        assert run("simulate", "--out", cls.folder / "runs", "--seed", 5, "--days", 90, "--cases", 28)[0] == 0
        cls.truth = json.loads((cls.folder / "runs/truth.json").read_text())
        cls.store, cls.every = read(cls.folder / "runs")
        cls.site = cls.folder / "site"
        cls.result = run("dashboard", cls.folder / "runs", "--out", cls.site)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def by_key(self):
        return {series.cell.record["case_key"]: series for series in self.every}

    def test_planted_steps_are_found_and_flat_series_are_not_flagged(self):
        steps = 0
        for event in self.truth["events"]:
            if event["kind"] in ("step", "baseline"):
                series = self.by_key()[event["case_key"]]
                hits = [
                    label.cause
                    for point, label in zip(series.changes, series.labels)
                    if abs(point.index - event["run"]) <= 5
                ]
                # The short history changes driver and machine near other steps; a step is never called noise.
                self.assertTrue(hits and hits[0] != "noise", (event, series.changes))
                steps += 1
        self.assertGreater(steps, 2)
        flagged = [key for key in self.truth["flat"] if self.by_key()[key].changes]
        self.assertEqual(flagged, [])

    def test_command_succeeds_and_says_where(self):
        self.assertEqual((self.result[0], self.result[1]), (0, f"dashboard: {self.site}/index.html\n"), self.result)

    def test_every_link_leads_somewhere_and_none_out_of_the_site(self):
        self.assertEqual(site_check.broken_links(self.site), [])

    def test_simulated_is_said_on_every_page(self):
        pages = list(self.site.rglob("*.html"))
        self.assertGreater(len(pages), 28)
        for page in pages:
            self.assertIn("Simulated numbers are made up", page.read_text(encoding="utf-8"), page)

    def test_points_link_to_rows_with_record_commit_and_repro(self):
        series = self.by_key()[next(e for e in self.truth["events"] if e["kind"] == "step")["case_key"]]
        text = (self.site / f"case/{series.slug}.html").read_text(encoding="utf-8")
        run_id = series.runs[-1].id
        self.assertIn(f'href="#{run_id}"', text)
        self.assertIn(f'<tr id="{run_id}">', text)
        self.assertIn(series.runs[-1].commit, text)
        self.assertIn("./tigon bench --case &#39;", text)
        self.assertIn(f"{run_id}/records.jsonl:{series.points[-1].line}", text)
        raw = (series.runs[-1].file.read_text().splitlines()[series.points[-1].line - 1]).split('"sum"')[0]
        self.assertIn(raw.replace('"', "&#34;"), text)

    def test_axes_of_a_case_have_units(self):
        series = self.every[0]
        text = (self.site / f"case/{series.slug}.html").read_text(encoding="utf-8")
        self.assertRegex(text, r">µs \((copy|gemm_\w+) as in the newest run\)<")
        self.assertIn(">day of the run<", text)

    def test_a_figure_of_a_case_shows_its_time_in_us(self):
        series = next(s for s in self.every if not s.changes)
        drawn = case_figure.case_figure(series, [0, len(series.runs) - 1])["svg"]
        values = [float(text.replace(",", "")) for text in re.findall(r'text-anchor="end">([0-9.,]+)<', drawn)]
        self.assertGreater(len(values), 2)
        self.assertTrue(values[0] < 1e6 * series.last.median_s < values[-1] * 1.1, (values, series.last.median_s))
        self.assertEqual([text for _, text in case_figure.ticks(0.98, 1.05)], ["0.98", "1.00", "1.02", "1.04"])
        self.assertEqual([text for _, text in case_figure.ticks(900, 4100)], ["1,000", "2,000", "3,000", "4,000"])

    def test_every_time_is_in_one_csv(self):
        with open(self.site / "data/times.csv", encoding="utf-8") as stream:
            rows = list(csv.DictReader(stream))
        series = self.every[3]
        self.assertEqual([row["run_id"] for row in rows if row[series.slug]], [run.id for run in series.runs])
        self.assertAlmostEqual(float(rows[-1][series.slug]) / series.last.median_s, 1, places=5)

    def test_equal_records_give_equal_bytes(self):
        again = self.folder / "again"
        self.assertEqual(run("dashboard", self.folder / "runs", "--out", again)[0], 0)
        names = [str(path.relative_to(self.site)) for path in self.site.rglob("*") if path.is_file()]
        same, different, missing = filecmp.cmpfiles(self.site, again, names, shallow=False)
        self.assertEqual((different, missing, len(same)), ([], [], len(names)))
        shutil.rmtree(again)

    def test_script_is_small_classic_and_fetches_nothing(self):
        script = (self.site / "dashboard.js").read_text(encoding="utf-8")
        self.assertLessEqual(len(script.splitlines()), 300)
        for word in ("fetch(", "XMLHttpRequest", "import ", "http:", "https:", "WebSocket"):
            self.assertNotIn(word, script)
        self.assertLess((self.site / "index.html").stat().st_size, 2_000_000)

    def test_anchor_can_be_a_pinned_case(self):
        name = self.every[0].name
        self.assertEqual(
            run("dashboard", self.folder / "runs", "--out", self.folder / "pinned", "--anchor", name)[0], 0
        )
        self.assertIn("ratio to pinned case", (self.folder / f"pinned/case/{self.every[0].slug}.html").read_text())
        code, _, error = run("dashboard", self.folder / "runs", "--out", self.folder / "pinned", "--anchor", "rms_norm")
        self.assertEqual(code, 2)
        self.assertIn("it must be one", error)


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
