# SPDX-License-Identifier: Apache-2.0
"""What ci/layers.py refuses, in trees of a few files. Run: python3 ci/tests/test_layers.py."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import layers  # noqa: E402

ARROWS = {"kernels/op": {"kernels/signature"}, "kernels/signature": set(), "ci": {"reports"}, "reports": set()}
FILES = {
    "kernels/rope/rope.cu": '#include "kernels/signature/signature.h"\n',
    "kernels/signature/signature.h": "#pragma once\n",
    "ci/tigon_gate/__init__.py": "",
    "ci/tigon_gate/decide.py": "from tigon_report import units\n",
    "reports/tigon_report/__init__.py": "",
}


class LayersTest(unittest.TestCase):
    def found(self, files=None, arrows=None):
        with tempfile.TemporaryDirectory() as root:
            for name, text in {**FILES, **(files or {})}.items():
                path = pathlib.Path(root) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            for words in (["init", "-q"], ["add", "-A"]):
                subprocess.run(["git", "-C", root, *words], check=True)
            return layers.violations(root, {**ARROWS, **(arrows or {})})

    def test_a_tree_that_uses_every_arrow_passes(self):
        self.assertEqual(self.found(), [])

    def test_an_include_against_the_arrows_is_named(self):
        found = self.found({"kernels/signature/axis.h": '#include "kernels/rope/rope.h"\n'})
        self.assertEqual(found, ["kernels/signature/axis.h: includes kernels/rope/rope.h: "
                                 "kernels/signature may not include kernels/op"])

    def test_an_import_against_the_arrows_is_named(self):
        found = self.found({"reports/tigon_report/load.py": "    import tigon_gate.decide\n"})
        self.assertEqual(found, ["reports/tigon_report/load.py: imports tigon_gate: reports may not include ci"])

    def test_every_module_of_an_import_is_seen(self):
        found = self.found({"reports/tigon_report/load.py": "import json, tigon_gate.decide as d\n"})
        self.assertEqual(found, ["reports/tigon_report/load.py: imports tigon_gate: reports may not include ci"])

    def test_what_cmake_writes_is_seen(self):
        found = self.found({"kernels/signature/all.h.in": "@TIGON_OP_INCLUDES@\n"})
        self.assertEqual(found, ["kernels/signature/all.h.in: includes @TIGON_OP_INCLUDES@: "
                                 "kernels/signature may not include kernels/op"])

    def test_an_arrow_that_no_include_uses_is_named(self):
        found = self.found(arrows={"kernels/signature": {"kernels/op"}})
        self.assertEqual(found, ["ci/layers.py: kernels/signature -> kernels/op: nothing uses this arrow; take it out"])

    def test_an_arrow_that_no_import_uses_is_named(self):
        found = self.found(arrows={"reports": {"ci"}})
        self.assertEqual(found, ["ci/layers.py: reports -> ci: nothing uses this arrow; take it out"])

    def test_tests_may_use_anything_and_use_up_no_arrow(self):
        self.assertEqual(self.found({"kernels/signature/tests/t.cpp": '#include "kernels/rope/rope.h"\n'}), [])


if __name__ == "__main__":
    unittest.main()
