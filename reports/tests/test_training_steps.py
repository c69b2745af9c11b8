# SPDX-License-Identifier: Apache-2.0
"""Tests of training steps of Hugging Face models, in texts and in tables of pages. Run: python3 reports/tests/test_training_steps.py"""
import pathlib
import sys
import types
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from tigon_report import cited_tables, training_chart, training_steps  # noqa: E402


def turn(variant, seconds, number=0, **more):
    """A record of a turn whose steps take about `seconds`."""
    return {"model": "m", "variant": variant, "batch": 2, "length": 100, "checkpointing": False, "round": number, "executor": "cuda",
            "tokens_per_step": 200, "seconds_s": [seconds * (1 + 0.001 * i) for i in range(5)], "loss": [4.0, 3.0], "peak_bytes": 2 * 2**30,
            "reserved_bytes": 3 * 2**30, "verdict": "passed", "reason": "", **more}


def out_of_memory(variant):
    return {**turn(variant, 1), "seconds_s": [], "loss": [], "peak_bytes": None, "reserved_bytes": None, "verdict": "oom", "reason": "too large"}


class TrainingStepsTest(unittest.TestCase):
    def table(self, *records):
        return cited_tables.TABLES["training"]([types.SimpleNamespace(of=lambda kind: list(records) if kind == "training" else [])], [])

    def test_speed_over_all_rounds_with_its_interval(self):
        row = training_steps.rows([turn("tigon", 1.0), turn("tigon", 2.0, 1)])["m", 2, 100, False, 1, ""]["tigon"]
        self.assertAlmostEqual(row["tokens_per_s"], 200 / ((1.004 + 2.0) / 2))
        self.assertEqual((row["low"], row["high"], row["steps"]), (200 / 2.008, 200.0, 10))

    def test_too_few_steps_have_no_interval(self):
        self.assertIn("200 tokens/s (n = 3)", training_steps.text([turn("tigon", 1.0, seconds_s=[1.0] * 3)]))

    def test_the_table(self):
        text = self.table(turn("eager", 2.0), turn("eager", 2.0, 1, loss=[4.0, 3.03]), turn("liger", 1.0, peak_bytes=3 * 2**30, loss=[4.0, 3.3]),
                          turn("liger", 1.0, 1, loss=[4.0, 3.0]), turn("tigon", 0.5), turn("tigon", 0.5, 1), out_of_memory("compile"))
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
        self.assertEqual([row[1] for row in rows[2:]], ["Hugging Face", "Liger", "Tigon", "with torch.compile"])
        self.assertEqual([row[3:] for row in rows[2:]], [["4.000", "2.00 GiB", "1.000", "5.0e-03"], ["2.000", "3.00 GiB", "1.500", "4.5e-02"],
                                                         ["1.000", "2.00 GiB", "1.000", "5.0e-03"], ["–"] * 4])
        self.assertEqual(rows[5][2], "out of memory")

    def test_how_far_from_float32(self):
        exact, eager = turn("float32", 9.0, loss=[4.0, 2.0]), turn("eager", 2.0, loss=[4.0, 2.2])
        ours = turn("tigon", 1.0, loss=[4.4, 2.2])
        text = self.table(eager, ours, turn("tigon", 1.0, 1, loss=[9.0, 9.0]), exact, turn("eager", 1.0, batch=1))
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
        self.assertEqual(rows[0][-1], "from float32")
        self.assertEqual([row[-1] for row in rows[2:]], ["7.1e-02", "1.0e-01", "–", "–"])
        self.assertIn("1.0e-01 from float32's", training_steps.text([eager, ours, exact]))
        self.assertNotIn("float32", self.table(eager, ours))

    def test_other_ranks_or_layouts_are_other_cases(self):
        two = {"ranks": 2, "layout": "fsdp2"}
        records = [turn("eager", 2.0), turn("eager", 1.0, **two), turn("tigon", 1.0), turn("tigon", 0.8, **{**two, "layout": "zero3"}),
                   turn("tigon", 0.5, length=200, **two, collective_s=0.2, exposed_s=0.05)]
        self.assertEqual([[(training_steps.case_text(case), *variants)] for case, variants in training_steps.rows(records).items()], [
            [("m, B=2, T=100", "eager", "tigon")], [("m, B=2 on each of 2 ranks (fsdp2), T=100", "eager")],
            [("m, B=2 on each of 2 ranks (zero3), T=100", "tigon")], [("m, B=2 on each of 2 ranks (fsdp2), T=200", "tigon")]])
        self.assertEqual(training_steps.longest(records), {("m", 2, 100, False, 2, "fsdp2"): {"eager": 100, "tigon": 200}})
        self.assertIn("reserved 3.00 GiB, collectives 40% of a step, of which 75% are hidden, losses", training_steps.turn_text(records[-1]))
        self.assertIn("m, B=2 on 1 rank (fsdp2), T", training_steps.turn_text(turn("tigon", 0.5, ranks=1, layout="fsdp2")))

    def test_the_longest_sequence(self):
        records = [turn("eager", 1.0), {**out_of_memory("eager"), "length": 200}, turn("tigon", 1.0), turn("tigon", 1.0, length=200),
                   {**out_of_memory("tigon"), "length": 400}, out_of_memory("liger"), turn("tigon", 1.0, batch=7)]
        self.assertEqual(training_steps.longest(records), {("m", 2, 100, False, 1, ""): {"eager": 100, "tigon": 200, "liger": None}})
        self.assertIn("longest T from m, B=2, T=100: Hugging Face 100, Tigon 200, Liger none", training_steps.text(records))

    def test_the_chart(self):
        run = types.SimpleNamespace(of=lambda kind: [turn("eager", 2.0), turn("eager", 2.0, 1), turn("tigon", 1.0), turn("tigon", 1.0, 1),
                                                     turn("liger", 0.8, seconds_s=[0.8], peak_bytes=3 * 2**30), out_of_memory("compile"),
                                                     turn("eager", 1.0, batch=1)])
        rows = training_chart.data_of([run])
        self.assertEqual(rows, [{"case": "m, B=2, T=100", "points": [
            {"impl": "eager", "ratio": 2.0, "low": 1.992, "high": 2.008, "memory": 1.0},
            {"impl": "liger", "ratio": 0.798, "low": None, "high": None, "memory": 1.5}]}])
        self.assertEqual(training_chart.alt_of(rows), "Time and memory over those with Tigon in 1 cases: Hugging Face, Liger")
        with self.assertRaisesRegex(ValueError, "no training steps beside Tigon's"):
            training_chart.data_of([types.SimpleNamespace(of=lambda kind: [turn("tigon", 1.0)])])

    def test_times_of_a_processor_are_no_speed(self):
        self.assertNotIn("tokens/s", training_steps.text([turn("tigon", 1.0, executor="fast")]))
        self.assertNotIn("tokens/s", training_steps.turn_text(turn("tigon", 1.0, executor="fast")))
        with self.assertRaisesRegex(ValueError, "no training steps on a GPU"):
            self.table(turn("tigon", 1.0, executor="fast"))


if __name__ == "__main__":
    unittest.main()
