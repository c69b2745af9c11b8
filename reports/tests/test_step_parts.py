# SPDX-License-Identifier: Apache-2.0
"""Tests of a training step by part in the report. Run: python3 reports/tests/test_step_parts.py"""
import unittest

import sample
from command_test import CommandTest
from tigon_report import load, schema, step_parts

CELLS = [sample.parts("naive", 256, 0.04), sample.parts("fused", 256, 0.02), sample.parts("naive + rope", 256, 0.03),
         sample.parts("naive", 128, 0.02), sample.parts("fused", 128, 0.01), sample.parts("naive + rope", 128, 0.02),
         sample.parts("naive", 512, outcome="out of memory"), sample.parts("fused", 512, outcome="planned")]


class StepPartsTest(CommandTest):
    def report(self, cells, device="host", words=("--host-times",), drawn=False):
        return self.report_of([sample.header(device), *cells], *words, drawn=drawn)[0]["training.html"]

    def part_of(self, html):
        return html.split('id="parts"')[1].split("</section>")[0]

    def test_the_sample_follows_the_schema(self):
        common = {"schema_version": "1.0.0", "run_id": "20260101T120000Z-1a2b3c4d", "time": "2026-01-01T12:00:00.000Z"}
        for cell in CELLS:
            self.assertEqual(schema.violation({**common, **cell}), "")

    def test_every_figure_stands_beside_its_table(self):
        section = self.part_of(self.report(CELLS))
        for kind in ("time", "tokens", "memory", "frontier"):
            name = f"figures/parts-{kind}-tiny-bf16-4-4096-light.svg"
            self.assertIn(name, section)
            self.assertTrue((self.folder / name).is_file())
        for text in ("naive + rope", "10.00 ms", "90.0 %", "planned 3 GiB of 2 GiB", "out of memory", "<th class=\"n\">loss"):
            self.assertIn(text, section)
        self.assertNotIn("rotary", section)  # it took no time and no memory

    def test_host_time_is_never_shown_as_kernel_speed(self):
        self.assertIn("say nothing about the speed of a kernel", self.part_of(self.report(CELLS, drawn=True)))
        figure = (self.folder / "figures/parts-time-tiny-bf16-4-4096-light.svg").read_text()
        self.assertIn("not the speed of a kernel", figure)
        self.assertNotIn("host executor", self.part_of(self.report(CELLS, "cuda", drawn=True)))
        figure = (self.folder / "figures/parts-time-tiny-bf16-4-4096-light.svg").read_text()
        self.assertNotIn("host executor", figure)

    def test_times_of_the_host_are_shown_only_when_asked_for(self):
        section = self.part_of(self.report(CELLS, words=()))
        for text in ("10.00 ms", "tokens/s</th>", "tokens/s (host executor)", "parts-time", "parts-tokens"):
            self.assertNotIn(text, section)
        self.assertIn("--host-times", section)
        self.assertIn("parts-memory", section)

    def test_the_frontier_is_the_last_that_fits_and_the_first_that_does_not(self):
        self.report(CELLS)
        (entry,) = step_parts.tables(load.load_run(self.folder))
        self.assertEqual([record["axes"]["T"] for record in entry["rows"]], sorted(r["axes"]["T"] for r in entry["rows"]))
        longest = {row["impl"]: row for row in entry["longest"]}
        self.assertEqual(longest["naive"]["fits"]["axes"]["T"], 256)
        self.assertEqual(longest["naive"]["fails"]["axes"]["T"], 512)
        self.assertEqual(longest["fused"]["fits"]["outcome"], "planned")
        self.assertIsNone(longest["fused"]["fails"])
        summary = (self.folder / "summary.md").read_text()
        self.assertIn("| tiny in bf16, batch 4, V=4,096 | naive | 256 |", summary)

    def test_parts_stack_up_to_the_step_and_the_peak(self):
        self.report(CELLS)
        (entry,) = step_parts.tables(load.load_run(self.folder))
        for record in entry["rows"]:
            held = sum(step_parts._bytes(record, name) for name in entry["held"])
            self.assertEqual(held, record["planned_bytes"])
        timed = sum(step_parts._seconds(entry["rows"][0], name) for name in entry["timed"])
        self.assertAlmostEqual(timed, entry["rows"][0]["coverage"] * entry["rows"][0]["step_s"])

    def test_linear_layers_stand_beside_their_rate_alone_on_a_gpu_only(self):
        section = self.part_of(self.report(CELLS, "cuda"))
        for text in ("100 TFLOP/s", "93.3 %", "the same on all sides: host threads."):
            self.assertIn(text, section)
        section = self.part_of(self.report(CELLS))
        self.assertNotIn("TFLOP/s", section)
        self.assertIn("the same on all sides: host threads.", section)

    def test_attention_that_differs_is_named_by_length(self):
        cells = [{**sample.parts("naive", t), "attention": by} for t, by in ((128, "cuDNN"), (256, "own kernel"))]
        self.assertIn("cuDNN for T=128; own kernel for T=256.", self.part_of(self.report(cells)))
        older = [{key: value for key, value in sample.parts("naive", 128).items() if key not in ("attention", "linear_flop",
                                                                                                  "linear_alone_s")}]
        section = self.part_of(self.report(older, "cuda"))
        self.assertNotIn("Attention", section)
        self.assertNotIn("TFLOP/s", section)

    def test_one_length_has_no_curve_and_a_plan_no_times(self):
        section = self.part_of(self.report([sample.parts("naive", 128), sample.parts("fused", 128)]))
        self.assertIn("parts-time", section)
        self.assertNotIn("frontier", section)
        section = self.part_of(self.report([sample.parts("naive", t, outcome="planned") for t in (128, 256)]))
        self.assertNotIn("parts-time", section)
        self.assertIn("parts-frontier", section)

    def test_another_model_of_the_config_stands_alone(self):
        html = self.report([sample.parts("naive", 128), sample.parts("naive", 128, medusa=3, frozen=True)])
        self.assertIn("<h3>tiny in bf16, batch 4, V=4,096</h3>", html)
        self.assertIn("<h3>tiny in bf16, batch 4, V=4,096 medusa=3 frozen=True</h3>", html)
        self.assertTrue((self.folder / "figures/parts-time-tiny-bf16-4-4096-medusa-3-frozen-true-dark.svg").is_file())

    def test_a_run_without_them_has_no_section(self):
        self.assertNotIn('id="parts"', self.report([sample.check()]))


if __name__ == "__main__":
    unittest.main()
