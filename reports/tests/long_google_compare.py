# SPDX-License-Identifier: Apache-2.0
"""The real compare.py of Google Benchmark reads what tigon export writes. Installs it with apt."""
import pathlib
import re
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import install  # noqa: E402
import sample  # noqa: E402
from command_test import CommandTest, full, full_run  # noqa: E402

COMPARE = pathlib.Path("/usr/share/benchmark/compare.py")


class CompareToolTest(CommandTest):
    @classmethod
    def setUpClass(cls):
        if not COMPARE.exists() and not install.apt("libbenchmark-tools"):
            install.skip("no compare.py of Google Benchmark, and apt may not be used to install libbenchmark-tools")
        needs = [install_python for install_python in ("/usr/bin/python3", sys.executable)
                 if subprocess.run([install_python, "-c", "import scipy"], capture_output=True).returncode == 0]
        if not needs and install.apt("python3-scipy"):
            needs = ["/usr/bin/python3"]
        if not needs:
            install.skip("compare.py needs scipy, and apt may not be used to install python3-scipy")
        cls.python = needs[0]

    def exported(self, name, run_id, factor):
        """A run with ten samples a case, `factor` times as long."""
        samples = [1e-3 * factor * (1 + i / 1000) for i in range(10)]
        run = [full({**sample.bench(impl, 64, v, 1e-3 * factor), "samples_s": samples, "run_id": run_id}, run_id)
               for impl in ("fused", "naive") for v in (1024, 2048)]
        failed = full({**sample.bench("naive", 64, 4096, 1), "verdict": "oom", "median_s": None, "run_id": run_id},
                      run_id)
        path = self.write(f"{name}.jsonl", [full_run(run_id)[0], *run, failed])
        self.assertEqual(self.tigon("export", path, "--format", "google-benchmark", "-o",
                                    self.folder / f"{name}.json")[0], 0)
        return self.folder / f"{name}.json"

    def test_it_sees_the_ratio_and_the_repetitions(self):
        a = self.exported("a", "20260101T120000Z-1a2b3c4d", 1.0)
        b = self.exported("b", "20260102T120000Z-00000001", 1.25)
        done = subprocess.run([self.python, COMPARE, "--no-color", "benchmarks", a, b], text=True, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = re.findall(r"^(\S+/cold)\s+([+-][0-9.]+)\s+([+-][0-9.]+)", done.stdout, re.M)
        changes = [float(change) for name, change, _ in rows if "V=4096" not in name]
        self.assertEqual(len(changes), 4 * 10)
        self.assertTrue(all(abs(change - 0.25) < 1e-3 for change in changes), done.stdout)
        self.assertIn("_pvalue", done.stdout)
        self.assertIn("U Test, Repetitions: 10 vs 10", done.stdout)


if __name__ == "__main__":
    unittest.main()
