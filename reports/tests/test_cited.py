# SPDX-License-Identifier: Apache-2.0
"""Tests of tigon figures, in a small tree of its own. Run: python3 reports/tests/test_cited.py"""
import json
import os
import subprocess
import unittest

import sample
from command_test import CommandTest, full
from tigon_report import cited_chart
from tigon_report.cited import ROOT
from tigon_report.kernel_age import Kernels

PAGE = "# A page\n\n<!-- figures: {words} -->\n<!-- end figures -->\n\nThe end.\n"
RECORD = "reports/recorded/peers.jsonl"
TABLE = f"peers {RECORD}"
CHART = f"chart charts/peers {RECORD}"


class FiguresTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.file("kernels/cross_entropy/cross_entropy.cu", '#include "kernels/loss/row.h"\n')
        self.file("kernels/loss/row.h", '#include "kernels/device/vec.h"\n')
        self.file("kernels/device/vec.h", "#pragma once\n")
        self.file("kernels/rope/rope.cu", '#include "kernels/device/vec.h"\n')
        self.git("init", "-q")
        self.commit = self.committed()
        self.record()

    def file(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def git(self, *words):
        names = {f"GIT_{who}_{what}": "x@y.z" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        return subprocess.run(["git", "-C", self.folder, *words], check=True, capture_output=True, text=True, env={**os.environ, **names}).stdout

    def committed(self):
        self.git("add", "-A")
        self.git("commit", "-qm", "kernels")
        return self.git("rev-parse", "HEAD").strip()

    def record(self, quack=1.5e-3, commit=None, bases=("cold",), alone=()):
        header = sample.header("cuda", "NVIDIA H200")
        header["tool"]["commit"] = commit or self.commit
        times = {"fused": 1e-3, "torch": 4e-3, "compile": 2e-3, "liger": 1.8e-3, "quack": quack}
        timed = [{**sample.bench(impl, 1024, 32000, seconds), "basis": basis,
                  "samples_s": [seconds * (1 + 0.001 * (i % 5)) for i in range(30)]}
                 for basis in bases for impl, seconds in times.items()]
        timed += [{**sample.bench("fused", 1024, 32000, 1e-3), "op": op} for op in alone]
        return self.write(RECORD, [full(record) for record in (header, *timed)])

    def figures(self, *words):
        return self.tigon("figures", "--root", self.folder, *words)

    def written(self, words):
        """The page, after tigon figures wrote it."""
        page = self.file("page.md", PAGE.format(words=words))
        code, _, errors = self.figures()
        self.assertEqual((code, errors), (0, ""))
        self.assertEqual(self.figures("--check")[0], 0)
        return page

    def wrong(self, code, says):
        got, _, errors = self.figures("--check")
        self.assertEqual((got, errors.count("\n")), (code, 1), errors)
        self.assertIn(says, errors)

    def test_a_table_names_device_date_commit_and_record(self):
        text = self.written(TABLE).read_text()
        self.assertIn("| cross_entropy forward + backward | T=1024 V=32000 | 1.000 ms | 3 % | QuACK 1.50 | 2.00 | 4.00 |", text)
        self.assertIn(f"Measured on NVIDIA H200: 2026-01-01, commit {self.commit[:7]}, [record]({RECORD}).\nThese kernels have not changed since.", text)
        self.assertTrue(text.startswith("# A page\n") and text.endswith("\nThe end.\n"))
        self.assertIn("every figure was that of its record", self.figures()[1])

    def test_a_table_has_cold_caches_where_there_are_both(self):
        self.record(bases=("cold", "graph"))
        self.assertEqual(self.written(TABLE).read_text().count("| cross_entropy forward + backward |"), 1)

    def test_a_page_in_a_folder_links_the_record_from_there(self):
        page = self.file("harness/page.md", PAGE.format(words=TABLE))
        self.figures()
        self.assertIn(f"[record](../{RECORD})", page.read_text())

    def test_a_changed_figure_fails(self):
        page = self.written(TABLE)
        page.write_text(page.read_text().replace("QuACK 1.50", "QuACK 1.60"))
        self.wrong(1, f"page.md: block '{TABLE}' is not what its records and kernels say")

    def test_another_measurement_fails(self):
        self.written(TABLE)
        self.record(quack=1.6e-3)
        self.wrong(1, f"page.md: block '{TABLE}'")

    def test_a_record_that_is_missing_or_of_no_commit_here(self):
        self.written(TABLE)
        self.record(commit="0123456789abcdef")
        self.wrong(4, "commit 0123456 is not in this history")
        (self.folder / RECORD).unlink()
        self.wrong(4, "page.md: block")

    def test_a_shallow_clone_cannot_tell(self):
        self.written(TABLE)
        self.file("kernels/rope/rope.cu", "\n")
        self.committed()
        shallow = self.folder / "shallow"
        subprocess.run(["git", "clone", "-q", "--depth", "1", self.folder.as_uri(), shallow], check=True, capture_output=True)
        self.refused(5, "shallow clone; git fetch --unshallow", "figures", "--root", shallow, "--check")

    def test_a_figure_older_than_its_kernel_fails_until_the_page_says_so(self):
        for name in ("cross_entropy/cross_entropy.cu", "loss/row.h", "device/vec.h"):
            page = self.written(TABLE)
            before = self.file(f"kernels/{name}", (self.folder / "kernels" / name).read_text() + "int faster;\n")
            self.wrong(1, "page.md: block")
            self.assertEqual(self.figures()[0], 0)
            self.assertIn("\nThe kernels' sources have changed since.\n", page.read_text())
            self.assertEqual(self.figures("--check")[0], 0)
            before.write_text(before.read_text().replace("int faster;\n", ""))

    def test_the_kernel_of_another_op_and_tests_do_not_age_it(self):
        self.written(TABLE)
        self.file("kernels/rope/rope.cu", "int faster;\n")
        self.file("kernels/loss/tests/row_test.cpp", "\n")
        self.file("kernels/loss/notes.md", "\n")
        self.committed()
        self.assertEqual(self.figures("--check")[0], 0)

    def test_a_kernel_that_a_chart_does_not_show_does_not_age_it(self):
        self.record(alone=("rope",))
        for words in (CHART, f"fresh {CHART}"):
            page = self.written(words)
            self.file("kernels/rope/rope.cu", f"int {words[0]};\n")
            self.committed()
            self.assertEqual(self.figures("--check")[0], 0)
            self.assertIn("These kernels have not changed since.", page.read_text())
        self.file("kernels/loss/row.h", "int faster;\n")
        code, _, errors = self.figures()
        self.assertEqual(code, 1)
        self.assertIn("its record is older than the kernels of cross_entropy", errors)

    def test_a_new_op_ages_no_figure_that_speaks_of_all(self):
        self.file("kernels/softmax/softmax.cu", "int kernel;\n")
        self.file("kernels/rope/rope.cu", "int faster;\n")
        self.committed()
        kernels = Kernels(self.folder)
        self.assertEqual(kernels.ops_of(self.commit), ["cross_entropy", "rope"])
        self.assertEqual(kernels.changed_since(self.commit) & set(kernels.ops_of(self.commit)), {"rope"})

    def test_a_comment_an_include_and_a_move_do_not_age_it(self):
        text = "#pragma once\n" + "".join(f"int value_{i};\n" for i in range(20))
        row = self.file("kernels/loss/row.h", text)
        self.file("kernels/cross_entropy/cross_entropy.cu", '#include "kernels/loss/row.h"\nint kernel;\n')
        self.record(commit=self.committed())
        self.written(TABLE)
        row.unlink()
        self.file("kernels/loss/rows.h", text.replace("int value_3;", "// The third.\n\nint value_3;"))
        self.file("kernels/cross_entropy/cross_entropy.cu", '#include "kernels/loss/rows.h"\nint kernel;\n')
        self.committed()
        self.assertEqual(self.figures("--check")[0], 0)

    def test_what_only_a_host_compiles_does_not_age_it(self):
        self.check_branches("TIGON_GPU")

    def test_nvcc_is_known_by_its_own_macro_too(self):
        self.check_branches("defined(__CUDACC__)")

    def check_branches(self, gpu):
        text = "#if TIGON_GPU\nint gpu;\n#if ARCH > 900\nint new;\n#else\nint old;\n#endif\n#else\nint host;\n#endif\n#if !TIGON_GPU\nint other;\n#endif\n"
        text = text.replace("#if TIGON_GPU", f"#if {gpu}")
        self.file("kernels/device/vec_host.h", "int host;\n")
        self.file("kernels/device/vec.h", text)
        self.record(commit=self.committed())
        self.written(TABLE)
        self.file("kernels/device/vec_host.h", "int faster;\n")
        self.file("kernels/device/vec.h", text.replace("int host;", "#if 1\nint faster;\n#endif").replace("int other;", ""))
        self.assertEqual(self.figures("--check")[0], 0)
        for name in ("gpu", "new", "old"):
            self.file("kernels/device/vec.h", text.replace(f"int {name};", "int faster;"))
            self.wrong(1, "page.md: block")
        self.file("kernels/device/vec.h", f"{text}int faster;\n")
        self.wrong(1, "page.md: block")

    def test_a_figure_outside_of_blocks_fails_unless_it_is_code_or_marked(self):
        for text in ("It takes 3.1 ms.", "40% faster", "faster by 12 %", "in 1.5 GiB", "1.7 times as fast", "17 of 17 caught", "87.9 us", "4 TB/s",
                     "about 8 minutes", "after 12 s", "2 h of a GPU", "15 min", "6,504 cases", "27,000 random cases", "9 planted faults", "1,105 tests",
                     "312 checks"):
            self.file("page.md", f"One.\n{text}\n")
            self.wrong(1, "page.md:2: '")
        for text in ("T = 4,096 rows", "`--memory 80GiB`", "```sh\nx --memory 80 GiB\n```", "    at most 3 ms", "at most 3 ms <!-- no record -->",
                     "<!-- 3 ms -->", "sm_90, CUDA 13", "two of five",
                     "2 cores", "Debian 12, and 3 ops", "at step 12"):
            self.file("page.md", f"One.\n{text}\n")
            self.assertEqual(self.figures("--check")[0], 0, text)

    def test_a_block_that_must_be_fresh_fails_when_its_kernel_changes(self):
        page = self.written(f"fresh {TABLE}")
        self.assertIn("QuACK 1.50", page.read_text())
        self.file("kernels/rope/rope.cu", "// of no op that it speaks of\n")
        self.assertEqual(self.figures("--check")[0], 0)
        self.file("kernels/loss/row.h", "int faster;\n")
        for words in ((), ("--check",)):  # to write it anew is of no help
            code, _, errors = self.figures(*words)
            self.assertEqual((code, errors.count("\n")), (1, 1), errors)
            self.assertIn(f"page.md: block 'fresh {TABLE}': must be fresh, and its record is older than the kernels of cross_entropy", errors)
        page.write_text(page.read_text().replace("fresh peers", "peers"))
        self.assertEqual(self.figures("--check")[0], 0)  # its label is enough for others

    def test_times_of_a_first_use_come_from_text_records(self):
        given = f"machine: 2 cores\ndate: 2026-11-25\ncommit: {self.commit}\nstate: first\n"
        self.file("first.txt", f"By hand.\n\n{given}$ ./tigon run\nreal 8m4s\nuser\t20m1.250s\nsys 3m2s\ndisk 2147483648 bytes\n$ ./tigon run\nreal\t8m48.7s\n"
                               "state: again\n$ ./tigon run\nreal 0m59.2s\n$ ./tigon test\nreal 4m52s\n")
        page = self.written("first_use first.txt")
        self.assertIn("| on | command | first time | again | processor time, first | disk |\n", page.read_text())
        self.assertIn("| 2 cores | `./tigon run` | 8 min to 9 min | 59 s | 23 min | 2.00 GiB |\n", page.read_text())
        self.assertIn("| 2 cores | `./tigon test` | – | 5 min | – | – |\n", page.read_text())
        self.assertIn(f"\nMeasured 2026-11-25: commit {self.commit[:7]}, [record](first.txt).\n", page.read_text())
        page.write_text(page.read_text().replace("59 s", "9 s"))
        self.wrong(1, "page.md: block 'first_use first.txt' is not what its records")
        for text, code, says in ((given, 1, "times no command"), (f"{given}$ ./tigon run\nuser 8m4s\n", 1, "without 'real'"),
                                 ("$ ./tigon run\nreal 8m4s\n", 1, "first.txt:1: before a command stand"),
                                 (f"{given}state: once\n$ ./tigon run\nreal 8m4s\n", 1, "first or again"),
                                 (f"{given}commit: 0123456789\n$ ./tigon run\nreal 8m4s\n", 4, "commit 0123456 is not in this history")):
            self.file("first.txt", text)
            self.wrong(code, says)
        (self.folder / "first.txt").unlink()
        self.wrong(4, "no such file")
        self.file("page.md", PAGE.format(words="first_use"))
        self.wrong(1, "names no record")

    def test_a_first_use_names_a_day_and_a_record_once(self):
        command = "state: first\n$ ./tigon run\nreal 8m4s\n"
        given = f"machine: a\ndate: 2026-11-25\ncommit: {self.commit}\n{command}"
        self.file("a.txt", f"{given}commit: not noted\n{command}")
        self.file("b.txt", f"{given}date: 2026-11-26\n{command}")
        commit = f"commit {self.commit[:7]}"
        self.assertIn(f"\nMeasured 2026-11-25: {commit} or not noted, [record](a.txt); {commit}, [record](b.txt).\n"
                      f"Measured 2026-11-26: {commit}, [record](b.txt).\n", self.written("first_use a.txt b.txt").read_text())

    def test_costs_of_collectives_are_modelled_from_their_tables(self):
        for name in ("kernels/collective/links.tsv", "harness/cli/options/models.inc"):
            self.file(name, (ROOT / name).read_text())
        words = "collective_costs kernels/collective/links.tsv harness/cli/options/models.inc llama3.2-1b"
        text = self.written(words).read_text()
        self.assertIn("\nModelled, not measured, from [link rates](kernels/collective/links.tsv).\n", text)
        self.assertEqual(text.count("| llama3.2-1b |"), 3)
        for wrong, says in (("collective_costs a.tsv", "names no table of links"), (words + " llama9", "models.inc has no model llama9")):
            self.file("page.md", PAGE.format(words=wrong))
            self.wrong(1, says)

    def test_what_a_block_says_wrongly_is_one_line(self):
        for words, says in ((f"pears {RECORD}", "no generator of that name; there are chart, collective_costs, collectives, first_use, peers"),
                            ("peers", "names no record"),
                            (RECORD, "no generator of that name"),
                            (f"claims {RECORD}", "no claim in these records"), (f"baseline naive {RECORD}", "no kernel beside naive")):
            self.file("page.md", PAGE.format(words=words))
            self.wrong(1, says)
        self.file("page.md", f"<!-- figures: {TABLE} -->\n")
        self.wrong(1, "a block is not closed")
        self.refused(2, "no page of", "figures", "--root", self.folder, "none.md")

    def test_a_chart_is_compared_by_its_data(self):
        self.written(CHART)
        files = cited_chart.files(self.folder / "charts/peers")
        first = [file.read_bytes() for file in files]
        points = {point["impl"]: point["ratio"] for point in cited_chart.data_in(files[0])[0]["points"]}
        self.assertEqual(points, {"torch": 4.0, "compile": 2.0, "quack": 1.5})  # of the other packages the fastest
        files[0].write_bytes(first[0].replace(b"<svg ", b"<svg  "))  # another matplotlib draws it otherwise
        self.assertEqual(self.figures("--check")[0], 0)
        files[1].write_bytes(first[1].replace(b'"ratio": 1.5', b'"ratio": 2.5'))
        self.wrong(1, f"page.md: block '{CHART}'")
        self.assertEqual(self.figures()[0], 0)
        self.assertEqual([file.read_bytes() for file in files], first)
        files[0].unlink()
        self.wrong(1, f"page.md: block '{CHART}'")

    def test_a_chart_shows_each_case_once(self):
        self.record(bases=("graph", "cold"))
        self.written(CHART)
        self.assertEqual(len(cited_chart.data_in(cited_chart.files(self.folder / "charts/peers")[0])), 1)

    def test_the_data_of_a_chart_are_json(self):
        self.written(CHART)
        text = cited_chart.files(self.folder / "charts/peers")[0].read_text()
        self.assertEqual(json.loads(cited_chart.DATA.search(text)[1])[0]["case"], "cross_entropy forward + backward")

    def test_no_git_no_answer(self):
        self.written(TABLE)
        subprocess.run(["rm", "-rf", self.folder / ".git"], check=True)
        self.refused(5, "git", "figures", "--root", self.folder, "--check")


if __name__ == "__main__":
    unittest.main()
