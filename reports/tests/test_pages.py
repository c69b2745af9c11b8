# SPDX-License-Identifier: Apache-2.0
"""Tests of how the report's pages hang together. Run: python3 reports/tests/test_pages.py"""
import html.parser
import itertools
import pathlib
import re
import tempfile
import unittest
import unittest.mock

import sample
from command_test import HERE, CommandTest, pages_in, without_drawing
from tigon_report import addresses, cited_chart, load, page
from tigon_report.recorded import Recorded

RECORDED = HERE.parent / "recorded"
COUNTS = re.compile(r"(\d+) passed, (\d+) failed, (\d+) skipped")


class Page(html.parser.HTMLParser):
    """The addresses, ids, pictures, rows and the text of the title of a page."""

    def __init__(self, text):
        super().__init__()
        self.addresses, self.ids, self.tags, self.title = [], [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        for key, value in attributes:
            if key in ("href", "src", "srcset"):
                self.addresses.append(value)
            elif key == "id":
                self.ids.append(value)

    def handle_data(self, data):
        if self.tags and self.tags[-1] == "title" and not self.title:
            self.title = data


def everything():
    """One run with all records that are kept, of a GPU: nothing can hold more."""
    recorded = Recorded.load(RECORDED)
    run = load.joined([run for run in itertools.chain(recorded.runs, recorded.benches, recorded.trainings, recorded.judged) if run.on_gpu])
    run.records["check"] = run.of("check") + [sample.check("incorrect_numerical", reason="y is wrong " * 40, case_id=f"rms_norm/{k}")
                                              for k in range(50)]
    return run


class RecordedTest(unittest.TestCase):
    """The report of a run of the host, beside all that is recorded."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder, cls.recorded = pathlib.Path(folder.name), Recorded.load(RECORDED)
        (cls.folder / "records.jsonl").write_text(sample.text(sample.host_run()))
        with without_drawing(but="headline"):
            page.write(load.load_run(cls.folder), cls.recorded, cls.folder)
        cls.texts = pages_in(cls.folder)
        cls.pages = {name: Page(text) for name, text in cls.texts.items()}

    def test_every_address_leads_somewhere(self):
        for name, one in self.pages.items():
            self.assertEqual(len(one.ids), len(set(one.ids)), f"{name}: an id stands twice")
            for address in one.addresses:
                file, _, part = address.partition("#")
                if address == "data:,":
                    continue
                self.assertTrue((self.folder / (file or name)).is_file(), f"{name}: {address}")
                if part:
                    self.assertIn(part, self.pages[file or name].ids, f"{name}: {address}")

    def test_every_op_has_a_page_with_a_title_and_a_way_back(self):
        ops = {record["op"] for run in self.recorded.measured for record in run.of("bench")}
        self.assertEqual(set(self.pages), {"index.html", "training.html", "trust.html", *map(addresses.of_op, ops)})
        for name, one in self.pages.items():
            self.assertIn("Tigon report 2026", one.title)
            self.assertEqual("index.html" in one.addresses, name != "index.html")
        self.assertEqual(len({one.title for one in self.pages.values()}), len(self.pages))

    def test_every_figure_is_shown_once(self):
        shown = [address for one in self.pages.values() for address in one.addresses if address.startswith("figures/")]
        drawn = {f"figures/{file.name}" for file in (self.folder / "figures").iterdir()}
        self.assertEqual(sorted(shown), sorted(drawn))

    def test_the_landing_is_short(self):
        landing = self.pages["index.html"]
        self.assertLessEqual(landing.tags.count("img"), 2)
        ops = {record["op"] for run in self.recorded.measured for record in run.of("bench")}  # a row each
        self.assertLessEqual(landing.tags.count("tr") - len(ops), 15)

    def test_without_peers_the_headline_is_named_as_recorded(self):
        self.assertIn("headline", self.pages["index.html"].ids)
        self.assertIn("Not of this run:</strong> recorded on NVIDIA H200", self.texts["index.html"])

    def test_a_time_of_another_run_is_named_as_recorded_in_its_cell(self):
        table = self.texts["index.html"].split('id="ops"')[1].split("</table>")[0]
        newest = self.recorded.measured[0]
        self.assertIn(f'<th colspan="3" class="from">recorded {newest.date} on {newest.device}', table)
        times = re.findall(r'<td class="n">[\d.]+ (?:µs|ms)(.*?)</td>', table)
        self.assertGreater(len(times), 8)
        self.assertEqual(set(times), {' <span class="dim">recorded</span>'})

    def test_a_phone_gets_a_narrow_chart(self):
        picture = self.texts["index.html"].split('<picture class="fits">')[1].split("</picture>")[0]
        files = re.findall(r'(?:srcset|src)="(.*?)"', picture)
        self.assertEqual(files, [f"figures/headline{part}.svg" for part in ("-narrow-dark", "-narrow-light", "-dark", "-light")])
        widths = [float(re.search(r'width="([\d.]+)pt"', (self.folder / file).read_text())[1]) for file in files]
        self.assertLess(widths[0], 352)  # of a screen of 400, in pt
        self.assertGreater(widths[2], 600)

    def test_a_planted_slow_down_is_named_so(self):
        summary, trust = (self.folder / "summary.md").read_text(), self.texts["trust.html"]
        line = next(line for line in summary.splitlines() if line.startswith("Recorded gates"))
        compared = [gate for gate in self.recorded.gates if gate.of("gate") and not gate.path.stem.endswith("-planted")]
        self.assertRegex(line, rf"\): {len(compared)} on NVIDIA H200: \d+ slower, .* inconclusive; "
                               r"with a kernel made slower on purpose: 2 of 21 cells slower\.$")
        self.assertNotIn("swiglu", line)
        self.assertGreater(summary.index(line), summary.rindex("\n## Recorded on"))
        for part in trust.split('<section class="recorded" ')[1:]:
            self.assertEqual("A slow-down was planted" in part, "-planted.jsonl" in part)

    def test_what_a_gpu_measured_stands_before_the_host(self):
        section = self.texts["cross_entropy.html"].split('id="memory"')[1].split("</section>")[0]
        self.assertLess(section.rindex("<h3>Recorded on NVIDIA H200"), section.index("<h3>This run"))


class JobsTest(unittest.TestCase):
    def test_processes_make_pages_in_order_and_hand_on_what_fails(self):
        self.assertEqual(list(page._each(lambda number: number * number, 5, 2)), [0, 1, 4, 9, 16])
        with self.assertRaises(KeyError):
            list(page._each({}.__getitem__, 3, 2))


class PagesTest(CommandTest):
    def written(self, items):
        """{file: its text} of the report on a run of these records, beside nothing that is recorded."""
        return self.report_of(items)[0]

    def test_a_landing_shows_the_first_failures(self):
        landing = self.written([*sample.host_run(), *(sample.check("crashed", case_id=f"rms_norm/{k}") for k in range(300))])["index.html"]
        self.assertEqual(landing.count('<span class="badge bad">crashed'), 3)
        self.assertIn('And 297 more: <a href="rms_norm.html">rms_norm.html</a>.', landing)

    def test_counts_of_the_landing_are_those_of_the_end(self):
        for end in ({"passed": 17, "failed": 0, "skipped": 2}, {"passed": 1, "failed": 5, "skipped": 0}):
            records = sample.host_run()
            records[-1] |= end
            pages, text = self.report_of(records)
            for shown in (pages["index.html"], text):
                self.assertEqual(COUNTS.findall(shown), [tuple(str(end[kind]) for kind in ("passed", "failed", "skipped"))])

    def test_peers_of_the_run_stand_in_the_headline(self):
        cells = [sample.bench(impl, t, v, seconds) for t, v, ours, torch in ((8192, 50257, 1e-3, 2e-3), (16384, 1024, 1e-4, 9e-4))
                 for impl, seconds in (("fused", ours), ("torch", torch))]
        with unittest.mock.patch.object(cited_chart, "figure", return_value=None) as drawn:
            self.written([*sample.gpu_run(), *cells])
        (row,) = drawn.call_args.args[2]
        self.assertEqual([(point["impl"], point["ratio"]) for point in row["points"]], [("torch", 2.0)])  # of the largest cell
        landing = self.written([*sample.gpu_run(), *cells])["index.html"]
        self.assertNotIn("Not of this run", landing)
        self.assertIn('class="from">timed by this run</th>', landing)
        self.assertNotIn(">recorded</span>", landing)

    def test_a_peer_counts_as_in_the_newest_run_and_over_ours_in_it(self):
        def run(day, ours, **peers):
            names = {"run_id": f"2026010{day}T120000Z-1a2b3c4d"}
            cells = [sample.bench(impl, 8192, 32000, seconds) for impl, seconds in {"fused": ours, **peers}.items()]
            self.write(f"recorded/bench/{day}.jsonl", [{**record, **names} for record in (sample.header("cuda", "NVIDIA H200"), *cells)])

        run(1, 1e-3, torch=9e-3, quack=3e-3)
        run(2, 2e-3, torch=8e-3)
        with unittest.mock.patch.object(cited_chart, "figure", return_value=None) as drawn:
            self.written([sample.header(), sample.check()])
        (row,) = drawn.call_args.args[2]
        self.assertEqual({point["impl"]: point["ratio"] for point in row["points"]}, {"torch": 4.0, "quack": 3.0})

    def test_no_time_of_a_peer_on_a_cpu_is_in_the_headline(self):
        host = [sample.header(), sample.bench("fused", 8, 1024, 1e-3, "fast"), sample.bench("torch", 8, 1024, 2e-3, "external")]
        self.assertNotIn('id="headline"', self.written(host)["index.html"])

    def test_fair_baselines_stand_before_naive_ones(self):
        cells = [sample.bench(impl, 8192, 50257, seconds) for impl, seconds in (("naive", 9e-3), ("torch", 4e-3), ("fused", 1e-3))]
        page = self.written([*sample.gpu_run(), *cells])["cross_entropy.html"]
        self.assertEqual(re.findall("<td>(fused|torch|naive)</td>", page.split('id="peers"')[1])[:3], ["fused", "torch", "naive"])
        self.assertLess(page.index('id="peers"'), page.index("naive / this"))
        self.assertNotIn("V=50257", page.split('id="speed"')[1].split("<table>", 1)[1].split("</section>")[0])  # nothing twice

    def test_a_summary_of_everything_is_short(self):
        text = page.summary_text(everything(), Recorded.load(RECORDED))
        self.assertLess(len(text.encode()), 8192)
        self.assertEqual(len(COUNTS.findall(text)), 1)

    def test_the_name_of_an_op_cannot_leave_the_folder(self):
        pages = self.written([sample.header(), sample.check(op="../../x"), sample.check(op="index", case_id="index/y")])
        self.assertEqual(set(pages), {"index.html", ".._.._x.html", "op-index.html", "training.html", "trust.html"})


if __name__ == "__main__":
    unittest.main()
