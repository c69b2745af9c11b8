# SPDX-License-Identifier: Apache-2.0
"""Tests of the report: what it shows, and that damaged data are named. Run: python3 reports/tests/test_report.py"""
import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import sample  # noqa: E402
from tigon_report import __main__ as program  # noqa: E402
from command_test import pages_in, without_drawing  # noqa: E402
from tigon_report import load, page, slim, tables, targets, units  # noqa: E402
from tigon_report.recorded import Recorded  # noqa: E402


class ReportTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, records, name="records.jsonl", tail=""):
        (self.folder / name).write_text(sample.text(records) + tail)
        return self.folder

    def report(self, *arguments):
        """(exit code, stderr without progress) of `tigon report` on the test's folder, without figures."""
        with without_drawing():
            return self.drawn_report(*arguments)

    def drawn_report(self, *arguments):
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
            code = program.main(["report", str(self.folder), "--recorded", str(self.folder / "recorded"), *arguments])
        return code, "".join(line for line in errors.getvalue().splitlines(keepends=True) if not line.startswith("tigon: report: "))

    def page(self, name):
        return (self.folder / name).read_text()

    def section(self, name, part):
        return self.page(name).split(f'id="{part}"')[1].split("</section>")[0]

    def test_every_section_has_its_page(self):
        self.write(sample.host_run())
        self.assertEqual(self.report(), (0, ""))
        for name, parts in {"index.html": ("ops",), "rms_norm.html": ("correctness", "speed", "memory", "traffic"),
                            "training.html": ("convergence",), "trust.html": ("budget", "mutants", "environment")}.items():
            for part in parts:
                self.assertIn(f'id="{part}"', self.page(name))

    def test_a_figure_calls_its_axis_what_the_contract_does(self):
        for more, label in (({"axis_meanings": {"T": "rows", "V": "columns"}}, "T (rows)"), ({"axis_meanings": {"V": "columns"}}, "T"),
                            ({}, "T (tokens)")):
            with self.subTest(label):
                self.write([sample.header(), *(sample.bench("fused", t, 32000, 1e-9 * t) | more for t in (1024, 4096))])
                self.assertEqual(self.drawn_report("--host-times"), (0, ""))
                self.assertIn(f">{label}</text>", next((self.folder / "figures").glob("speed*-light.svg")).read_text())

    def test_host_time_is_never_shown_as_kernel_speed(self):
        self.write(sample.host_run())
        self.report("--host-times")
        speed = self.section("cross_entropy.html", "speed")
        self.assertIn("They say nothing about the speed of a kernel", speed)
        self.assertNotIn("share of ceiling", speed)
        self.assertNotIn("naive / this", speed)
        self.assertNotIn("10.00 ms", self.page("index.html"))

    def test_what_naive_takes_has_no_column_where_it_did_not_run(self):
        for shown, records in ((True, sample.gpu_run()), (False, [r for r in sample.gpu_run() if r.get("impl") != "naive"])):
            with self.subTest(shown):
                self.write(records)
                self.assertEqual(self.report(), (0, ""))
                for name in ("cross_entropy.html", "summary.md"):
                    self.assertEqual("naive / this" in self.page(name), shown)

        self.write(sample.host_run())
        for words, shown in ((), False), (("--host-times",), True):
            self.assertEqual(self.report(*words), (0, ""))
            self.assertEqual("10.00 ms" in self.section("cross_entropy.html", "speed"), shown)
            self.assertEqual("tokens/s" in self.section("training.html", "convergence").split("<h3>")[-1], shown)
        self.write(sample.gpu_run())
        self.assertEqual(self.report(), (0, ""))
        self.assertIn("measured cells", self.section("cross_entropy.html", "speed"))

    def test_the_counts_are_those_of_the_terminal(self):
        records = sample.host_run()
        records[-1] |= {"passed": 17, "failed": 0, "skipped": 2}
        self.write(records)
        self.report()
        for file in ("index.html", "summary.md"):
            self.assertIn("17 passed, 0 failed, 2 skipped; 1 of 1 planted faults caught", self.page(file))

    def test_failures_that_no_record_names_are_counted(self):
        records = sample.host_run()
        records[-1] |= {"failed": 3}
        self.write(records)
        self.report()
        self.assertIn("3 failed, and no record names them", self.page("index.html"))
        self.assertNotIn("Nothing failed", self.page("index.html"))

    def test_shards_count_together(self):
        shards = [load.Run(pathlib.Path("x"), {}, {}, {"passed": count, "failed": 1, "skipped": 0}) for count in (2, 3)]
        self.assertEqual(load.joined(shards).end, {"passed": 5, "failed": 2, "skipped": 0})
        shards[0].end = None
        self.assertIsNone(load.joined(shards).end)

    def test_a_summary_is_short_however_much_failed(self):
        failing = [sample.check("incorrect_numerical", reason="y[0] is wrong " * 40, axes={"T": k, "H": 127},
                                case_id=f"rms_norm/forward/fused/bf16/T={k},H=127") for k in range(300)]
        cells = [sample.bench("fused", t, 32000, 1e-5 * t) for t in range(1, 40)]
        self.write([*sample.gpu_run(), *failing, *cells])
        self.assertEqual(self.report(), (0, ""))
        summary = (self.folder / "summary.md").read_text()
        self.assertLess(len(summary.encode()), 8000)
        self.assertIn("- and 295 more, in index.html", summary)
        self.assertEqual(summary.count("| cross_entropy forward_backward |"), 1)
        self.assertIn("T=8192 V=128256", summary)  # the largest

    def test_claims_stand_in_one_table_with_what_was_measured(self):
        self.write(sample.host_run())
        self.assertEqual(self.report(), (0, ""))
        table = self.page("training.html").split("What the papers claim")[1].split("</table>")[0]
        for text in ("not measured here", "no GPU here", "-61%", "holds", "host executor: AMD EPYC", "a paper"):
            self.assertIn(text, table)
        self.assertTrue((self.folder / "figures" / "claims-light.svg").is_file())
        self.assertIn("| train | memory | +20% | -61% | holds |", (self.folder / "summary.md").read_text())

    def test_a_verdict_of_an_older_run_has_no_equivalence(self):
        records = sample.host_run()
        for record in records:
            record.pop("equivalence", None)
        self.write(records)
        self.assertEqual(self.report(), (0, ""))

    def test_evidence_of_a_training_is_shown(self):
        self.write(sample.host_run())
        self.assertEqual(self.report(), (0, ""))
        section = self.section("training.html", "convergence")
        controls = section.split("Negative controls")[1].split("</table>")[0]
        for text in ("1 of 1 did", "rope.sin_sign", '<td class="n">2</td><td class="n">–</td>', "tiny, 30 steps (host executor)"):
            self.assertIn(text, controls)
        for text in ("What escapes curves bf16: rope.sin_sign", "1 of 1 seeds gave an alarm", "Seed 101, curves bf16: losses differ by 0.1",
                     "<td>layers.1.o</td>", "<td>the same</td>", "A shift of 0.09", '<td class="n">0.00150</td>'):
            self.assertIn(text, section)
        self.assertNotIn("What escapes states bf16", section)
        self.assertIn("layers.0.qkv", section)  # the worst parameter of its step
        self.assertNotIn("<td>head</td>", section)
        self.assertIn("confidence 95", section)
        self.assertIn("7.102", section)  # the fused run itself and not its twin

    def test_recorded_run_is_named_with_machine_and_date(self):
        self.write(sample.host_run())
        (self.folder / "recorded").mkdir()
        self.write(sample.gpu_run(), "recorded/h200.jsonl")
        self.assertEqual(self.report()[0], 0)
        for file in ("cross_entropy.html", "summary.md"):
            self.assertIn("Recorded on NVIDIA H200, 2026-01-01", self.page(file))
        self.assertIn("<code>reports/recorded/h200.jsonl</code>", self.page("cross_entropy.html"))
        self.assertIn("recorded 2026-01-01", self.page("index.html"))

    def test_what_the_repository_has_recorded_can_be_shown(self):
        self.write(sample.host_run())
        self.assertEqual(self.report("--recorded", str(HERE.parent / "recorded")), (0, ""))
        summary = (self.folder / "summary.md").read_text()
        self.assertIn("Recorded on NVIDIA H200", summary)
        self.assertLess(len(summary.encode()), 8000)
        self.assertIn("Training recorded on NVIDIA H200", self.page("training.html"))
        self.assertIn("Trials of the judge recorded on NVIDIA H200", self.page("trust.html"))

    def test_a_dark_figure_is_the_light_one_in_other_colours(self):
        self.write(sample.gpu_run())
        self.drawn_report()
        light, dark = (next((self.folder / "figures").glob(f"speed*-{theme}.svg")).read_text() for theme in ("light", "dark"))
        self.assertEqual(len(light), len(dark))
        for text, fused, other in ((light, "#0072b2", "#56b4e9"), (dark, "#56b4e9", "#0072b2")):
            self.assertIn(fused, text)
            self.assertNotIn(other, text)

    def test_a_target_with_a_limit_of_bytes_needs_both(self):
        case = {"case_id": "a", "op": "linear_cross_entropy", "axes": {"T": 4096, "V": 128256}, "options": {"split": "vocabulary"}}
        for arena, reached in ((300 << 20, True), (400 << 20, False), (None, False)):
            cells = [{**sample.bench("fused", 1, 1, 1e-3), **case, "share_of_yardstick": 0.8},
                     {**sample.memory("fused", 1, 1, arena), **case}]
            self.write([sample.header("cuda", "NVIDIA H200"), *cells])
            (row,) = (row for row in targets.of([load.load_run(self.folder)]) if row["what"].startswith("lean"))
            self.assertEqual((row["arena"], row["reached"]), (arena, reached))

    def test_of_a_shape_the_fastest_case_within_the_bytes_counts(self):
        case = {"op": "linear_cross_entropy", "axes": {"T": 4096, "V": 128256}, "options": {"split": "vocabulary"}}
        records = []
        for name, arena, share in (("a", 100 << 20, 0.6), ("b", 300 << 20, 0.8), ("c", 2 << 30, 0.98), ("d", 4 << 30, 0.99)):
            records += [{**sample.bench("fused", 1, 1, 1e-3), **case, "case_id": name, "share_of_yardstick": share},
                        {**sample.memory("fused", 1, 1, arena), **case, "case_id": name}]
        self.write([sample.header("cuda", "NVIDIA H200"), *records])
        rows = {row["what"].split(":")[0]: row["worst"] for row in targets.of([load.load_run(self.folder)])}
        self.assertEqual(rows, {"fast": 0.98, "lean": 0.8})

    def test_targets_show_the_worst_case_of_the_newest_run(self):
        def run(day, shares):
            cells = [{**sample.bench("fused", 8192, v, 1e-3), "share_of_copy": share, "share_of_yardstick": share + 0.01}
                     for v, share in shares.items()]
            header = {**sample.header("cuda", "NVIDIA H200"), "run_id": f"2026010{day}T120000Z-1a2b3c4d"}
            file = self.folder / f"{day}.jsonl"
            file.write_text(sample.text([header, *({**cell, "run_id": header["run_id"]} for cell in cells)]))
            return load.load_run(file)

        older, newer = run(1, {32000: 0.5, 128256: 0.94, 50257: 0.7}), run(2, {32000: 0.96})
        aligned, unaligned = targets.of([newer, older])
        self.assertEqual((aligned["case"], aligned["worst"], aligned["best"], aligned["reached"], aligned["why"]),
                         ("cross_entropy forward_backward", 0.94, 0.96, True, ""))
        self.assertEqual((unaligned["worst"], unaligned["reached"]), (0.7, False))
        self.assertAlmostEqual(aligned["beside"], 0.95)
        self.assertEqual([row["where"] for row in targets.of([newer, older], newer)], ["NVIDIA H200, recorded 2026-01-01"] * 2)  # the worst
        self.assertEqual(targets.of([newer], newer)[0]["where"], "this run")
        self.assertNotEqual(unaligned["why"], "")
        self.assertEqual(targets.of([load.load_run(self.write(sample.host_run()))]), [])

    def test_gpu_run_shows_speed_up_over_naive(self):
        self.write(sample.gpu_run())
        self.assertEqual(self.report()[0], 0)
        rows = tables.speed(load.load_run(self.folder))[("cross_entropy", "forward_backward")]
        ratios = [row["speed_up"] for row in rows]
        self.assertEqual(ratios[0], None)
        self.assertAlmostEqual(ratios[1], 4 / 1.2)

    def test_failure_shows_verdict_and_repro(self):
        self.write([*sample.host_run(), sample.check("nonfinite", reason="y[3,126] is nan")])
        self.report()
        for file in ("index.html", "rms_norm.html", "summary.md"):
            for text in ("nonfinite", "y[3,126] is nan", "./tigon check --case"):
                self.assertIn(text, self.page(file))
        self.assertIn('class="verdict bad"', self.page("index.html"))

    def test_torn_last_line_is_dropped(self):
        self.write(sample.host_run(), tail='{"record": "check", "op": "rms')
        code, errors = self.report()
        self.assertEqual((code, errors.count("\n")), (0, 1))
        self.assertIn("torn", errors)

    def test_a_record_without_what_it_needs_is_named(self):
        for record in ({"record": "check"}, {**sample.check(), "axes": 3}, {"record": "ceiling"}):
            self.write([*sample.host_run(), record])
            code, errors = self.report()
            self.assertEqual((code, errors.count("\n")), (4, 1), errors)
            self.assertIn(f"records.jsonl:{len(sample.host_run()) + 1}: not a record", errors)

    def test_of_a_file_with_several_runs_one_is_chosen_and_shards_are_one(self):
        other = {"run_id": "20260102T120000Z-00000001"}
        two = [*sample.gpu_run(), *({**record, **other} for record in sample.gpu_run())]
        self.write(two)
        code, errors = self.report()
        self.assertEqual(code, 4)
        self.assertIn("2 runs in it; choose one with --run", errors)
        self.assertIn("no run x in it", self.report("--run", "x")[1])
        self.assertEqual(len(load.load_run(self.folder, other["run_id"]).of("bench")), 4)
        headers = [record for record in two if record["record"] == "run"]
        for index, header in enumerate(headers):
            header["shard"] = {"index": index, "count": 2, "source": "--shard"}
        self.write(two)
        self.assertEqual(len(load.load_run(self.folder).of("bench")), 8)
        headers[1]["shard"]["index"] = 0
        self.write(two)
        self.assertEqual(self.report()[0], 4)

    def test_damaged_line_is_named(self):
        self.write([sample.header()], tail="nonsense\n" + sample.text([sample.check()]))
        code, errors = self.report()
        self.assertEqual(code, 4)
        self.assertIn("records.jsonl:2: not a record", errors)

    def test_missing_run_is_named(self):
        code, errors = self.report()
        self.assertEqual(code, 4)
        self.assertIn("no such file", errors)

    def test_run_without_header_is_named(self):
        self.write([sample.check()])
        code, errors = self.report()
        self.assertEqual((code, "no run record" in errors), (4, True))

    def test_text_of_a_record_cannot_become_markup(self):
        self.write([*sample.host_run(), sample.check("crashed", reason="<script>alert(1)</script>")])
        self.report()
        for file in ("index.html", "rms_norm.html"):
            self.assertNotIn("<script>", self.page(file))

    def test_same_records_give_the_same_bytes(self):
        self.write(sample.gpu_run())
        outputs = []
        for name in ("a", "b"):
            self.drawn_report("--out", str(self.folder / name))
            files = sorted((self.folder / name).rglob("*.*"))
            outputs.append([file.read_bytes() for file in files if file.is_file()])
        self.assertEqual(outputs[0], outputs[1])

    def test_a_slim_run_gives_the_same_report(self):
        bench = {**sample.bench("fused", 8192, 32000, 4e-4), "samples_s": [4e-4] * 30}
        step = {"record": "converge_step", "config": "tiny", "impl": "fused", "dtype": "bf16", "step": 1, "loss": 8.3}
        self.write([*sample.gpu_run(), bench, step])
        slimmed = self.folder / "slim.jsonl"
        self.assertEqual(slim.main([str(self.folder), str(slimmed)]), 0)
        self.assertNotIn("samples_s", slimmed.read_text())
        self.assertNotIn("converge_step", slimmed.read_text())
        with without_drawing():
            for run, out in ((self.folder, "whole"), (slimmed, "thin")):
                page.write(load.load_run(run), Recorded(), self.folder / out)
        self.assertEqual(pages_in(self.folder / "whole"), pages_in(self.folder / "thin"))

    def test_units(self):
        self.assertEqual(units.seconds(0.0425e-3), "42.50 µs")
        self.assertEqual(units.binary_bytes(3 * 2**30), "3.00 GiB")
        self.assertEqual(units.rate(4.2e12, "bytes_per_s"), "4.20 TB/s")
        self.assertEqual(units.number(None), "–")


if __name__ == "__main__":
    unittest.main()
