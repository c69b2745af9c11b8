#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tigon check --lines: what few cases leave out of a kernel's source, more of them take.

  long_lines.py BUILD    the build folder of the programs
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(sys.argv.pop()).resolve() if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[3] / "build/host"


class Lines(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        subprocess.run(["cmake", "--build", BUILD, "--target", "tigon-covered"], check=True, stdout=subprocess.DEVNULL)

    def rows(self, *words):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "records.jsonl")
            done = subprocess.run([BUILD / "bin/tigon", "check", "--executor", "fast", "--lines", "--json", file, *words],
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            records = [json.loads(line) for line in file.read_text().splitlines()]
        return {record["file"]: record for record in records if record["record"] == "lines"}, done.stdout

    def test_an_option_that_no_case_has_is_a_line_that_none_takes(self):
        one, text = self.rows("--case", "rope/forward/fused/bf16/T=3,Q=2,K=1,D=16")
        more, _ = self.rows("--op", "rope", "--impl", "fused", "--dtype", "bf16")
        file = "kernels/rope/rope.cu"
        self.assertIn(f"not taken: {file}: ", text)
        self.assertGreater(one[file]["lines_met"], 10)
        self.assertGreater(more[file]["lines_met"], one[file]["lines_met"])
        self.assertGreater(more[file]["branches_met"], one[file]["branches_met"])
        self.assertLess(len(more[file]["lines_missing"]), len(one[file]["lines_missing"]))
        self.assertIn("kernels/device/launch.h", one)


if __name__ == "__main__":
    unittest.main()
