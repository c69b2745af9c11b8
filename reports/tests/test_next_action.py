# SPDX-License-Identifier: Apache-2.0
"""Tests of the next-action part of the report. Run: python3 reports/tests/test_next_action.py"""
import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import sample  # noqa: E402
from tigon_report import __main__ as program  # noqa: E402
from tigon_report import figures as draw  # noqa: E402
from tigon_report import next_action  # noqa: E402


def predictor(name, top1, published=None, reason="", parameters=0):
    record = {"record": "next_action", "predictor": name, "data": "made-up course of 3680 resources, seed 1",
              "published": published, "parameters": parameters, "seconds_s": 1.5, "seed": 1, "reason": reason}
    for key, value in (("top1", top1), ("top10", None if top1 is None else 0.99)):
        record |= {key: value, key + "_low": None if value is None else value - 0.01,
                   key + "_high": None if value is None else value + 0.01}
    return record


def gap(better, worse, value, holds):
    return {"record": "next_action_gap", "better": better, "worse": worse, "top1": value, "top1_low": value - 0.002,
            "top1_high": value + 0.002, "wanted": "wider than its interval", "holds": holds, "seed": 1}


def records():
    return [predictor("syllabus", 0.26, 0.23), predictor("6-gram", 0.73, 0.704, parameters=120345),
            predictor("LSTM", 0.75, 0.722, parameters=500000),
            predictor("transformer", 0.751, parameters=512192),
            predictor("true law", 0.77, reason="no predictor can expect more"),
            gap("6-gram", "syllabus", 0.47, True), gap("LSTM", "6-gram", 0.0125, False)]


class NextActionTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def report(self, extra):
        """(exit code, the section on convergence) of a report on a run with these records."""
        (self.folder / "records.jsonl").write_text(sample.text(sample.host_run() + extra))
        with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
            code = program.main(["report", str(self.folder), "--recorded", str(self.folder / "recorded")])
        html = (self.folder / "training.html").read_text()
        return code, html.split('id="convergence"')[1].split("</section>")[0]

    def test_predictors_stand_beside_published_figures_and_the_bound(self):
        code, section = self.report(records())
        self.assertEqual(code, 0)
        part = section.split("What a learner does next")[1].split("<h3>")[0]
        for text in ("made-up course of 3680 resources, seed 1", "of other data", "26.0 % (25.0 to 27.0)", "23.0 %",
                     "6-gram", "120,345", "70.4 %", "75.0 % (74.0 to 76.0)", "72.2 %", "no predictor can expect more",
                     "+47.00 (+46.80 to +47.20)", "+1.25 (+1.05 to +1.45)"):
            self.assertIn(text, part)
        rows = {row.split("<td>")[1].split("</td>")[0]: row for row in part.split("<tr>") if "<td>" in row}
        self.assertIn(">holds<", rows["6-gram − syllabus"])
        self.assertIn(">does not hold<", rows["LSTM − 6-gram"])
        summary = (self.folder / "summary.md").read_text()
        self.assertIn("| LSTM | 75.0 % (74.0 to 76.0) | 72.2 % | 99.0 % (98.0 to 100.0) |", summary)
        self.assertIn("| LSTM − 6-gram | +1.25 (+1.05 to +1.45) | wider than its interval | does not hold |", summary)

    def test_the_figure_has_bars_marks_and_the_bound(self):
        self.report(records())
        for theme in ("light", "dark"):
            svg = (self.folder / "figures" / f"next-action-{theme}.svg").read_text()
            for text in ("syllabus", "6-gram", "LSTM", "transformer", "published, on other data", "the true law"):
                self.assertIn(text, svg)

    def test_what_has_no_number_is_in_the_table_only(self):
        own = [predictor("syllabus", None, 0.23, reason="these data have no syllabus"), predictor("LSTM", 0.5, 0.722)]
        code, section = self.report(own)
        self.assertEqual(code, 0)
        self.assertIn("these data have no syllabus", section)
        svg = (self.folder / "figures" / "next-action-light.svg").read_text()
        self.assertNotIn("syllabus", svg)
        self.assertNotIn("the true law", svg)
        self.assertIsNone(next_action.figure(draw.Figures(self.folder / "none"), own[:1]))

    def test_a_run_without_it_shows_nothing_of_it(self):
        code, section = self.report([])
        self.assertEqual(code, 0)
        self.assertNotIn("What a learner does next", section)

    def test_figures_of_other_data_are_not_measured_over_claimed(self):
        claim = {**sample.claim("top-1 of a paper", "other data", 0.7, "70.0%"), "experiment": "next_action"}
        self.report([claim])
        svg = (self.folder / "figures" / "claims-light.svg").read_text()
        self.assertNotIn("top-1 of a paper", svg)


if __name__ == "__main__":
    unittest.main()
