# SPDX-License-Identifier: Apache-2.0
"""What ci/pages.py refuses, in trees of a few files, and how long the first page is. Run: python3 ci/tests/test_pages.py."""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import pages  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE, GONE = "HERE" + ".md", "GONE" + ".md"  # in two parts: this file cites nothing


class PagesTest(unittest.TestCase):
    def missing(self, name, text):
        with tempfile.TemporaryDirectory() as root:
            for path, contents in {HERE: "", f"harness/judge/{HERE}": "", name: text}.items():
                (pathlib.Path(root) / path).parent.mkdir(parents=True, exist_ok=True)
                (pathlib.Path(root) / path).write_text(contents)
            for words in (["init", "-q"], ["add", "-A"]):
                subprocess.run(["git", "-C", root, *words], check=True)
            return pages.missing(root)

    def test_a_page_at_the_root_beside_the_file_or_by_its_path_is_found(self):
        for text in (f"// see {HERE}\n", f"// see harness/judge/{HERE}\n", f"// ({HERE} 4)\n"):
            self.assertEqual(self.missing("harness/run/cases/case.h", text), [])

    def test_a_page_that_is_not_there_is_named_with_its_line(self):
        self.assertEqual(self.missing("harness/run/cases/case.h", f"#pragma once\n// the budget ({GONE} A4)\n"),
                         [f"harness/run/cases/case.h:2: cites {GONE}, which is not in the tree"])

    def test_a_path_that_is_wrong_is_named(self):
        self.assertEqual(self.missing("README.txt", f"harness/run/{HERE}\n"),
                         [f"README.txt:1: cites harness/run/{HERE}, which is not in the tree"])


class FirstPageTest(unittest.TestCase):
    """README is read by those who do not know Tigon yet."""

    text = (ROOT / ("README" + ".md")).read_text(encoding="utf-8")

    def test_it_has_at_most_600_words(self):
        self.assertLessEqual(len(self.text.split()), 600)

    def test_a_paragraph_has_at_most_three_lines(self):
        prose = re.sub(r"^```.*?^```|^\|[^\n]*|^<!-- figures: .*?^<!-- end figures -->", "", self.text, flags=re.M | re.S)
        for paragraph in re.split(r"\n\s*\n", prose):
            self.assertLessEqual(len(paragraph.strip().splitlines()), 3, paragraph)


if __name__ == "__main__":
    unittest.main()
