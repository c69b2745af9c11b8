# SPDX-License-Identifier: Apache-2.0
"""Tests of the paired gate: error rates by simulation, margins. Run: python3 ci/tests/test_gate_rule.py"""
import pathlib
import sys
import unittest

import numpy

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "ci"), str(ROOT / "reports"), str(ROOT / "harness/trees")]

from tigon_gate import aa, decide, history, simulate  # noqa: E402
from tigon_gate.decide import Outcome, Rule  # noqa: E402
from tigon_report import rank_statistics  # noqa: E402

# The noise under which the rates are shown, from quiet to twice as loud as the default; a machine beyond it shows in
# its A/A run.
LOUDNESS = (0.5, 1.0, 2.0)
CELLS = 18


def noise(loudness):
    return simulate.Noise(*(loudness * sd for sd in (0.003, 0.002, 0.002, 0.002)))


def pair_sd(n):
    return (2 * (n.process**2 + n.shared**2 + n.sample**2) + n.drift**2) ** 0.5


def simulated_suites(n, count, shifts, margin, rule, seed):
    """Judged suites whose cells have these log shifts."""
    random = numpy.random.default_rng(seed)
    first = simulate.log_ratios(random, n, count, rule.pairs, len(shifts), shifts[:, None].T)
    fresh = simulate.log_ratios(random, n, count, rule.pairs, len(shifts), shifts[:, None].T)
    margins = numpy.full(len(shifts), margin)
    return [decide.decide(f, margins, rule, lambda again, g=g: g[again]) for f, g in zip(first, fresh)]


def margin_at(n, rule):
    return max(rule.least_margin, 3 * pair_sd(n) * aa.SHIFT_TO_MEAN / rule.pairs**0.5)


class ErrorRateTest(unittest.TestCase):
    """Of the whole gate: both looks, Holm, confirmation."""

    def test_identical_programs_are_blocked_less_than_once_in_a_hundred_suites(self):
        rule = Rule()
        for loudness in LOUDNESS:
            n = noise(loudness)
            judged = simulated_suites(n, 500, numpy.zeros(CELLS), margin_at(n, rule), rule, 11)
            blocked = sum(decide.exit_code(suite) == 3 for suite in judged)
            self.assertLess(aa.upper_bound(blocked, 500), 0.01, f"loudness {loudness}: {blocked} of 500")

    def test_suite_changed_by_its_margins_is_blocked_within_alpha(self):
        """The worst that is still no regression; one margin is the target of the test, not two, to see the statistics."""
        rule = Rule(alpha=0.1, effect=1.0)
        n = simulate.Noise(process=0.004, shared=0.0, drift=0.0, sample=0.002, hit_rate=0.0)
        judged = simulated_suites(n, 800, numpy.full(6, numpy.log1p(0.01)), 0.01, rule, 12)
        blocked = sum(decide.exit_code(suite) == 3 for suite in judged)
        self.assertLessEqual(blocked / 800, 0.1 + 3 * (0.1 * 0.9 / 800) ** 0.5)

    def test_slow_down_of_three_percent_is_found_and_named(self):
        rule = Rule()
        for loudness in LOUDNESS:
            n = noise(loudness)
            shifts = numpy.zeros(CELLS)
            shifts[5] = numpy.log1p(0.03)
            judged = simulated_suites(n, 200, shifts, margin_at(n, rule), rule, 13)
            found = sum(suite[5].outcome == Outcome.SLOWER for suite in judged) / 200
            others = sum(one.outcome == Outcome.SLOWER for suite in judged for i, one in enumerate(suite) if i != 5)
            self.assertGreaterEqual(found, 0.9, f"loudness {loudness}")
            self.assertEqual(others, 0)

    def test_one_hit_process_does_not_block(self):
        rule = Rule()
        d = numpy.zeros((CELLS, rule.pairs)) + numpy.random.default_rng(1).normal(0, 1e-3, (CELLS, rule.pairs))
        d[:, 3] += 0.3
        self.assertEqual(decide.exit_code(decide.decide(d, numpy.full(CELLS, 0.01), rule, lambda again: d[again])), 0)


class DecideTest(unittest.TestCase):
    def setUp(self):
        self.rule = Rule()
        self.random = numpy.random.default_rng(2)

    def rows(self, *shifts, sd=0.002, pairs_of=None):
        return numpy.array([[s] for s in shifts]) + self.random.normal(0, sd, (len(shifts), pairs_of or self.rule.pairs))

    def test_slow_cell_that_fresh_pairs_do_not_confirm_is_not_slower(self):
        judged = decide.decide(self.rows(0.05, 0.0), numpy.full(2, 0.01), self.rule, lambda again: self.rows(0.0))
        self.assertEqual([one.outcome for one in judged], [Outcome.INCONCLUSIVE, Outcome.SAME])
        self.assertEqual(judged[0].first, Outcome.SLOWER)

    def test_without_time_for_fresh_pairs_nothing_is_found(self):
        judged = decide.decide(self.rows(0.05, 0.0), numpy.full(2, 0.01), self.rule, lambda again: None)
        self.assertEqual([one.outcome for one in judged], [Outcome.INCONCLUSIVE, Outcome.SAME])

    def test_faster(self):
        judged = decide.decide(self.rows(-0.05), numpy.full(1, 0.01), self.rule, lambda again: self.rows(-0.05))
        self.assertEqual(judged[0].outcome, Outcome.FASTER)
        self.assertEqual(decide.exit_code(judged), 0)

    def test_change_between_one_and_two_margins_is_inconclusive(self):
        judged = decide.decide(self.rows(0.015, sd=0.0005), numpy.full(1, 0.01), self.rule,
                               lambda again: self.rows(0.015, sd=0.0005))
        self.assertEqual(judged[0].outcome, Outcome.INCONCLUSIVE)
        self.assertEqual(decide.exit_code(judged), 6)

    def test_loud_cell_is_not_the_same_because_its_estimate_is_small(self):
        loud = numpy.linspace(-0.1, 0.1, self.rule.pairs)[None]
        judged = decide.decide(loud, numpy.full(1, 0.01), self.rule, lambda again: None)
        self.assertLess(abs(judged[0].change), 0.01)
        self.assertEqual(judged[0].outcome, Outcome.INCONCLUSIVE)

    def test_second_look_counts_the_cells_that_were_settled_by_the_first(self):
        loud = 0.03 + 0.03 * numpy.linspace(-1.4, 1.4, 24)[numpy.argsort(numpy.arange(24) * 7 % 24)]
        first = numpy.vstack([loud[:12], self.rows(*[0.0] * 17)])
        p = rank_statistics.p_above(rank_statistics.walsh_averages(loud), numpy.log1p(0.01))
        self.assertLess(p, self.rule.alpha / 2)  # alone it would be slower
        self.assertGreater(18 * p, self.rule.alpha / 2)
        judged = decide.decide(first, numpy.full(18, 0.01), self.rule, lambda again: loud[None, 12:])
        self.assertEqual((judged[0].first, judged[0].outcome), (Outcome.INCONCLUSIVE, Outcome.INCONCLUSIVE))

    def test_floor_widens_the_margin_of_short_cells(self):
        numpy.testing.assert_allclose(decide.floored(numpy.array([0.01, 0.01]), [10e-6, 1e-3], self.rule), [0.05, 0.01])

    def test_nonfinite_is_refused(self):
        with self.assertRaises(ValueError):
            decide.decide([[0.1] * 11 + [float("nan")]], [0.01], self.rule, lambda again: None)

    def test_pairs_suffice_for_the_number_of_cells(self):
        self.assertEqual([self.rule.least_pairs(cells_of) for cells_of in (1, 20, 200)], [8, 12, 16])


class MarginTest(unittest.TestCase):
    def record(self, **more):
        random = numpy.random.default_rng(8)
        return {"record": "aa", "scope": "cell", "case_id": "c", "device_name": "H200", "device_uuid": "a",
                "time": "2026-01-01", "log_ratios": list(random.normal(0, 0.03, 40)), **more}

    def test_from_history_of_this_gpu_then_of_its_model_then_from_own_pairs(self):
        quiet = [0.0001 * (-1) ** k for k in range(12)]
        found = lambda records_of, device: history.margins(records_of, device, ["c"], Rule(), {"c": quiet})[0]  # noqa: E731
        here, there = {"name": "H200", "uuid": "a"}, {"name": "H200", "uuid": "b"}
        self.assertAlmostEqual(found([self.record()], here).change, 0.0265, delta=0.01)
        self.assertIn("this GPU", found([self.record()], here).source)
        self.assertIn("this model", found([self.record()], there).source)
        self.assertIn("no A/A history", found([self.record()], {"name": "A100"}).source)
        self.assertEqual(found([], here).change, 0.01)

    def test_power_grows_to_one_and_matches_a_simulation(self):
        random = numpy.random.default_rng(9)
        d = random.normal(0, 0.008, 60)
        rule = Rule()
        power = aa.power_curve(d, 0.01, rule, CELLS, numpy.array([0.0, 0.01, 0.02, 0.025, 0.03, 0.06]), random)
        self.assertEqual(power[0], 0)
        self.assertGreater(power[-1], 0.99)
        self.assertTrue(numpy.all(numpy.diff(power) >= 0))
        n = simulate.Noise(process=aa.spread(d) / 2**0.5, shared=0, drift=0, sample=0, hit_rate=0)
        shifts = numpy.zeros(CELLS)
        shifts[0] = numpy.log1p(0.025)
        judged = simulated_suites(n, 150, shifts, 0.01, rule, 14)
        self.assertAlmostEqual(power[3], sum(s[0].outcome == Outcome.SLOWER for s in judged) / 150, delta=0.15)

    def test_upper_bound_of_a_rate(self):
        self.assertAlmostEqual(aa.upper_bound(0, 300), 1 - 0.05 ** (1 / 300), places=9)
        self.assertAlmostEqual(aa.upper_bound(1, 100), 0.04656, places=4)
        self.assertEqual(aa.upper_bound(5, 5), 1)
        self.assertAlmostEqual(aa.upper_bound(1500, 3000), 0.515, places=2)


if __name__ == "__main__":
    unittest.main()
