#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the dashboard: the site of a long history, its pages, links, labels and bytes."""

import csv
import filecmp
import json
import pathlib
import re
import shutil
import tempfile
import unittest

import site_check
from dashboard_test import read, run
from tigon_report.dashboard import case_figure


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


if __name__ == "__main__":
    unittest.main()
