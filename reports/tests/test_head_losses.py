#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the tables of losses behind heads in shards. Run: python3 reports/tests/test_head_losses.py"""
import pathlib
import sys
import types
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from tigon_report import head_losses  # noqa: E402


def record(variant, seconds, executor="cuda", **more):
    return {"variant": variant, "tokens": 8, "hidden": 4, "classes": 1001, "ranks": 2, "round": 0, "executor": executor, "seconds_s": seconds,
            "peak_bytes": 2**20, "collective_s": None, "exposed_s": None, "dw_error": 0.002, "verdict": "passed", "reason": "", **more}


RECORDS = [record("tigon", [3e-3, 2e-3], collective_s=1e-3, exposed_s=2.5e-4), record("tigon", [2e-3]),
           record("megatron", [], verdict="oom", reason="no memory"), record("products", [1e-3], dw_error=None, peak_bytes=None)]


class HeadLossesTest(unittest.TestCase):
    def test_rows_join_the_rounds(self):
        of_case = head_losses.rows(RECORDS)[8, 4, 1001, 2]
        self.assertEqual((of_case["tigon"]["time_s"], of_case["megatron"]["time_s"]), (2e-3, None))

    def test_a_share_is_of_the_median(self):
        profiled = [record("tigon", [2e-3], collective_s=1e-3, exposed_s=2.5e-4), RECORDS[-1]]
        self.assertEqual(head_losses.table_rows([types.SimpleNamespace(of=lambda kind: profiled)])[0],
                         ["T=8, H=4, V=1,001, 2 ranks", "Tigon, behind the layer", "2.000 ms", "50 %", "1.00 MiB", "50 %", "75 %", "0.00200"])

    def test_waiting_for_another_rank_is_no_collective(self):
        rounds = [record("tigon", [2e-3], collective_s=9.0, exposed_s=9.0), record("tigon", [2e-3], collective_s=1e-3, exposed_s=0.0),
                  record("tigon", [2e-3], collective_s=2e-3, exposed_s=1e-3)]
        row = head_losses.rows(rounds)[8, 4, 1001, 2]["tigon"]
        self.assertEqual((row["collective_s"], row["exposed_s"]), (1e-3, 0.0))

    def test_text(self):
        text = head_losses.text(RECORDS)
        self.assertIn("oom: no memory", text)
        self.assertNotIn(" ms", head_losses.text([record("tigon", [1e-3], executor="fast")]))

    def test_a_processor_has_no_table(self):
        run = types.SimpleNamespace(of=lambda kind: [record("tigon", [1e-3], executor="fast")])
        with self.assertRaisesRegex(ValueError, "on GPUs"):
            head_losses.table_rows([run])


if __name__ == "__main__":
    unittest.main()
