# SPDX-License-Identifier: Apache-2.0
"""Tests of the grid in the report. Run: python3 reports/tests/test_grid.py"""
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
from tigon_report import grid  # noqa: E402

WIDTHS, ROWS = (3000, 5000, 7168, 9001, 12288, 16384), (256, 511, 1024, 2049, 4096, 8192)


def cell(t, v, share, impl="fused", seconds=1e-3):
    return {**sample.bench(impl, t, v, seconds, basis="graph"), "share_of_yardstick": share,
            "case_id": f"cross_entropy/forward_backward/{impl}/bf16/T={t},V={v},inputs=normal,seed=42"}


class GridTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def section(self, records):
        (self.folder / "records.jsonl").write_text(sample.text([sample.header("cuda"), *records]))
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(program.main(["report", str(self.folder), "--recorded", str(self.folder / "none")]), 0)
        page = (self.folder / "cross_entropy.html").read_text()
        section = page.split('id="grid"')[1].split("</section>")[0] if 'id="grid"' in page else ""
        return re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", section))

    def test_the_least_the_fifth_percentile_and_the_median_of_large_cells(self):
        shares = {(t, v): 0.9 for t in ROWS for v in WIDTHS}
        shares[8192, 5000], shares[256, 3000] = 0.5, 0.1  # the second moves 3 MB
        text = self.section([cell(t, v, share) for (t, v), share in shares.items()])
        self.assertIn("36 cells", text)
        self.assertRegex(text, r"share of a copy of its bytes \d+ 0.500 [\d.]+ 0.900 T=8192 V=5000")
        self.assertTrue((self.folder / "figures/grid-cross_entropy-forward_backward-bf16-graph-light.svg").is_file())

    def test_the_fastest_peer_counts(self):
        cells = [cell(t, v, 0.9) for t in ROWS for v in WIDTHS]
        cells += [cell(t, v, 0.5, "torch", 3e-3) for t in ROWS for v in WIDTHS] + [cell(8192, 9001, 0.9, "liger", 0.8e-3)]
        self.assertRegex(self.section(cells), r"time of the fastest peer over ours \d+ 0.800 [\d.]+ 3.00 T=8192 V=9001")

    def test_a_sweep_is_no_grid(self):
        self.assertEqual(self.section([cell(t, v, 0.9) for t in ROWS for v in WIDTHS[:2]]), "")

    def test_quantiles(self):
        values = list(range(1, 21))
        self.assertEqual([grid.nearest_rank(values, part) for part in (0, 0.05, 0.5, 1)], [1, 1, 10, 20])


if __name__ == "__main__":
    unittest.main()
