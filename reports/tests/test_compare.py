# SPDX-License-Identifier: Apache-2.0
"""Tests of tigon compare: what is damage comes first, what cannot be compared is refused, and intervals are honest."""
import copy
import math
import random
import unittest

import sample
from command_test import CommandTest, full, full_run
from tigon_report import comparison, rank_statistics


def memory_run(extra):
    return [full({**sample.memory("fused", 1024, 32000, extra), "run_id": "20260101T120000Z-1a2b3c4d"})]


class CompareTest(CommandTest):
    def sides(self, change=lambda record: record, run_id="20260102T120000Z-00000001"):
        """Files of a GPU run and of a copy of it in which `change` has changed each record (None: left out)."""
        base = full_run()
        head = [r for r in (change(copy.deepcopy({**r, "run_id": run_id})) for r in base) if r]
        return self.write("a.jsonl", base), self.write("b.jsonl", head)

    def faster_by(self, factor, impl="fused"):
        def change(r):
            if r["record"] == "bench" and r["impl"] == impl:
                for key in ("median_s", "q1_s", "q3_s"):
                    r[key] *= factor + (0.1 if r["axes"]["V"] == 128256 else 0)
            return r
        return change

    def test_the_same_run_is_the_same(self):
        code, out, _ = self.tigon("compare", *self.sides(), "--fail-above", 0)
        self.assertEqual(code, 0)
        self.assertIn("0 missing, 0 slower", out)
        self.assertIn("geometric mean of B / A, cold: 1.0000 over 4 cells", out)

    def test_a_run_and_itself_are_the_same_however_noisy(self):
        base = full_run()
        for record in base:
            if record["record"] == "bench":
                record |= {"q1_s": record["median_s"] * 0.5, "q3_s": record["median_s"] * 2}
        path = self.write("noisy.jsonl", base)
        code, out, _ = self.tigon("compare", path, path, "--fail-above", 0)
        self.assertEqual(code, 0)
        self.assertIn("A and B are the same", out)
        self.assertIn("0 slower, 4 same, 0 faster", out)
        other = [{**record, "run_id": "20260102T120000Z-00000001"} for record in base]
        out = self.tigon("compare", path, self.write("other.jsonl", other))[1]
        self.assertIn("4 unclear", out)
        self.assertNotIn("A and B are the same", out)

    def test_a_slower_case_comes_first_and_fails_above_the_limit(self):
        sides = self.sides(self.faster_by(1.10))
        code, out, _ = self.tigon("compare", *sides)
        self.assertEqual(code, 0)
        rows = [line for line in out.split("\n") if "cross_entropy" in line and " cold " in line]
        self.assertTrue(all("slower" in row and "fused" in row for row in rows[:2]), out)
        self.assertIn("1.200", rows[0])
        self.assertIn("1.100", rows[1])
        self.assertEqual(self.tigon("compare", *sides, "--fail-above", 5)[0], 3)
        self.assertEqual(self.tigon("compare", *sides, "--fail-above", 21)[0], 0)
        self.assertEqual(self.tigon("compare", *sides, "--fail-above", 5, "--filter", "-fused")[0], 0)
        self.assertEqual(self.tigon("compare", *reversed(sides), "--fail-above", 0)[0], 0)

    def test_missing_cases_come_before_everything(self):
        def change(r):
            return None if r.get("case_id", "").endswith("fused/bf16/T=8192,V=32000,inputs=normal,seed=42") else r
        code, out, _ = self.tigon("compare", *self.sides(change), "--fail-above", 5)
        self.assertEqual(code, 4)
        self.assertLess(out.index("missing in B (1)"), out.index("\ntime\n"))
        self.assertIn("1 missing", out)

    def test_an_op_that_is_gone_is_missing_and_no_wrong_word(self):
        def change(r):
            return None if r.get("op") == "rms_norm" else r
        code, out, _ = self.tigon("compare", *self.sides(change), "--op", "rms_norm,cross_entropy", "--fail-above", 5)
        self.assertEqual(code, 4)
        self.assertIn("missing in B (1)", out)

    def test_verdicts_are_damage(self):
        for verdict, expected in (("incorrect_numerical", 1), ("oom", 5), ("not_run", 4)):
            def change(r):
                if r["record"] == "check" or (r["record"] == "bench" and verdict == "oom" and r["impl"] == "naive"):
                    r.update(verdict=verdict, reason="y[3] is off")
                return r
            sides = self.sides(change)
            code, out, _ = self.tigon("compare", *sides, "--fail-above", 5)
            self.assertEqual(code, expected)
            self.assertIn(f"passed → {verdict}", out)
            self.assertIn("y[3] is off", out)
            self.assertIn("fixed", self.tigon("compare", *reversed(sides))[1])

    def test_memory_is_damage_beyond_one_unit_of_alignment(self):
        header = full_run()[0]
        for extra, expected in ((256, 0), (0, 0), (1 << 23, 3)):
            a = self.write("a.jsonl", [header, *memory_run(0)])
            b = self.write("b.jsonl", [header, *memory_run(extra)])
            code, out, _ = self.tigon("compare", a, b, "--fail-above", 5)
            self.assertEqual(code, expected, out)
            self.assertEqual("1 larger" in out, expected == 3)

    def test_other_machines_drivers_and_simulations_are_refused(self):
        for key, value in (("name", "NVIDIA H100"), ("driver", "12.4"), ("tags", {"simulated": "true"})):
            def change(r):
                if r["record"] == "run":
                    (r if key == "tags" else r["device"])[key] = value
                return r
            sides = self.sides(change)
            self.refused(2, "different machines are not compared", "compare", *sides)
            code, out, _ = self.tigon("compare", *sides, "--allow-different-machines")
            self.assertEqual(code, 0)
            self.assertIn("NOTE  different machines", out)

    def test_another_gpu_of_the_model_is_said(self):
        def change(r):
            if r["record"] == "run":
                r["device"]["uuid"] = "GPU-2"
            return r
        a, b = self.sides(change)
        self.assertNotIn("NOTE", self.tigon("compare", a, b)[1])  # A does not say which GPU it was
        a.write_text(a.read_text().replace('"kind": "cuda"', '"kind": "cuda", "uuid": "GPU-1"'))
        self.assertIn("NOTE  different GPUs of one model, which may differ by some percent: GPU-1 in A, GPU-2 in B",
                      self.tigon("compare", a, b)[1])

    def test_times_of_the_host_executor_are_called_that(self):
        header = full_run(records_of=sample.host_run)[0]
        bench = full(sample.bench("fused", 64, 1024, 0.01, "fast", "wall"))
        a, b = (self.write(name, [header, bench, full(sample.check())]) for name in ("a.jsonl", "b.jsonl"))
        out = self.tigon("compare", a, b)[1]
        self.assertIn("not kernel speed", out)
        self.assertIn("1 checks with the same verdict", out)
        self.assertNotIn("not kernel speed", self.tigon("compare", *self.sides())[1])

    def test_one_side_with_two_machines_is_refused(self):
        _, b = self.sides()
        other = full_run("20260103T120000Z-00000002")
        other[0]["device"]["name"] = "NVIDIA H100"
        both = self.write("both.jsonl", full_run() + other)
        self.refused(2, "A mixes devices NVIDIA H100 and NVIDIA H200", "compare", both, b)

    def test_mixed_timing_bases_are_refused_whatever_is_allowed(self):
        def change(r):
            if r["record"] == "bench":
                r["basis"] = "graph"
            return r
        sides = self.sides(change)
        self.refused(2, "has cold in A and graph in B", "compare", *sides, "--allow-different-machines")

    def test_nothing_in_common_and_bad_arguments(self):
        a, b = self.sides()
        self.refused(4, "no case is in both", "compare", a, b, "--filter", "nosuchcase")
        self.refused(2, "--op nosuch: in neither", "compare", a, b, "--op", "nosuch")
        self.refused(2, "not a regular expression", "compare", a, b, "--filter", "(")
        self.refused(2, "percentage", "compare", a, b, "--fail-above", "nan")
        self.refused(2, "confidence", "compare", a, b, "--confidence", "1")
        self.refused(2, "--top", "compare", a, b, "--top", "-1")
        self.refused(4, "no such file", "compare", a, self.folder / "nosuch")
        self.refused(4, "no run record", "compare", a, self.write("c.jsonl", full_run()[1:]))

    def test_pages_show_the_same_and_escape(self):
        def change(r):
            if r["record"] == "check":
                r.update(verdict="crashed", reason="<script>|x|")
            return self.faster_by(1.1)(r)
        html, md = self.folder / "c.html", self.folder / "c.md"
        self.tigon("compare", *self.sides(change), "--html", html, "--md", md)
        for file in (html, md):
            self.assertIn("1.100", file.read_text())
            self.assertIn("2 slower", file.read_text())
        self.assertNotIn("<script>", html.read_text())
        self.assertIn("--back:", html.read_text())  # the report's style
        self.assertIn("\\|x\\|", md.read_text())
        self.assertNotIn("http", html.read_text())
        code, out, _ = self.tigon("compare", *self.sides(change), "--md", "-")
        self.assertTrue(out.startswith("# Comparison"))

    def test_a_reason_of_a_terminal_stays_on_its_line(self):
        self.assertEqual(self.tigon("compare", *self.sides(), "--html", self.folder / "nosuch/x.html")[0], 5)


class IntervalTest(unittest.TestCase):
    def record(self, samples, keep=True):
        ordered = sorted(samples)
        n = len(ordered)
        return {"median_s": ordered[n // 2], "q1_s": ordered[n // 4], "q3_s": ordered[3 * n // 4], "n": n,
                "samples_s": samples if keep else []}

    def test_intervals_of_one_run_each_cover(self):
        random.seed(4)
        for keep in (True, False):
            covered, trials = 0, 400
            for _ in range(trials):
                a, b = ([random.gauss(m, 0.02 * m) for _ in range(25)] for m in (1.0, 1.05))
                _, interval = comparison.ratio_interval([self.record(a, keep)], [self.record(b, keep)], 0.9)
                covered += interval.low <= 1.05 <= interval.high
            self.assertGreater(covered / trials, 0.9)

    def test_repeated_runs_are_the_replicates(self):
        random.seed(5)
        covered, trials = 0, 200
        for _ in range(trials):
            sides = []
            for level in (1.0, 1.05):
                session = [level * math.exp(random.gauss(0, 0.02)) for _ in range(6)]  # noise between runs only
                sides.append([self.record([s * random.gauss(1, 0.001) for _ in range(25)]) for s in session])
            ratio, interval = comparison.ratio_interval(*sides, 0.95)
            covered += interval.low <= 1.05 <= interval.high
            logs = [[math.log(r["median_s"]) for r in side] for side in sides]
            self.assertEqual(interval, rank_statistics.sample_shift_interval(*logs, 0.95).exp())
        self.assertGreater(covered / trials, 0.93)

    def test_without_spread_the_interval_is_unknown_and_the_outcome_unclear(self):
        ratio, interval = comparison.ratio_interval([{"median_s": 1.0}], [{"median_s": 1.2}], 0.99)
        self.assertAlmostEqual(ratio, 1.2)
        self.assertEqual(interval, (0.0, math.inf))
        self.assertEqual(comparison.outcome(*interval, 1.0), "unclear")

    def test_outcomes(self):
        for low, high, seconds, expected in ((1.02, 1.03, 1e-3, "slower"), (1.02, 1.025, 1e-5, "same"),
                                             (0.9, 0.95, 1, "faster"),
                                             (0.995, 1.005, 1, "same"), (0.98, 1.005, 1, "unclear"),
                                             (1.0, 1.5, 1, "unclear")):
            self.assertEqual(comparison.outcome(low, high, seconds), expected)


if __name__ == "__main__":
    unittest.main()
