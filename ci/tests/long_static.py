# SPDX-License-Identifier: Apache-2.0
"""Sees the static gate block a rise in traffic of a real kernel. Usage: long_static.py BUILD_FOLDER (a host build)."""
import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "ci"), str(ROOT / "reports"), str(ROOT / "ci/tests"), str(ROOT / "harness/trees")]

import plants  # noqa: E402
from tigon_gate import __main__ as program  # noqa: E402
from tigon_report import command  # noqa: E402

BUILD = pathlib.Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else None


class TrafficTest(unittest.TestCase):
    def test_second_read_of_an_input_blocks(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            head = folder / "tigon"
            plants.planted_program("traffic", BUILD, head)
            out = io.StringIO()
            words = ["--static", "--only", "host", "--op", "swiglu", "--base-program", str(BUILD / "bin/tigon"),
                     "--head-program", str(head), "--json", str(folder / "records.jsonl")]
            with contextlib.redirect_stdout(out):
                code = command.run("gate", program.main, words)
            self.assertEqual(code, 3, out.getvalue())
            blocked = [line for line in out.getvalue().splitlines() if line.startswith("  blocks: bytes loaded")]
            self.assertEqual(len(blocked), 1, out.getvalue())
            self.assertIn("swiglu/forward", blocked[0])
            self.assertRegex(out.getvalue(), r"because of (swiglu::)?stream_kernel<.*Forward")


if __name__ == "__main__":
    unittest.main()
