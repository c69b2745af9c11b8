# SPDX-License-Identifier: Apache-2.0
"""Tests of the report's section of soak runs. Run: python3 reports/tests/test_soak.py"""
import unittest

import sample
from command_test import CommandTest

SEEDS = {"record": "soak", "mode": "seeds", "executor": "fast", "op": "rope", "dtype": "bf16", "trials": 2000,
         "false_alarms": 0, "skipped": 3, "first_seed": 1, "alarms": [], "seconds_s": 12.5}


class SoakTest(CommandTest):
    def report(self, *records):
        return self.report_of([sample.header(), *records])

    def test_no_alarm_is_a_bound_on_the_rate(self):
        pages, summary = self.report(SEEDS, {**SEEDS, "op": "rms_norm", "trials": 1000})
        html = pages["trust.html"]
        self.assertIn("0 false alarms of the judge in 3,000 random cases", pages["index.html"])
        self.assertIn("0 of 3,000 cases, so with 95 % confidence fewer than one in 1,002", html)
        self.assertIn("<td>rope</td><td>bf16</td><td>fast</td>", html)
        self.assertIn("0 false alarms of the judge in 3,000 random cases", summary)

    def test_alarms_are_shown(self):
        alarm = {"case_id": "rope/forward/fused/bf16/T=7", "verdict": "incorrect_numerical", "reason": "<y> is off"}
        pages, summary = self.report({**SEEDS, "false_alarms": 1, "alarms": [alarm]})
        html = pages["trust.html"]
        self.assertIn("1 of 2,000 cases.", html)
        self.assertIn("&lt;y&gt; is off", pages["index.html"])
        self.assertIn("<code>rope/forward/fused/bf16/T=7</code> &lt;y&gt; is off", html)
        self.assertIn("**incorrect_numerical** `rope/forward/fused/bf16/T=7`", summary)

    def test_repeats_headroom_and_rounding(self):
        pages, _ = self.report(
            {"record": "soak", "mode": "repeat", "executor": "fast", "repeats": 5, "cases": 4321, "failed": 0,
             "differing_verdicts": 1, "differing": ["rope/x"], "seconds_s": None},
            {"record": "headroom", "op": "rope", "pass": "forward", "impl": "fused", "dtype": "f32", "output": "y",
             "executor": "fast", "cases": 9, "max": 0.75, "p99": 0.5, "p50": 0.25},
            sample.check(op="rope"),
            {"record": "rounding", "name": "exp", "group": "elementary", "executor": "fast", "worst": 1.5,
             "allowed": 2.0, "samples": 1000000})
        html = pages["trust.html"]
        self.assertIn("ran 5 times on executor fast: 4,321 cases, 0 failed, 1 changed their verdict: <code>rope/x", html)
        for page in (html, pages["rope.html"]):  # the op's own page has its slack, too
            self.assertIn('<td class="n">0.750</td>', page)
        self.assertIn("<td>exp</td><td>elementary</td><td>fast</td><td class=\"n\">1,000,000</td>", html)

    def with_recorded(self, *records):
        self.write("recorded/judge/x.jsonl", records)
        return self.report_of([sample.header(), sample.check()])[0]["trust.html"]

    def test_a_recorded_soak_is_shown_and_named_so(self):
        html = self.with_recorded(sample.header(), SEEDS)
        self.assertIn('<section class="recorded" id="recordedjudge0">', html)
        self.assertIn("reports/recorded/judge/x.jsonl", html)
        self.assertIn("0 of 2,000 cases", html)

    def test_recorded_runs_of_one_file_are_shown_as_one(self):
        other = {"run_id": "20260102T120000Z-00000001"}
        html = self.with_recorded(sample.header(), SEEDS, {**sample.header(), **other, "command": ["./tigon", "soak", "x"]},
                                  {**SEEDS, **other, "op": "rms_norm"})
        self.assertIn("0 of 4,000 cases", html)
        self.assertIn("<code>./tigon soak x</code>", html)
        self.assertNotIn('id="recordedjudge1"', html)

    def test_a_run_without_soak_has_no_such_section(self):
        self.assertNotIn('id="soak"', self.report(sample.check())[0]["trust.html"])


if __name__ == "__main__":
    unittest.main()
