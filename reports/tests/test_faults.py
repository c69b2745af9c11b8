"""Tests of the report's section of faults of the world. Run: python3 reports/tests/test_faults.py"""
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


def fault(name, outcome="survived", reason="", exit_code=5):
    return {"record": "fault", "fault": f"<{name}>", "group": "files", "expected": "exit 5", "outcome": outcome,
            "reason": reason, "verdict": "", "exit_code": exit_code, "seconds_s": 0.25}


class FaultsTest(unittest.TestCase):
    def report(self, records):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder)
            (path / "records.jsonl").write_text(sample.text([sample.header(), *records]))
            with contextlib.redirect_stdout(io.StringIO()):
                self.assertEqual(program.main(["report", folder, "--recorded", folder + "/none"]), 0)
            return (path / "index.html").read_text(), (path / "summary.md").read_text()

    def test_each_fault_is_shown_and_those_that_were_injected_are_counted(self):
        html, summary = self.report([fault("disk full"), fault("hang", "not_survived", "no verdict", None),
                                     fault("no GPU", "skipped", "no CUDA build", None)])
        self.assertIn('<a href="#faults">', html)
        self.assertIn("1 of 2 were survived, 1 could not be injected on this machine", html)
        self.assertIn("&lt;disk full&gt;", html)
        self.assertIn('<span class="badge bad">not survived</span> no verdict', html)
        self.assertIn("Not injected here: files, &lt;no GPU&gt;: no CUDA build", html)
        self.assertIn("1 of 2 faults of the world survived.", summary)
        self.assertIn("**not survived** files, <hang>: no verdict", summary)
        self.assertNotIn("disk full", summary)

    def test_a_run_without_faults_has_no_such_section(self):
        html, summary = self.report([sample.check()])
        self.assertNotIn('id="faults"', html)
        self.assertNotIn("faults of the world", summary)


if __name__ == "__main__":
    unittest.main()
