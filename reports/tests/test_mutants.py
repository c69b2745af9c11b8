# SPDX-License-Identifier: Apache-2.0
"""Tests of the report's section of planted faults. Run: python3 reports/tests/test_mutants.py"""
import unittest

import sample
from command_test import CommandTest
from tigon_report import load, tables


def fault(name, outcome="caught", dtype="bf16", reason="y[0] is wrong", **more):
    return {"record": "mutant", "mutant": name, "what": f"<{name}>", "catalogue": 2, "group": "numeric", "op": "rope",
            "pass": "forward", "dtype": dtype, "executor": "fast", "outcome": outcome, "verdict": "passed",
            "case_id": "rope/forward/fused/bf16/T=3", "reason": reason, "cases": 1, "seconds_s": 0.1, **more}


def comparator(name, outcome="caught"):
    return {"record": "mutant", "mutant": name, "what": name, "catalogue": 0, "group": "comparator", "outcome": outcome,
            "reason": "a test"}


class MutantsTest(CommandTest):
    def report(self, faults):
        return *self.report_of([sample.header(), *faults]), tables.mutants(load.load_run(self.folder))

    def test_score_counts_per_group_op_and_dtype(self):
        _, summary, score = self.report([
            fault("rope.a"), fault("rope.b", "survived"), fault("rope.a", dtype="f32"), fault("rope.c", "invalid", "f32"),
            fault("rope.d", "equivalent", "f32", "nothing is rounded"), fault("rope.e", "not_applicable"),
            comparator("accepts_nan")])
        self.assertEqual((score["caught"], score["planted"]), (3, 5))
        self.assertEqual(score["rows"][0]["scores"], {"bf16": (1, 2), "f32": (1, 2)})
        self.assertEqual(score["rows"][1]["scores"], {"": (1, 1)})
        self.assertIn("3 of 5 planted faults caught.", summary)
        self.assertIn("**survived** `rope.b`", summary)

    def test_sampled_mutants_have_one_score_whatever_caught_them(self):
        _, _, score = self.report([fault("a.1", group="sampled"), fault("b.2", "survived", "f32", group="sampled")])
        self.assertEqual(score["rows"][0]["scores"], {"": (1, 2)})

    def test_page_names_what_was_not_caught_and_proves_equivalents(self):
        pages, _, _ = self.report([fault("rope.b", "survived"), fault("rope.d", "equivalent", "f32", "nothing is rounded")])
        for name in ("trust.html", "rope.html"):
            self.assertIn('id="mutants"', pages[name])
            self.assertIn("0 of 1 were caught", pages[name])
        for text in ("&lt;rope.b&gt;", "rope forward f32", "nothing is rounded"):
            self.assertIn(text, pages["rope.html"])
            self.assertNotIn(text, pages["trust.html"])  # nothing twice

    def test_faults_of_no_op_are_named_with_the_score(self):
        pages, _, _ = self.report([fault("rope.a"), comparator("accepts_nan", "survived")])
        self.assertIn("accepts_nan", pages["trust.html"])
        self.assertNotIn("accepts_nan", pages["rope.html"])

    def test_a_run_without_planted_faults_has_no_such_section(self):
        pages, summary, _ = self.report([sample.check()])
        for page in pages.values():
            self.assertNotIn('id="mutants"', page)
        self.assertNotIn("planted", summary)


if __name__ == "__main__":
    unittest.main()
