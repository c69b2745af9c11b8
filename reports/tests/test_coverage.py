# SPDX-License-Identifier: Apache-2.0
"""Tests of what the report shows of a check's coverage. Run: python3 reports/tests/test_coverage.py"""
import unittest

import sample
from command_test import CommandTest

COVERAGE = {"record": "coverage", "file": "kernels/rope/rope.cu", "kernels": 24, "missing": ["rope::rotate_kernel<bf16, 8>"],
            "paths": 14, "pairs": 1200, "met": 300, "open": ["rope forward rotate_kernel<*, 8>: gap"],
            "ruled_out": [{"rule": "no launch with it takes the path", "pairs": ["rope forward rotate_kernel<*, 8>: skew"]}]}


class CoverageTest(CommandTest):
    def test_the_pages_of_trust_and_of_the_op_have_it(self):
        family = {**COVERAGE, "file": "kernels/norm/column_sums.h", "missing": [], "open": []}
        family.pop("ruled_out")  # an older record
        pages, _ = self.report_of([sample.header(), {**sample.check(), "op": "rope"}, COVERAGE, family])
        row = ('<td><code>kernels/rope/rope.cu</code></td><td class="n">24</td><td class="n">23</td><td class="n">14</td>'
               '<td class="n">1,200</td><td class="n">300</td><td class="n">1</td>')
        for name in ("trust.html", "rope.html"):
            self.assertIn(row, pages[name])
            self.assertIn("kernels/rope/rope.cu: 1 not launched", pages[name])
            self.assertIn("kernels/rope/rope.cu: 1 not met", pages[name])
            self.assertIn("kernels/rope/rope.cu: 1 ruled out, no launch with it takes the path", pages[name])
            self.assertIn("rope::rotate_kernel&lt;bf16, 8&gt;", pages[name])
        self.assertIn("kernels/norm/column_sums.h", pages["trust.html"])
        self.assertNotIn("kernels/norm/column_sums.h", pages["rope.html"])

    def test_a_run_without_it_has_no_section(self):
        pages, _ = self.report_of([sample.header(), sample.check()])
        self.assertNotIn('id="coverage"', pages["trust.html"])


if __name__ == "__main__":
    unittest.main()
