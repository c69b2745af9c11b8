#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The commands of CONTRIBUTING.md, run as written in a copy of the tree.

  long_contributing.py BUILD    the build folder that the copy uses

A command with "# fails: TEXT" must fail and print TEXT, every other must pass. `./tigon ci` runs with a stand-in for
./tigon: what it starts are the tests, of which this is one.
"""

import os
import re
import subprocess
import unittest

import long_new_op
from long_new_op import BUILD, ROOT


def commands():
    """[(command, what it prints when it must fail)] of the page."""
    found = []
    for block in re.findall(r"^```sh\n(.*?)^```", (ROOT / "CONTRIBUTING.md").read_text(), re.M | re.S):
        for line in block.splitlines():
            command, _, comment = line.partition("  #")
            if line and not line.startswith("#"):
                found.append((command.strip(), comment.strip().partition("fails: ")[2]))
    return found


class Contributing(long_new_op.Tree):
    name = "my_norm"

    def environment(self, command):
        variables = dict(os.environ, TIGON_OUT=str(self.folder / "ci"), TIGON_STYLE="true")
        if command.startswith("./tigon ci"):
            variables["TIGON"] = "true"
        return variables

    def use_build(self):
        """The copy's build folder is BUILD until it has an op of its own."""
        (self.tree / "build").mkdir()
        (self.tree / "build" / "host").symlink_to(BUILD)

    def use_own_program(self):
        (self.tree / "build" / "host").unlink()
        self.configure()
        program = self.program()
        stand_in = self.folder / "bin" / "cmake"  # the programs are built
        stand_in.parent.mkdir()
        stand_in.write_text("#!/bin/sh\n")
        stand_in.chmod(0o755)
        folder = self.tree / "build" / "host" / "bin"
        folder.mkdir(exist_ok=True)
        program.rename(folder / program.name)

    def test_commands_run_as_written(self):
        self.must("git", "init", "-q")
        self.must("git", "add", "-A")
        self.must("git", "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", "copy")
        self.use_build()
        known = commands()
        self.assertGreater(len(known), 7)
        self.assertTrue(any(text for _, text in known))
        for command, text in known:
            with self.subTest(command):
                environment = self.environment(command)
                own = f"--op {self.name}" in command
                if own:
                    self.use_own_program()
                    environment["PATH"] = f"{self.folder / 'bin'}:{environment['PATH']}"
                done = subprocess.run(command, shell=True, cwd=self.tree, env=environment, capture_output=True, text=True)
                said = done.stdout[-2000:] + done.stderr[-2000:]
                if text:
                    self.assertNotEqual(done.returncode, 0, said)
                    self.assertIn(text, done.stdout)
                else:
                    self.assertEqual(done.returncode, 0, said)
                if own:  # as before
                    subprocess.run(["rm", "-r", self.tree / "build" / "host"], check=True)
                    (self.tree / "build" / "host").symlink_to(BUILD)
        self.assertEqual(
            (self.tree / "reference/OPS.md").read_text(), (ROOT / "reference/OPS.md").read_text(), "reference/OPS.md is not current"
        )


if __name__ == "__main__":
    unittest.main()
