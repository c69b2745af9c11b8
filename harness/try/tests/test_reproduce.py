# SPDX-License-Identifier: Apache-2.0
"""tigon reproduce: which records it takes and when a figure has come again. Building a commit is not tested here."""
import json
import os
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
for part in ("harness/try", "harness/trees", "reports"):
    sys.path.insert(0, str(ROOT / part))

from tigon_report.errors import DataError, UsageError  # noqa: E402
from tigon_try import reproduce  # noqa: E402

CASE = "rms_norm/forward/fused/bf16/T=3,H=33,inputs=normal,seed=42"
RUN = {"record": "run", "run_id": "r", "tool": {"commit": "c" * 40}, "device": {"kind": "cuda", "name": "H200"}, "command": []}
SAMPLES = [1e-3 + k * 1e-6 for k in range(30)]


def bench(median, samples=()):
    return {"record": "bench", "run_id": "r", "case_id": CASE, "basis": "cold", "median_s": median, "samples_s": list(samples),
            "verdict": "passed"}


class Figures(unittest.TestCase):
    def test_verdicts_memory_and_traffic_are_equal_or_not(self):
        for kind, key in (("check", "verdict"), ("memory", "planned_bytes"), ("trace", "sectors")):
            record = {"record": kind, "case_id": CASE, key: 7}
            self.assertEqual(reproduce.judge(record, dict(record), False)[0], "same")
            verdict, text = reproduce.judge(record, {**record, key: 8}, True)
            self.assertEqual(verdict, "differs")
            self.assertIn(f"{key} 7 -> 8", text)

    def test_a_time_lies_in_its_interval_or_not(self):
        recorded = bench(1.0145e-3, SAMPLES)
        self.assertEqual(reproduce.judge(recorded, bench(1.0145e-3), True)[0], "same")
        verdict, text = reproduce.judge(recorded, bench(1.2e-3), True)
        self.assertEqual(verdict, "differs")
        self.assertIn("outside", text)

    def test_a_time_of_another_device_is_no_figure(self):
        self.assertEqual(reproduce.judge(bench(1e-3, SAMPLES), bench(1e-3), False)[0], "skipped")
        self.assertFalse(reproduce.same_device({"kind": "cuda", "name": "H100"}, RUN["device"]))

    def test_what_was_too_slow_was_not_judged(self):
        slow = {"record": "check", "case_id": CASE, "verdict": "timeout"}
        self.assertEqual(reproduce.judge(slow, {**slow, "verdict": "passed"}, True)[0], "skipped")
        self.assertEqual(reproduce.judge({**slow, "verdict": "passed"}, slow, True)[0], "differs")

    def test_what_does_not_come_differs(self):
        self.assertEqual(reproduce.judge(bench(1e-3, SAMPLES), None, True)[0], "differs")


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name) / "records.jsonl"

    def write(self, *records):
        self.file.write_text("".join(json.dumps(r) + "\n" for r in records))

    def test_a_sample_or_one_case(self):
        many = [{"record": "check", "run_id": "r", "case_id": f"{CASE}{k}", "executor": "fast", "verdict": "passed"} for k in range(99)]
        self.write(RUN, *many, bench(1e-3))
        run, = reproduce.read(reproduce.files_of(self.file.parent)[1])
        self.assertEqual({kind: len(r) for kind, r in reproduce.chosen(run, None, False).items()}, {"check": 20, "bench": 1})
        self.assertEqual(len(reproduce.chosen(run, None, True)["check"]), 99)
        self.assertEqual([r["record"] for records in reproduce.chosen(run, CASE, False).values() for r in records], ["bench"])

    def test_what_is_no_run(self):
        with self.assertRaisesRegex(UsageError, "no run; give the folder"):
            reproduce.files_of("no/such/run")
        self.file.write_text("{torn\n")
        with self.assertRaisesRegex(DataError, "records.jsonl:1: not a record"):
            reproduce.read([self.file])

    def test_a_plug_in_that_is_not_there(self):
        run = reproduce.Recorded({**RUN, "command": ["./tigon", "check", "--impl-from", "/a/fast.so,/a/x.python/x.py"]}, [])
        with self.assertRaises(DataError):
            reproduce.library_for(run, None)
        self.assertEqual(reproduce.library_for(run, pathlib.Path("/b")),
                         ["--impl-from", os.path.join("/b", "fast.so") + "," + os.path.join("/b", "x.python", "x.py")])


if __name__ == "__main__":
    unittest.main()
