# SPDX-License-Identifier: Apache-2.0
"""Tests of the modelled costs of collectives. Run: python3 reports/tests/test_collective_costs.py"""
import pathlib
import random
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from tigon_report import collective_costs as costs  # noqa: E402
from tigon_report.errors import DataError  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINKS = costs.Links(gpus_of_a_node=8, link_rate=400e9, network_rate=50e9, start=8e-6, link_step=3e-6, network_step=14e-6)
MODELS = ROOT / "harness/cli/options/models.inc"


class OneCollective(unittest.TestCase):
    def test_in_a_node_has_steps_and_passes_parts_on(self):
        self.assertAlmostEqual(costs.seconds(LINKS, "all-gather", 400e9, 8, 1), 8e-6 + 7 * 3e-6 + 7 / 8)
        self.assertAlmostEqual(costs.seconds(LINKS, "all-reduce", 400e9, 8, 1), 8e-6 + 14 * 3e-6 + 14 / 8)

    def test_crosses_the_network_once_for_each_node_but_one(self):
        self.assertAlmostEqual(costs.seconds(LINKS, "reduce-scatter", 0, 64, 8), 8e-6 + 56 * 3e-6 + 7 * 14e-6)
        self.assertAlmostEqual(costs.seconds(LINKS, "all-gather", 50e9, 4, 4), 8e-6 + 3 * 14e-6 + 3 / 4)

    def test_is_as_fast_as_the_slower_link(self):
        slow = LINKS._replace(network_rate=10e9)
        self.assertAlmostEqual(costs.seconds(slow, "all-gather", 80e9, 16, 2) - costs.seconds(slow, "all-gather", 0, 16, 2), 15 / 16)
        fast = LINKS._replace(network_rate=1e12)
        self.assertAlmostEqual(costs.seconds(fast, "all-gather", 400e9, 16, 2) - costs.seconds(fast, "all-gather", 0, 16, 2), 15 / 16)

    def test_of_one_gpu_is_none(self):
        self.assertEqual(costs.seconds(LINKS, "all-reduce", 1e9, 1, 1), 0)


class Steps(unittest.TestCase):
    def setUp(self):
        self.model = costs.read_model(MODELS, "llama3-8b")

    def test_the_table_of_models_is_read(self):
        self.assertEqual(self.model[:5], ("llama3-8b", 32, 4096, 128256, False))
        self.assertAlmostEqual((self.model.layers * self.model.block + self.model.root) / 8.03e9, 1)
        self.assertTrue(costs.read_model(MODELS, "llama3.2-1b").tied)

    def test_fsdp2_moves_all_parameters_three_times_but_those_of_the_root_twice(self):
        no_latency = LINKS._replace(start=0, link_step=0, network_step=0)
        moved = 2 * (3 * self.model.layers * self.model.block + 2 * self.model.root)
        self.assertAlmostEqual(costs.sharded_step(no_latency, self.model, 8, 1), moved * 7 / 8 / 400e9)

    def test_both_together_are_even_at_the_tokens_that_are_said(self):
        draw = random.Random(20261129)
        for _ in range(50):
            links = LINKS._replace(link_rate=draw.uniform(1e11, 2e12), network_rate=draw.uniform(1e10, 2e11))
            model = self.model._replace(layers=draw.randrange(4, 100), hidden=draw.randrange(512, 16384), parameters=draw.uniform(5e9, 5e11))
            gpus = draw.choice([8, 16, 64, 1024])
            even, sharded = costs.even_tokens(links, model, gpus), costs.sharded_step(links, model, gpus, costs.nodes_of(links, gpus))
            if even > 0:
                self.assertAlmostEqual(costs.both_step(links, model, gpus, even) / sharded, 1, places=6)
            self.assertGreater(costs.both_step(links, model, gpus, even + 100), sharded)


class Tables(unittest.TestCase):
    def test_that_are_none_are_refused_by_name(self):
        with self.assertRaisesRegex(DataError, "no such file"):
            costs.read_links(ROOT / "kernels/collective/none.tsv")
        with self.assertRaisesRegex(ValueError, "models.inc has no model llama9"):
            costs.read_model(MODELS, "llama9")
        with self.assertRaisesRegex(ValueError, "wanted are gpus_of_a_node"):
            costs.read_links(ROOT / "kernels/collective/README.md")


class Measured(unittest.TestCase):
    HEAD = {"record": "head_loss", "variant": "tigon", "tokens": 1000, "hidden": 100, "classes": 50257, "ranks": 2, "collective_s": 2e-3, "exposed_s": 1e-3}

    def test_the_shortest_of_each_beside_the_model(self):
        records = [self.HEAD, {**self.HEAD, "collective_s": 1e-3, "exposed_s": 2.5e-4}, {**self.HEAD, "variant": "megatron", "collective_s": 1e-9},
                   {**self.HEAD, "variant": "products", "collective_s": None},
                   {"record": "training", "layout": "fsdp2", "model": "llama3-8b", "ranks": 2, "collective_s": 0.2, "exposed_s": 0.0},
                   {"record": "training", "model": "llama3-8b", "collective_s": None}]
        rows = costs.measured(LINKS, MODELS, records)
        expected = costs.seconds(LINKS, "all-gather", 24000, 2, 1) + costs.seconds(LINKS, "all-reduce", 400000, 2, 1)
        self.assertEqual(rows[0], ["loss of 1,000 tokens behind a head of 100 x 50,257, 2 GPUs", "1.000 ms", "75 %", costs.units.seconds(expected),
                                   f"{1e-3 / expected:.2f}"])
        self.assertEqual([row[0] for row in rows[1:]], ["step of llama3-8b with fsdp2, 2 GPUs"])

    def test_nothing_measured(self):
        with self.assertRaisesRegex(ValueError, "no collectives"):
            costs.measured(LINKS, MODELS, [{**self.HEAD, "collective_s": None}])


if __name__ == "__main__":
    unittest.main()
