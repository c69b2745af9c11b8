#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of change points on planted histories, and of what caused them."""

import math
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import numpy  # noqa: E402
from tigon_report.dashboard import causes, changepoints, history, scan  # noqa: E402


def found(points, at, near=5):
    return any(abs(point.index - at) <= near for point in points)


class ChangePoints(unittest.TestCase):
    def noise(self, count=300, sd=0.004, seed=1):
        return numpy.random.default_rng(seed).normal(0, sd, count)

    def test_a_step_of_two_percent_is_found_where_it_is(self):
        for seed in range(20):
            values = self.noise(seed=seed)
            values[180:] += math.log(1.02)
            points = changepoints.detect(values)
            self.assertEqual(len(points), 1, seed)
            self.assertLessEqual(abs(points[0].index - 180), 5)
            self.assertAlmostEqual(points[0].change, 0.02, delta=0.006)

    def test_a_step_is_found_within_five_points_of_it(self):
        for seed in range(20):
            values = self.noise(205, seed=seed)
            values[200:] += math.log(1.02)
            self.assertTrue(found(changepoints.detect(values), 200), seed)

    def test_two_points_are_no_step_yet(self):
        values = self.noise(102)
        values[100:] += 0.1
        self.assertEqual(changepoints.detect(values), [])

    def test_flat_noise_spikes_and_drift_are_no_steps(self):
        for seed in range(30):
            self.assertEqual(changepoints.detect(self.noise(seed=seed)), [], seed)
        spikes = self.noise()
        spikes[[30, 99, 200, 299]] += 0.2
        self.assertEqual(changepoints.detect(spikes), [])
        self.assertEqual(changepoints.detect(self.noise(700) + numpy.linspace(0, 0.05, 700)), [])

    def test_a_spike_at_the_end_does_not_hide_a_step(self):
        values = self.noise(90)
        values[85:] += math.log(1.04)
        values[89] += 0.26
        self.assertTrue(found(changepoints.detect(values), 85))

    def test_both_edges_of_a_plateau(self):
        values = self.noise()
        values[100:160] += 0.05
        points = changepoints.detect(values)
        self.assertEqual([point.index for point in points], [100, 160])
        self.assertGreater(points[0].change, 0)
        self.assertLess(points[1].change, 0)

    def test_a_short_plateau_in_a_long_series(self):
        for seed in range(20):
            values = self.noise(500, seed=seed)
            values[200:206] += 0.03
            points = changepoints.detect(values)
            self.assertTrue(found(points, 200, 2) and found(points, 206, 2), (seed, points))

    def test_short_and_constant_series(self):
        self.assertEqual(changepoints.detect(numpy.zeros(0)), [])
        self.assertEqual(changepoints.detect(numpy.zeros(5)), [])
        self.assertEqual(changepoints.detect(numpy.zeros(50)), [])
        step = numpy.zeros(50)
        step[25:] = 0.05
        self.assertEqual([point.index for point in changepoints.detect(step)], [25])

    def test_energy_statistic_is_its_definition(self):
        values = numpy.random.default_rng(2).normal(size=12)
        k, x, y = 5, values[:5], values[5:]
        between = 2 * numpy.abs(x[:, None] - y).mean()
        within = sum(numpy.abs(z[:, None] - z).sum() / (len(z) * (len(z) - 1)) for z in (x, y))
        self.assertAlmostEqual(changepoints.energy(values)[k], 5 * 7 / 12 * (between - within), places=12)

    def test_t_tail(self):
        # R: 2 * pt(-5, 20) = 6.92e-5, 2 * pt(-10, 60) = 2.25e-14
        self.assertAlmostEqual(changepoints.t_test_p(5, 1, 2, 2, 20) / 6.92e-5, 1, delta=0.05)
        self.assertAlmostEqual(changepoints.t_test_p(10, 1, 2, 2, 60) / 2.25e-14, 1, delta=0.2)


class Causes(unittest.TestCase):
    def series(self, change):
        """20 runs with a step of 5 % at run 10, and `change`(header, index) applied to each run's header."""

        class Cell:
            device, case_id = "gpu", "a"

        runs = []
        for index in range(20):
            header = {"run_id": f"r{index}", "tool": {"commit": f"c{index}"}, "device": {"uuid": "u", "driver": "1"}}
            change(header, index)
            runs.append(scan.RunInfo(header, pathlib.Path("x"), ""))
        ratio = numpy.random.default_rng(1).normal(0, 0.001, 20) + 0.05 * (numpy.arange(20) >= 10)
        made = history.Series(Cell, runs, runs, ratio, "copy")
        made.changes, made.centre, made.half = history.analyse(made.ratio)
        return made

    def test_all_cases_at_once_is_the_machine_even_if_nothing_says_so(self):
        every = [self.series(lambda header, index: None) for _ in range(8)]
        causes.label(every)
        self.assertEqual({series.labels[0].cause for series in every}, {"machine"})
        causes.label(every[:3])  # three cases are too few to tell a machine from a commit
        self.assertEqual(every[0].labels[0].cause, "code")

    def test_a_step_that_comes_back_is_noise(self):
        made = self.series(lambda header, index: None)
        made.ratio[14:] -= 0.05
        made.changes, made.centre, made.half = history.analyse(made.ratio)
        causes.label([made])
        self.assertEqual([label.cause for label in made.labels], ["noise", "noise"])

    def cause(self, change):
        made = self.series(change)
        causes.label([made])
        self.assertEqual(len(made.labels), 1)
        return made.labels[0].cause

    def test_cause_is_what_changed_with_the_step(self):
        def driver(header, index):
            header["device"]["driver"] = "2" if index >= 10 else "1"

        def machine(header, index):
            header["device"]["uuid"] = "v" if index >= 10 else "u"

        def nothing(header, index):
            header["tool"]["commit"] = "same"

        self.assertEqual(self.cause(lambda header, index: None), "code")
        self.assertEqual(self.cause(driver), "driver")
        self.assertEqual(self.cause(machine), "machine")
        self.assertEqual(self.cause(nothing), "noise")


if __name__ == "__main__":
    unittest.main()
