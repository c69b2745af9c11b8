# SPDX-License-Identifier: Apache-2.0
"""Tests of the statistics against published values, enumeration and simulated coverage."""
import itertools
import math
import pathlib
import random
import sys
import unittest

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from tigon_report import rank_statistics as ranks  # noqa: E402
from tigon_report import statistics as stats  # noqa: E402


class SignedRankTest(unittest.TestCase):
    def test_distribution_is_that_of_all_sign_patterns(self):
        for n in (1, 4, 9):
            totals = [sum(r for r, s in zip(range(1, n + 1), signs) if s) for signs in itertools.product((0, 1), repeat=n)]
            for t in range(n * (n + 1) // 2 + 2):
                self.assertAlmostEqual(ranks.upper_tail(n)[t], sum(x >= t for x in totals) / 2**n, places=14)

    def test_p_value_is_that_of_ranks(self):
        draw = numpy.random.default_rng(3)
        for n in (5, 12):
            d = draw.normal(0.01, 0.02, n)
            order = numpy.argsort(numpy.argsort(abs(d - 0.005))) + 1
            t = int(order[d > 0.005].sum())
            walsh = ranks.walsh_averages(d)
            self.assertEqual(ranks.p_above(walsh, 0.005), ranks.upper_tail(n)[t])

    def test_bounds_and_tests_agree(self):
        draw = numpy.random.default_rng(4)
        for alpha in (0.05, 0.005, 0.0003):
            walsh = ranks.walsh_averages(draw.normal(0, 1, (200, 12)))
            lower, upper = ranks.bounds(walsh, alpha)
            step = 1e-9
            self.assertTrue(numpy.all(ranks.p_above(walsh, lower - step) <= alpha))
            self.assertTrue(numpy.all(ranks.p_above(walsh, lower + step) > alpha))
            self.assertTrue(numpy.all(ranks.p_below(walsh, upper + step) <= alpha))

    def test_bounds_cover_the_truth(self):
        draw = numpy.random.default_rng(5)
        walsh = ranks.walsh_averages(draw.standard_t(3, (4000, 12)) + 0.7)
        lower, upper = ranks.bounds(walsh, 0.025)
        missed = numpy.mean((lower > 0.7) | (upper < 0.7))
        self.assertLess(missed, 0.058)
        self.assertGreater(missed, 0.03)  # exact, not merely careful

    def test_too_few_pairs_bound_nothing(self):
        lower, upper = ranks.bounds(ranks.walsh_averages([[0.1, 0.2, 0.3]]), 0.01)
        self.assertEqual((lower[0], upper[0]), (-numpy.inf, numpy.inf))
        self.assertEqual(ranks.bounds(ranks.walsh_averages([1.0] * 9), 0.001), (-numpy.inf, numpy.inf))
        self.assertEqual(ranks.bounds(ranks.walsh_averages(range(10)), 0.001), (0.0, 9.0))  # 1 / 2**10 is below

    def test_known_values(self):
        # Hollander and Wolfe, table 3.1: depression factors before and after therapy. R: wilcox.test(y, x,
        # paired = TRUE, conf.int = TRUE) has V = 5, p-value = 0.03906, (pseudo)median -0.46, interval -0.786 to -0.010
        before = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30]
        after = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29]
        walsh = ranks.walsh_averages(numpy.subtract(after, before))
        self.assertAlmostEqual(float(ranks.shift(walsh)), -0.46, places=12)
        self.assertAlmostEqual(2 * float(ranks.p_below(walsh, 0.0)), 0.0390625, places=12)
        self.assertEqual([round(float(v), 3) for v in ranks.bounds(walsh, 0.025)], [-0.786, -0.010])
        self.assertEqual(ranks.shift(ranks.walsh_averages([1.0, 2.0, 6.0])), 2.75)


class RankSumTest(unittest.TestCase):
    def test_tail_is_that_of_all_orders(self):
        for n, m in ((1, 1), (2, 3), (4, 3), (5, 5)):
            sums = [sum(chosen) - n * (n - 1) // 2 for chosen in itertools.combinations(range(n + m), n)]
            tail = ranks.rank_sum_tail(n, m)
            self.assertEqual(len(tail), n * m + 1)
            for k, share in enumerate(tail):
                self.assertAlmostEqual(share, sum(s <= k for s in sums) / len(sums))

    def test_known_values(self):
        # Hollander and Wolfe, table 4.1: permeability at term and at 12 to 26 weeks. R: wilcox.test(at_term, early,
        # conf.int = TRUE) has W = 35, difference 0.305, interval -0.15 to 0.76
        at_term = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46]
        early = [1.15, 0.88, 0.90, 0.74, 1.21]
        self.assertAlmostEqual(ranks.sample_shift(early, at_term), 0.305, places=12)
        low, high = ranks.sample_shift_interval(early, at_term, 0.95)
        self.assertAlmostEqual(low, -0.15, places=12)
        self.assertAlmostEqual(high, 0.76, places=12)
        self.assertEqual(ranks.sample_shift([1.0, 2.0], [2.0, 4.0]), 1.5)
        self.assertEqual(ranks.sample_shift_interval([1], [2]), (-math.inf, math.inf))

    def test_intervals_cover_as_often_as_they_say(self):
        random.seed(2)
        trials, covered = 1500, 0
        for _ in range(trials):
            b, c = [random.gauss(0, 1) for _ in range(9)], [random.gauss(0.5, 1) for _ in range(8)]
            low, high = ranks.sample_shift_interval(b, c, 0.9)
            covered += low <= 0.5 <= high
        self.assertGreater(covered / trials, 0.88)  # 0.9 less 2.5 standard errors
        self.assertLess(covered / trials, 0.96)  # conservative, but not useless


try:
    import scipy.stats
except ImportError:
    scipy = None


@unittest.skipIf(scipy is None, "scipy is not installed, with which these are compared")
class ScipyTest(unittest.TestCase):
    def test_signed_ranks(self):
        draw = numpy.random.default_rng(6)
        for n in (5, 12, 25):
            d = draw.normal(0.3, 1, n)
            walsh = ranks.walsh_averages(d)
            for side, p in (("greater", ranks.p_above), ("less", ranks.p_below)):
                self.assertAlmostEqual(float(p(walsh, 0.0)), scipy.stats.wilcoxon(d, alternative=side, mode="exact").pvalue, places=12)

    def test_rank_sums(self):
        draw = numpy.random.default_rng(7)
        for n, m in ((3, 4), (9, 8), (15, 30)):
            a, b = draw.normal(0, 1, n), draw.normal(0.2, 1, m)
            u = int((numpy.subtract.outer(a, b) > 0).sum())
            expected = scipy.stats.mannwhitneyu(a, b, alternative="less", method="exact")
            self.assertEqual(u, expected.statistic)
            self.assertAlmostEqual(ranks.rank_sum_tail(n, m)[u], expected.pvalue, places=12)

    def test_interval_of_a_rate(self):
        for events, trials in ((0, 7), (1, 100), (3, 1000), (250, 500), (99, 99), (12, 4000)):
            for confidence in (0.95, 0.99):
                expected = scipy.stats.binomtest(events, trials).proportion_ci(confidence, method="exact")
                low, high = stats.binomial_interval(events, trials, confidence)
                self.assertAlmostEqual(low, expected.low, places=9)
                self.assertAlmostEqual(high, expected.high, places=9)

    def test_shift_of_two_samples_has_the_interval_of_the_test(self):
        draw = numpy.random.default_rng(8)
        before, after = draw.normal(0, 1, 9), draw.normal(0.5, 1, 8)
        low, high = ranks.sample_shift_interval(before, after, 0.95)
        for moved, inside in ((low - 1e-9, False), (low + 1e-9, True), (high - 1e-9, True), (high + 1e-9, False)):
            p = scipy.stats.mannwhitneyu(after - moved, before, method="exact").pvalue
            self.assertEqual(p > 0.05, inside)


class OrderStatisticsTest(unittest.TestCase):
    def test_intervals_of_medians_cover_as_often_as_they_say(self):
        random.seed(2)
        trials, covered = 1500, 0
        for _ in range(trials):
            a = [math.exp(random.gauss(0, 1)) for _ in range(23)]  # skewed: medians differ from means
            covered += stats.median_interval(a, 0.9).low <= 1 <= stats.median_interval(a, 0.9).high
        self.assertGreater(covered / trials, 0.88)
        self.assertLess(covered / trials, 0.96)

    def test_too_few_values_give_an_infinite_interval(self):
        self.assertEqual(stats.median_interval([1, 2, 3], 0.99), (-math.inf, math.inf))

    def test_known_values(self):
        self.assertEqual(stats.quantile([1, 2, 3, 4], 0.25), 1.75)
        self.assertAlmostEqual(stats.geometric_mean([0.5, 2.0]), 1.0)
        self.assertEqual(stats.holm([0.01, 0.04, 0.03]), [0.03, 0.06, 0.06])
        low, high = stats.binomial_interval(1, 100)
        self.assertAlmostEqual(low, 0.000253, 5)  # R: binom.test(1, 100)
        self.assertAlmostEqual(high, 0.054459, 5)
        self.assertAlmostEqual(stats.binomial_interval(0, 100).high, 0.036217, 5)

    def test_a_value_that_is_no_number_never_passes(self):
        for values in ([], [1.0, math.nan], [math.inf]):
            for function in (stats.median, stats.median_interval, stats.geometric_mean,
                             lambda values: ranks.sample_shift(values, [1.0])):
                with self.assertRaises(ValueError):
                    function(values)


if __name__ == "__main__":
    unittest.main()
