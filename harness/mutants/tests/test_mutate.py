#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which sources tigon-mutate writes for faults on one op. Usage: test_mutate.py TIGON_MUTATE"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

FAULT = """fault: caller.zero_is_one
what: the shared number is another
on: caller forward
file: kernels/shared/number.h
expression:
- 0.0f
+ 1.0f
"""
SOURCES = {
    "kernels/shared/number.h": "TIGON_DEVICE float number() { return 0.0f; }\n",
    "kernels/called/called.h": "void called();\n",
    "kernels/called/called.cu": '#include "kernels/called/called.h"\n#include "kernels/shared/number.h"\n',
    "kernels/caller/caller.cu": '#include "kernels/called/called.h"\n',
    "kernels/stranger/stranger.cu": '#include "kernels/shared/number.h"\n',
}


class MutateTest(unittest.TestCase):
    def test_the_source_of_an_op_that_is_called_is_compiled_with_its_faults(self):
        with tempfile.TemporaryDirectory() as folder:
            root, out = pathlib.Path(folder, "root"), pathlib.Path(folder, "out")
            for name, text in SOURCES.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            faults = pathlib.Path(folder, "caller.faults")
            faults.write_text(FAULT)
            subprocess.run([MUTATE, root, out, faults, "--", *SOURCES], check=True)
            written = {name: (out / name).read_text() for name in SOURCES}
        self.assertIn("planted", written["kernels/shared/number.h"])
        self.assertIn(SOURCES["kernels/called/called.cu"], written["kernels/called/called.cu"])
        self.assertEqual(written["kernels/stranger/stranger.cu"], "")  # nobody calls it


if __name__ == "__main__":
    MUTATE = sys.argv.pop(1)
    unittest.main()
