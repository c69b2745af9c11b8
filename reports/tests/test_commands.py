# SPDX-License-Identifier: Apache-2.0
"""Tests of the frame of the commands: help with examples, one line for a wrong word, no C++ build in front of them."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

from command_test import CommandTest, full_run, program

LAUNCHER = pathlib.Path(__file__).resolve().parents[2] / "tigon"


class FrameTest(CommandTest):
    def test_every_command_has_help_with_two_examples(self):
        for name in program.COMMANDS:
            with self.assertRaises(SystemExit) as done:
                self.tigon(name, "--help")
            self.assertEqual(done.exception.code, 0)
            done = subprocess.run([sys.executable, "-m", "tigon_report", name, "--help"], text=True,
                                  capture_output=True,
                                  env={**os.environ, "PYTHONPATH": str(LAUNCHER.parent / "reports")})
            self.assertGreaterEqual(done.stdout.count(f"\n  ./tigon {name} "), 2, name)

    def test_a_wrong_word_is_one_line(self):
        self.refused(2, "no such command; there are report, merge", "mrege")
        for name in program.COMMANDS:
            self.refused(2, f"see ./tigon {name} --help", name, "--nosuch")

    def test_the_launcher_lists_them_and_needs_no_compiler(self):
        tools = self.folder / "bin"
        tools.mkdir()
        for tool in ("bash", "dirname", "cat", "grep"):
            (tools / tool).symlink_to(shutil.which(tool))
        environment = {"PATH": str(tools), "TIGON_PYTHON": sys.executable, "HOME": str(self.folder)}

        def run(*words):
            return subprocess.run([LAUNCHER, *words], text=True, capture_output=True, env=environment)

        usage = run("--help").stdout
        for name in program.COMMANDS:
            self.assertIn(f"  {name} ", usage)
        self.write("a.jsonl", full_run())
        done = run("merge", str(self.folder / "a.jsonl"), "-o", str(self.folder / "b.jsonl"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(run("merge", "nosuch", "-o", "x").returncode, 4)
        wrong = run("mrege")  # said before anything is built
        self.assertEqual((wrong.returncode, wrong.stderr), (2, "tigon: no command 'mrege'; see ./tigon --help\n"))
        declared = (LAUNCHER.parent / "harness/cli/commands.inc").read_text()
        names = set(re.findall(r"^TIGON_COMMAND\(([a-z_]+), ", declared, re.M))
        self.assertIn("check", names)
        for name in names:
            self.assertNotIn("no command", run(name, "--help").stderr, name)

    def test_a_full_disk_and_a_closed_pipe(self):
        path = self.write("a.jsonl", full_run())
        if os.path.exists("/dev/full"):
            self.refused(5, "No space left", "compare", path, path, "--html", "/dev/full")
        words = [sys.executable, "-m", "tigon_report", "export", str(path), "--format", "csv"]
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run(words, stdout=writer, stderr=subprocess.PIPE, text=True,
                              env={**os.environ, "PYTHONPATH": str(LAUNCHER.parent / "reports")})
        os.close(writer)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
