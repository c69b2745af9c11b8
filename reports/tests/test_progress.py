# SPDX-License-Identifier: Apache-2.0
"""Tests of what a slow command says while it works. Run: python3 reports/tests/test_progress.py"""
import io
import unittest
import unittest.mock

import sample
from command_test import CommandTest
from tigon_report import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


class ProgressTest(unittest.TestCase):
    def test_a_terminal_has_one_line_that_is_empty_at_the_end(self):
        stream = Terminal()
        said = progress.Progress("report", stream)
        for text in ("page 10 of 12", "page 9"):
            said(text)
        said.end()
        shown = "tigon: report: page 9"
        self.assertEqual(stream.getvalue(), f"\rtigon: report: page 10 of 12\r{shown}       \r{' ' * len(shown)}\r")

    def test_elsewhere_it_speaks_every_ten_seconds_at_most(self):
        stream, times = io.StringIO(), iter([0, 1, 9.9, 10.5, 10.5, 20, 21, 21])
        said = progress.Progress("report", stream, lambda: next(times))
        for number in range(1, 6):
            said(f"page {number} of 5")
        said.end()
        self.assertEqual(stream.getvalue(), "tigon: report: page 3 of 5\ntigon: report: page 5 of 5\n")


class ReportTest(CommandTest):
    def said(self, stream):
        (self.folder / "records.jsonl").write_text(sample.text(sample.host_run()))
        with unittest.mock.patch("sys.stderr", stream), unittest.mock.patch("sys.stdout", io.StringIO()):
            from tigon_report import report  # noqa: PLC0415
            self.assertIsNone(report.main([str(self.folder), "--recorded", str(self.folder / "none")]))
        return stream.getvalue()

    def test_a_report_counts_its_pages(self):
        lines = self.said(Terminal()).split("\r")
        pages = len(list(self.folder.glob("*.html")))
        self.assertEqual([line.strip() for line in lines if "page" in line], [f"tigon: report: page {n} of {pages}" for n in range(1, pages + 1)])
        self.assertEqual(lines[-1].strip(), "")

    def test_a_short_report_says_nothing_to_a_file(self):
        with unittest.mock.patch.object(progress, "EVERY_S", 1000):  # whatever else runs on the machine
            self.assertEqual(self.said(io.StringIO()), "")


if __name__ == "__main__":
    unittest.main()
