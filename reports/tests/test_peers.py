# SPDX-License-Identifier: Apache-2.0
"""Tests of peers in the report. Run: python3 reports/tests/test_peers.py"""
import contextlib
import io
import pathlib
import re
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import sample  # noqa: E402
from tigon_report import __main__ as program  # noqa: E402
from tigon_report import peers  # noqa: E402


def bench(impl, seconds, executor="cuda", **more):
    record = sample.bench(impl, 1024, 32000, seconds, executor=executor, basis="cold" if executor == "cuda" else "wall")
    return {**record, "samples_s": [seconds * (1 + 0.001 * (i % 5)) for i in range(30)], "case_id": f"cell/{impl}", **more}


def refused(impl, reason, executor="cuda"):
    return bench(impl, 1, executor, median_s=None, q1_s=None, q3_s=None, samples_s=[], n=0, verdict="unsupported", reason=reason,
                 share_of_copy=None)


def accuracy(impl, errors):
    return {**sample.bench(impl, 16, 1000, 1), "record": "accuracy", "case_id": f"small/{impl}", "seed": 42,
            "outputs": [{"name": name, "relative_l2": error, "error_over_budget": error and 100 * error, "largest_error": 1}
                        for name, error in errors.items()]}


class PeersTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def page(self, records, device="cuda"):
        """The section of the op's page as text, and the whole page."""
        (self.folder / "records.jsonl").write_text(sample.text([sample.header(device), *records]))
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(program.main(["report", str(self.folder), "--recorded", str(self.folder / "none")]), 0)
        page = (self.folder / "cross_entropy.html").read_text()
        section = page.split('id="peers"')[1].split("</section>")[0] if 'id="peers"' in page else ""
        return re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", section)), page

    def test_ahead_and_behind_alike(self):
        text, page = self.page([bench("fused", 1e-3), bench("torch", 2e-3), bench("quack", 0.5e-3), bench("liger", 1.001e-3)])
        self.assertIn("ahead in 1, level in 1, behind in 1 measurements", text)
        self.assertRegex(text, r"torch cold 2.\d+ ms [^()]+ 2.00 \([^)]+\) ahead")
        self.assertRegex(text, r"quack cold 50\d.\d µs [^()]+ 0.500 \([^)]+\) behind")
        self.assertRegex(text, r"liger cold [^()]+ 1.00 \([^)]+\) level")
        self.assertTrue((self.folder / "figures/peers-cross_entropy-light.svg").is_file())
        self.assertIn("figures/peers-cross_entropy-light.svg", page)
        self.assertIn("| cross_entropy | 1 | 1 | 1 |", (self.folder / "summary.md").read_text())

    def test_missing_peers_are_named_with_the_reason(self):
        text, _ = self.page([bench("fused", 1e-3), bench("torch", 2e-3), refused("cce", "not importable: no cce")])
        self.assertIn("cce ran nowhere: not importable: no cce", text)
        self.assertNotIn("torch ran nowhere", text)

    def test_no_time_of_a_cpu_is_shown(self):
        text, _ = self.page([bench("fused", 1e-3, "fast"), bench("torch", 0.002345, "external")], "host")
        self.assertIn("no time of them is shown", text)
        self.assertNotRegex(text, r"\d (ms|µs|s) ")
        self.assertFalse((self.folder / "figures/peers-cross_entropy-light.svg").exists())

    def test_errors_are_of_the_outputs_that_all_have(self):
        text, _ = self.page([bench("fused", 1e-3), bench("torch", 2e-3), accuracy("fused", {"loss": 0.001, "lse": 0.9}),
                             accuracy("torch", {"loss": 0.002})])
        self.assertRegex(text, r"0.00100 0.100 passed .* 0.00200 0.200 passed")
        self.assertNotIn("0.900", text)

    def test_an_error_that_is_not_finite(self):
        text, _ = self.page([bench("fused", 1e-3), bench("torch", 2e-3), accuracy("torch", {"loss": None})])
        self.assertIn("inf inf passed", text)

    def test_ceilings_beside_a_block_are_not_those_of_the_run(self):
        ceiling = {"record": "ceiling", "name": "copy", "value": 4e12, "unit": "bytes_per_s"}
        _, page = self.page([ceiling, {**ceiling, "value": 1e12, "block": "cell/torch"}, bench("fused", 1e-3), bench("torch", 2e-3)])
        self.assertIn("copy 4.00 TB/s.", page)
        self.assertNotIn("1.00 TB/s", page)

    def test_without_peers_there_is_no_section(self):
        text, _ = self.page([bench("fused", 1e-3), bench("naive", 2e-3)])
        self.assertEqual(text, "")
        self.assertFalse(peers.is_peer("fused:cluster"))


if __name__ == "__main__":
    unittest.main()
