"""Tests of the statistics against scipy's published values, enumeration and simulated coverage."""
import itertools
import math
import pathlib
import random
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from tigon_report import statistics as stats  # noqa: E402


class StatisticsTest(unittest.TestCase):
    def test_signed_rank_tail_is_that_of_all_sign_patterns(self):
        for n in range(1, 9):
            sums = [sum(rank for rank, sign in zip(range(1, n + 1), signs) if sign)
                    for signs in itertools.product((0, 1), repeat=n)]
            for k, tail in enumerate(stats._signed_rank_tail(n)):
                self.assertAlmostEqual(tail, sum(s <= k for s in sums) / 2**n)

    def test_rank_sum_tail_is_that_of_all_orders(self):
        for n, m in ((1, 1), (2, 3), (4, 3), (5, 5)):
            sums = [sum(chosen) - n * (n - 1) // 2 for chosen in itertools.combinations(range(n + m), n)]
            tail = stats._rank_sum_tail(n, m)
            self.assertEqual(len(tail), n * m + 1)
            for k, share in enumerate(tail):
                self.assertAlmostEqual(share, sum(s <= k for s in sums) / len(sums))

    def test_p_with_ties_is_that_of_all_sign_patterns(self):
        differences = [3.0, -1.0, 1.0, 2.0, 2.0, 0.0, -2.0]
        ranks = [6, 1.5, 1.5, 4, 4, 4]
        observed = 6 + 1.5 + 4 + 4
        patterns = [sum(rank for rank, sign in zip(ranks, signs) if sign)
                    for signs in itertools.product((0, 1), repeat=6)]
        self.assertAlmostEqual(stats.signed_rank_p(differences), sum(s >= observed for s in patterns) / 64)

    def test_bound_and_p_agree(self):
        random.seed(1)
        for _ in range(50):
            differences = [random.gauss(0.01, 0.01) for _ in range(10)]
            low = stats.signed_rank_bound(differences, 0.99).low
            self.assertLessEqual(stats.signed_rank_p(differences, low - 1e-9), 0.01)
            self.assertGreater(stats.signed_rank_p(differences, low + 1e-9), 0.01)

    def test_too_few_values_give_an_infinite_interval(self):
        self.assertEqual(stats.signed_rank_bound([1.0] * 9, 0.999), (-math.inf, math.inf))
        self.assertEqual(stats.signed_rank_bound([float(i) for i in range(10)], 0.999), (0.0, 9.0))
        self.assertEqual(stats.median_interval([1, 2, 3], 0.99), (-math.inf, math.inf))
        self.assertEqual(stats.shift_interval([1], [2]), (-math.inf, math.inf))

    def test_intervals_cover_as_often_as_they_say(self):
        random.seed(2)
        draw = lambda: math.exp(random.gauss(0, 1))  # noqa: E731  skewed: medians differ from means
        trials, covered = 1500, [0, 0, 0]
        for _ in range(trials):
            a, b = [draw() for _ in range(23)], [random.gauss(0, 1) for _ in range(9)]
            c = [random.gauss(0.5, 1) for _ in range(8)]
            covered[0] += stats.median_interval(a, 0.9).low <= 1 <= stats.median_interval(a, 0.9).high
            covered[1] += stats.signed_rank_interval(b, 0.9).low <= 0 <= stats.signed_rank_interval(b, 0.9).high
            covered[2] += stats.shift_interval(b, c, 0.9).low <= 0.5 <= stats.shift_interval(b, c, 0.9).high
        for count in covered:
            self.assertGreater(count / trials, 0.88)  # 0.9 less 2.5 standard errors
            self.assertLess(count / trials, 0.96)  # conservative, but not useless

    def test_known_values(self):
        self.assertEqual(stats.hodges_lehmann([1.0, 2.0, 6.0]), 2.75)
        self.assertEqual(stats.shift([1.0, 2.0], [2.0, 4.0]), 1.5)
        self.assertEqual(stats.quantile([1, 2, 3, 4], 0.25), 1.75)
        self.assertAlmostEqual(stats.mad_sd([1, 2, 3, 4, 100]), 1.4826)
        self.assertAlmostEqual(stats.geometric_mean([0.5, 2.0]), 1.0)
        self.assertEqual(stats.holm([0.01, 0.04, 0.03]), [0.03, 0.06, 0.06])
        low, high = stats.binomial_interval(1, 100)
        self.assertAlmostEqual(low, 0.000253, 5)  # R: binom.test(1, 100)
        self.assertAlmostEqual(high, 0.054459, 5)
        self.assertAlmostEqual(stats.binomial_interval(0, 100).high, 0.036217, 5)

    def test_a_value_that_is_no_number_never_passes(self):
        for values in ([], [1.0, math.nan], [math.inf]):
            for function in (stats.median, stats.hodges_lehmann, stats.median_interval, stats.geometric_mean):
                with self.assertRaises(ValueError):
                    function(values)


if __name__ == "__main__":
    unittest.main()
