# SPDX-License-Identifier: Apache-2.0
"""Tests of the paired gate: the command, its programs and exit codes. Run: python3 ci/tests/test_gate.py"""
import contextlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import numpy

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "ci"), str(ROOT / "reports"), str(ROOT / "harness/trees")]

from tigon_gate import __main__ as program  # noqa: E402
from tigon_gate import aa, cells, history, pairs  # noqa: E402
from tigon_gate.decide import Rule  # noqa: E402
from tigon_report import command, records, schema  # noqa: E402
from tigon_trees import build  # noqa: E402

class CommandTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def gate(self, *words, simulated=None):
        """(exit code, stdout, stderr, records)."""
        words = list(words)
        if simulated is not None:
            (self.folder / "simulated.json").write_text(json.dumps(simulated))
            words += ["--simulate", str(self.folder / "simulated.json"), "--json", str(self.folder / "records.jsonl"),
                      "--history", str(self.folder / "none")]
        out, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            code = command.run("gate", program.main, words)
        file = self.folder / "records.jsonl"
        lines = [line.record for line in records.read_file(file)] if file.exists() else []
        self.assertEqual([found for line in lines if (found := schema.violation(line))], [])
        return code, out.getvalue(), errors.getvalue(), lines

    def test_planted_slow_down_is_named_and_exits_with_3(self):
        code, out, _, lines = self.gate("--base", "x", simulated={"slow": {"rope/backward": 0.03}})
        self.assertEqual(code, 3)
        self.assertIn("slower: rope backward by +", out)
        slow = [r["case_id"] for r in lines if r.get("outcome") == "slower"]
        self.assertEqual([case.split("/")[:2] for case in slow], [["rope", "backward"]])
        self.assertEqual(out.strip().splitlines()[-1], f"{len(cells.all_cells()) - 1} passed, 1 failed, 0 skipped")
        self.assertEqual([r["record"] for r in (lines[0], lines[-1])], ["run", "end"])

    def test_same(self):
        code, out, _, _ = self.gate("--base", "x", "--op", "rope", simulated={})
        self.assertEqual((code, out.strip().splitlines()[-1]), (0, "2 passed, 0 failed, 0 skipped"))
        self.assertIn("no A/A history", out)

    def test_loud_machine_is_inconclusive(self):
        code, out, _, _ = self.gate("--base", "x", simulated={"noise": {"process": 0.08}, "slow": {"rope": 0.08}})
        self.assertEqual(code, 6)
        self.assertIn("inconclusive: ", out)

    def test_failing_cell_is_infrastructure(self):
        code, _, errors, _ = self.gate("--base", "x", simulated={"failing": [["head", "rope/forward", "crashed: signal 11"]]})
        self.assertEqual(code, 5)
        self.assertIn("head: rope/forward", errors)
        self.assertEqual(len(errors.strip().splitlines()), 3)

    def test_budget_too_small(self):
        code, out, _, _ = self.gate("--base", "x", "--op", "rope", "--budget", "1ms", simulated={"seconds": 0.001})
        self.assertEqual(code, 6)
        self.assertRegex(out, r"inconclusive: 11 more pairs of \d+ cells take about 0 s, and of the budget, builds included, 0 s remain;")

    def test_aa_prints_its_rate_and_what_it_finds(self):
        code, out, _, lines = self.gate("--aa", "--op", "rope", "--suites", "400", simulated={})
        self.assertEqual(code, 0, out)
        self.assertIn("false blocks: 0 of 400 suites resampled from 24 measured pairs", out)
        suite = next(r for r in lines if r["record"] == "aa" and r["scope"] == "suite")
        self.assertLess(suite["measured"]["rate_upper_95"], 0.01)
        self.assertLess(suite["mde_95_worst"], 0.03)
        self.assertIn("simulated", suite["device_name"])  # nobody may take it for a measurement
        by_margin = history.margins([r for r in lines if r.get("scope") == "cell"], {"name": suite["device_name"]},
                                    [c.case_id for c in cells.selected(["rope"])], Rule())
        self.assertIn("A/A of", by_margin[0].source)

    def test_report_prints_false_alarm_rate_and_smallest_effects(self):
        try:
            from tigon_report import __main__ as reports  # noqa: PLC0415
            import jinja2  # noqa: F401, PLC0415
            import matplotlib  # noqa: F401, PLC0415
        except ImportError as error:
            self.skipTest(str(error))
        self.gate("--aa", "--op", "rope", "--suites", "200", simulated={})
        (self.folder / "recorded/gate").mkdir(parents=True)
        (self.folder / "recorded/gate/aa.jsonl").write_bytes((self.folder / "records.jsonl").read_bytes())
        self.gate("--base", "x", "--op", "rope", simulated={"slow": {"rope/forward": 0.05}})
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            code = reports.main(["report", str(self.folder), "--recorded", str(self.folder / "recorded")])
        self.assertEqual(code, 0)
        page = (self.folder / "trust.html").read_text()
        own, recorded = page.split('id="recordedgate0"')
        self.assertIn("slower</span></td><td>rope/forward", own)
        self.assertIn("0 of 200 suites", recorded)
        self.assertIn("Smallest slow-down found with probability 0.8: 2.", recorded)
        summary = (self.folder / "summary.md").read_text()
        self.assertIn("0 of 200 suites of identical programs blocked (made of measured pairs)", summary)
        self.assertIn("smallest slow-down found with probability 0.8: 2.", summary)
        self.assertIn("- **slower** `rope/forward/fused/", summary)

    def test_usage(self):
        for words in ([], ["--aa", "--static"], ["--base", "a", "--base-dir", "b"], ["--budget", "soon", "--aa"],
                      ["--aa", "--op", "swigloo"], ["--aa", "--filter", "("], ["--aa", "--pairs", "0"]):
            code, out, errors, _ = self.gate(*words)
            self.assertEqual((code, out, len(errors.strip().splitlines())), (2, "", 1), f"{words}: {errors}")

    def test_no_gpu_names_what_works_without(self):
        if program.build.have_gpu():
            self.skipTest("a GPU is here")
        code, _, errors, _ = self.gate("--base", "HEAD")
        self.assertEqual((code, len(errors.strip().splitlines())), (5, 1))
        self.assertIn("--static", errors)


FAKE_PROGRAM = """#!{python}
import json, sys
if sys.argv[1] == "list":
    print("op pass implementation dtypes axes\\nrope forward fused bf16 T D")
    sys.exit(0)
{before}
words = sys.argv[2:]
of = lambda option: [words[i + 1] for i, w in enumerate(words) if w == option]
with open(of("--json")[0], "w") as file:
    def record(kind, **fields):
        print(json.dumps(dict(fields, record=kind, run_id="20260101T000000Z-00000000")), file=file)
    record("run", device=dict(kind="{kind}", uuid="{uuid}", name="G"))
    for case in of("--case"):
        names = dict(zip(("op", "pass", "impl", "dtype"), case.split("/")))
        record("bench", **names, case_id=case, executor="cuda", basis="{basis}", verdict="{verdict}", reason="why",
               median_s={seconds})
{last}
"""


class ProgramTest(unittest.TestCase):
    """The runner of real programs, with programs that imitate tigon bench."""

    CASE = "rope/forward/fused/bf16/T=16384,Q=32,K=8,D=128,inputs=normal,seed=42"

    def program(self, name, **change):
        folder = pathlib.Path(self.folder.name)
        text = {"python": sys.executable, "kind": "cuda", "uuid": "u", "basis": "graph", "verdict": "passed", "seconds": 1e-4,
                "last": "", "before": ""}
        (folder / name).write_text(FAKE_PROGRAM.format(**{**text, **change}))
        os.chmod(folder / name, 0o755)
        return folder / name

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def measure(self, **change):
        base, head = self.program("base"), self.program("head", **change)
        runner = pairs.ProgramRunner({"base": base, "head": head})
        return [runner.measure(side, [self.CASE])[self.CASE] for side in ("base", "head")]

    def test_measures(self):
        self.assertEqual(self.measure(seconds=2e-4), [1e-4, 2e-4])

    def test_what_fails_is_named(self):
        for change, text in (({"kind": "host"}, "host build"), ({"uuid": "v"}, "different GPUs"), ({"basis": "cold"}, "no time"),
                             ({"verdict": "crashed"}, "crashed: why"), ({"seconds": "None"}, "a time is positive"),
                             ({"seconds": "float('nan')"}, "NaN is no JSON number")):
            with self.assertRaisesRegex(pairs.RunnerError, text):
                self.measure(**change)
        with self.assertRaisesRegex(pairs.RunnerError, "is no program"):
            pairs.ProgramRunner({"base": pathlib.Path(self.folder.name) / "nothing"})

    def test_whole_gate_over_programs(self):
        words = ["--base-program", str(self.program("base")), "--head-program", str(self.program("head", seconds=1.04e-4)),
                 "--op", "rope", "--json", str(pathlib.Path(self.folder.name) / "r.jsonl"), "--history", self.folder.name]
        out, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            code = command.run("gate", program.main, words)
        self.assertEqual(code, 3, errors.getvalue())
        self.assertIn("not compared, not in base or head: rope/backward", out.getvalue())  # which these programs lack
        self.assertEqual(out.getvalue().splitlines()[-1], "0 passed, 1 failed, 1 skipped")
        self.assertIn("slower: rope forward by +4.00%", out.getvalue())

    def test_probe_finds_what_would_fail_late(self):
        for change, text in (({"kind": "host"}, "host build"), ({"uuid": "v"}, "different GPUs"),
                             ({"before": "sys.exit(\"tigon: unknown option '--samples'\")"}, "older than this gate")):
            runner = pairs.ProgramRunner({"base": self.program("base"), "head": self.program("head", **change)})
            with self.assertRaisesRegex(pairs.RunnerError, text):
                runner.probe()


class RecordedTest(unittest.TestCase):
    """What was recorded on a real GPU, judged again from its pairs."""

    @classmethod
    def setUpClass(cls):
        cls.lines = [line.record for file in sorted((ROOT / "reports/recorded/gate").glob("*.jsonl")) for line in records.read_file(file)]
        if not cls.lines:
            raise unittest.SkipTest("no gate is recorded in reports/recorded/gate")

    def of(self, kind, scope):
        return [line for line in self.lines if line["record"] == kind and line.get("scope") == scope]

    def test_records_are_whole(self):
        self.assertEqual([found for line in self.lines if (found := schema.violation(line))], [])
        self.assertTrue(all(line["device_name"].startswith("NVIDIA") for line in self.of("aa", "suite") + self.of("gate", "suite")))

    def test_identical_programs_are_blocked_at_most_once_in_100_suites(self):
        cells_of_run = self.of("aa", "cell")
        rule = Rule(pairs=cells_of_run[0]["gate_pairs"])
        ratios, edges = ([line[key] for line in cells_of_run] for key in ("log_ratios", "margin"))
        blocked, _ = aa.false_blocks(ratios, edges, rule, 300, numpy.random.default_rng(3))
        self.assertLess(aa.upper_bound(blocked, 300), 0.01)
        for kind in ("measured", "simulated"):
            self.assertLess(self.of("aa", "suite")[0][kind]["rate_upper_95"], 0.01)

    def test_planted_slow_down_is_found_and_nothing_else(self):
        if not self.of("gate", "suite"):
            self.skipTest("no planted slow-down is recorded in reports/recorded/gate")
        slow = {line["case_id"].split(",inputs")[0]: line["change"] for line in self.of("gate", "cell") if line["outcome"] == "slower"}
        self.assertTrue(slow)
        self.assertEqual({"/".join(case.split("/")[:2]) for case in slow}, {"swiglu/forward"})
        self.assertTrue(all(0.02 < change < 0.05 for change in slow.values()), slow)
        self.assertEqual(self.of("gate", "suite")[0]["exit_code"], 3)


class BuildTest(unittest.TestCase):
    """Trees of the base, in a repository of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.git("init", "-q")
        self.first, self.second = self.commit("one"), self.commit("two")

    def git(self, *words):
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        return subprocess.run(["git", "-C", str(self.root), *identity, *words], capture_output=True, text=True,
                              check=True).stdout.strip()

    def commit(self, text):
        (self.root / "CMakeLists.txt").write_text(f"message(FATAL_ERROR {text})\n")
        self.git("add", "CMakeLists.txt")
        self.git("commit", "-q", "-m", text)
        return self.git("rev-parse", "HEAD")

    def test_base_has_a_tree_of_its_own_that_is_used_again(self):
        self.assertEqual(build.commit_named(self.root, "HEAD~1"), self.first)
        tree = build.base_tree(self.root, self.first)
        self.assertIn("one", (tree / "CMakeLists.txt").read_text())
        (tree / "mark").touch()
        self.assertTrue((build.base_tree(self.root, self.first) / "mark").exists())
        other = build.base_tree(self.root, self.second)
        self.assertNotEqual(other, tree)
        shutil.rmtree(tree)  # somebody cleans up
        self.assertIn("one", (build.base_tree(self.root, self.first) / "CMakeLists.txt").read_text())
        self.assertEqual(build.differing(self.root, self.first, "."), ["CMakeLists.txt"])

    def test_names_what_is_wrong(self):
        with self.assertRaisesRegex(build.UnknownRef, "no-such: no such commit"):
            build.commit_named(self.root, "no-such")
        with self.assertRaisesRegex(build.BuildError, "no .git"):
            build.commit_named(self.root / "build", "HEAD")
        with self.assertRaisesRegex(build.BuildError, "FATAL|two"):
            build.configure(self.root, self.root / "build/x", False)
        linker = "echo 'a.cpp: undefined reference to f'; echo 'collect2: error: ld returned 1'; exit 1"
        with self.assertRaisesRegex(build.BuildError, "building it failed: a.cpp: undefined reference to f"):
            build._logged(["sh", "-c", linker], self.root / "log", "building it")


class CellsTest(unittest.TestCase):
    def test_a_case_as_the_table_names_it_is_that_cell(self):
        cell = cells.all_cells()[0]
        self.assertEqual(cells.selected(cases=[cell.name]), [cell])
        self.assertEqual(cells.selected(cases=[cell.case_id]), [cell])

    def test_every_op_has_a_cell(self):
        listed = (ROOT / "CMakeLists.txt").read_text().split("set(TIGON_OPS", 1)[1].split(")")[0].split()
        self.assertEqual(set(listed) - {cell.op for cell in cells.all_cells()}, set())


if __name__ == "__main__":
    unittest.main()
