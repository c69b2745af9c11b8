# SPDX-License-Identifier: Apache-2.0
"""Tests of what reports show of a training that was interrupted. Run: python3 reports/tests/test_training.py"""
import re
import unittest

import sample
from command_test import CommandTest, full

KINDS = ("converge", "converge_verdict")


def interrupted(*trainings):
    """A run that ended within its stage `converge`, after these trainings; there is no verdict."""
    records = [record for record in sample.host_run() if record["record"] not in KINDS]
    records[-1] |= {"interrupted": True}
    return [*records[:-1], *trainings, records[-1]]


NAIVE = interrupted(sample.converge("naive", [8.3, 7.1]))
BOTH = interrupted(sample.converge("naive", [8.3, 7.1]), {**sample.converge("fused", [8.3]), "complete": False})
STOPPED_EARLY = interrupted({**sample.converge("naive", [None]), "loss": [], "held_out_loss": None, "complete": False})


class InterruptedTest(CommandTest):
    def test_the_summary_has_what_is_there(self):
        for records, row in ((NAIVE, "| not finished | 7.1000 | – | – | – |"), (BOTH, "| not finished | 7.1000 | 8.3000 | – | – |"),
                             (STOPPED_EARLY, "| not finished | – | – | – | – |")):
            self.assertIn(f"| tiny | bf16 {row}", self.report_of(records)[1])

    def test_the_page_says_that_it_is_not_finished(self):
        for records in (NAIVE, BOTH, STOPPED_EARLY):
            section = self.report_of(records)[0]["training.html"].split("<h3>tiny, bf16")[1].split("</section>")[0]
            self.assertIn('<span class="badge dim">not finished</span>', section)
            self.assertIn("<td>naive</td>", section)
            self.assertEqual("<td>fused</td>" in section, records is BOTH)

    def test_a_finished_one_has_its_verdict(self):
        pages, summary = self.report_of(sample.host_run())
        self.assertIn("| tiny | bf16 | passed |", summary)
        self.assertNotIn("not finished", summary + pages["training.html"])

    def test_the_dashboard_says_it_too(self):
        run = self.write("run.jsonl", [full(record) for record in NAIVE])
        code, _, errors = self.tigon("dashboard", run, "--out", self.folder / "site")
        self.assertEqual(code, 0, errors)
        (heading,) = re.findall("<h3>.*</h3>", (self.folder / "site/convergence.html").read_text())
        self.assertEqual(heading, '<h3>tiny, bf16 <span class="badge dim">not finished</span></h3>')


if __name__ == "__main__":
    unittest.main()
