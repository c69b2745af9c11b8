# SPDX-License-Identifier: Apache-2.0
"""Tests of the report's section of faults of the world. Run: python3 reports/tests/test_faults.py"""
import unittest

import sample
from command_test import CommandTest


def fault(name, outcome="survived", reason="", exit_code=5):
    return {"record": "fault", "fault": f"<{name}>", "group": "files", "expected": "exit 5", "outcome": outcome,
            "reason": reason, "verdict": "", "exit_code": exit_code, "seconds_s": 0.25}


class FaultsTest(CommandTest):
    def report(self, records):
        return self.report_of([sample.header(), *records])

    def test_each_fault_is_shown_and_those_that_were_injected_are_counted(self):
        pages, summary = self.report([fault("disk full"), fault("hang", "not_survived", "no verdict", None),
                                     fault("no GPU", "skipped", "no CUDA build", None)])
        html = pages["trust.html"]
        self.assertIn("not survived", pages["index.html"])
        self.assertIn("1 of 2 were survived, 1 could not be injected on this machine", html)
        self.assertIn("&lt;disk full&gt;", html)
        self.assertIn('<span class="badge bad">not survived</span> no verdict', html)
        self.assertIn("Not injected here: files, &lt;no GPU&gt;: no CUDA build", html)
        self.assertIn("1 of 2 faults of the world survived.", summary)
        self.assertIn("**not survived** `files, <hang>` no verdict", summary)
        self.assertNotIn("disk full", summary)

    def test_a_run_without_faults_has_no_such_section(self):
        pages, summary = self.report([sample.check()])
        self.assertNotIn('id="faults"', pages["trust.html"])
        self.assertNotIn("faults of the world", summary)


if __name__ == "__main__":
    unittest.main()
