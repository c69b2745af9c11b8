#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What gcov says of several instantiations is one count of each line and branch."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from tigon_lines import __main__ as command  # noqa: E402
from tigon_lines import gcov  # noqa: E402


def line(number, count, *branches):
    return {"line_number": number, "count": count,
            "branches": [{"count": taken, "throw": throw} for taken, throw in branches]}


class Gcov(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()

    def collected(self, *files):
        documents = [{"current_working_directory": str(self.root / "build"), "files": [{"file": name, "lines": lines}]}
                     for name, lines in files]
        return gcov.collect(documents, self.root)

    def test_a_line_is_taken_if_any_instantiation_takes_it(self):
        name = "../kernels/norm/rows.h"
        files = self.collected((name, [line(3, 0, (0, False), (0, False)), line(4, 0)]),
                               (name, [line(3, 5, (5, False), (0, False), (0, True)), line(5, 0)]))
        self.assertEqual(list(files), ["kernels/norm/rows.h"])
        self.assertEqual(gcov.row("f", files["kernels/norm/rows.h"]),
                         {"file": "f", "lines": 3, "lines_met": 1, "branches": 2, "branches_met": 1, "lines_missing": [4, 5],
                          "branches_missing": [3]})

    def test_branches_of_exceptions_are_none(self):
        files = self.collected(("../kernels/a/a.cu", [line(1, 1, (0, True))]))
        self.assertEqual(gcov.row("f", files["kernels/a/a.cu"])["branches"], 0)

    def test_what_is_no_kernel_is_left_out(self):
        self.assertEqual(dict(self.collected(("/usr/include/c++/12/map", [line(1, 1)]), ("../kernels/simt/simt.h", [line(1, 1)]),
                                             ("../harness/a.h", [line(1, 1)]))), {})

    def test_lines_are_shown_as_ranges(self):
        self.assertEqual(command.ranges([3, 7, 8, 9, 11]), "3, 7-9, 11")
        self.assertEqual(command.ranges([]), "")


if __name__ == "__main__":
    unittest.main()
