# SPDX-License-Identifier: Apache-2.0
"""What ci/page_commands.py finds. Run: python3 ci/tests/test_page_commands.py."""
import pathlib
import sys
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import page_commands  # noqa: E402

HELP = {"check": "Options:\n  -h,--help   Print\n  --op TEXT ...   ops\n  -a,--axis TEXT   values\n"}


class PageCommandsTest(unittest.TestCase):
    def wrong(self, line):
        commands = [("page:1", command, page_commands.OPTION.findall(rest)) for command, rest in page_commands.COMMAND.findall(line)]
        with mock.patch.object(page_commands, "help_of", lambda command, _: HELP.get(command, "")):
            return page_commands.wrong(None, commands)

    def test_what_exists_is_right(self):
        for line in ("./tigon check --op rope -a T=1", "run `./tigon check`, then `--nosuch`", "./tigon --device cuda check  # --axis", "`./tigon` COMMAND",
                     "./tigon check --op 'rope/forward/T=3-x'"):
            self.assertEqual(self.wrong(line), [], line)

    def test_a_command_that_is_gone(self):
        self.assertEqual(self.wrong("`./tigon chekc --op rope`"), ["page:1: ./tigon chekc: no such command"])

    def test_an_option_that_is_gone(self):
        self.assertEqual(self.wrong("./tigon --device host check --nosuch  # --op, [-z]"),
                         ["page:1: ./tigon check has no --nosuch", "page:1: ./tigon check has no -z"])

    def test_the_pages_of_this_tree_show_commands(self):
        pages = {where.partition(":")[0] for where, _, _ in page_commands.shown()}
        self.assertTrue({"README" + ".md", "reports/README" + ".md", "CONTRIBUTING" + ".md"} <= pages, pages)


if __name__ == "__main__":
    unittest.main()
