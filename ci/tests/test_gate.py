"""Tests of the paired gate: exact statistics, error rates by simulation, exit codes. Run: python3 ci/tests/test_gate.py"""
import contextlib
import io
import itertools
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
sys.path[:0] = [str(ROOT / "ci"), str(ROOT / "reports"), str(ROOT / "reports/tests")]

import schema_check  # noqa: E402
from tigon_gate import __main__ as program  # noqa: E402
from tigon_gate import aa, build, cells, decide, history, pairs, records, signed_rank, simulate  # noqa: E402
from tigon_gate.decide import Outcome, Rule  # noqa: E402
from tigon_report import command, statistics  # noqa: E402

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


class SignedRankTest(unittest.TestCase):
    def test_distribution_is_that_of_all_sign_patterns(self):
        for n in (1, 4, 9):
            totals = [sum(r for r, s in zip(range(1, n + 1), signs) if s) for signs in itertools.product((0, 1), repeat=n)]
            for t in range(n * (n + 1) // 2 + 2):
                self.assertAlmostEqual(signed_rank.upper_tail(n)[t], sum(x >= t for x in totals) / 2**n, places=14)

    def test_p_value_is_that_of_ranks(self):
        random = numpy.random.default_rng(3)
        for n in (5, 12):
            d = random.normal(0.01, 0.02, n)
            ranks = numpy.argsort(numpy.argsort(abs(d - 0.005))) + 1
            t = int(ranks[d > 0.005].sum())
            walsh = signed_rank.walsh_averages(d)
            self.assertEqual(signed_rank.p_above(walsh, 0.005), signed_rank.upper_tail(n)[t])

    def test_bounds_and_tests_agree(self):
        random = numpy.random.default_rng(4)
        for alpha in (0.05, 0.005, 0.0003):
            walsh = signed_rank.walsh_averages(random.normal(0, 1, (200, 12)))
            lower, upper = signed_rank.bounds(walsh, alpha)
            step = 1e-9
            self.assertTrue(numpy.all(signed_rank.p_above(walsh, lower - step) <= alpha))
            self.assertTrue(numpy.all(signed_rank.p_above(walsh, lower + step) > alpha))
            self.assertTrue(numpy.all(signed_rank.p_below(walsh, upper + step) <= alpha))

    def test_bounds_cover_the_truth(self):
        random = numpy.random.default_rng(5)
        walsh = signed_rank.walsh_averages(random.standard_t(3, (4000, 12)) + 0.7)
        lower, upper = signed_rank.bounds(walsh, 0.025)
        missed = numpy.mean((lower > 0.7) | (upper < 0.7))
        self.assertLess(missed, 0.058)
        self.assertGreater(missed, 0.03)  # exact, not merely careful

    def test_too_few_pairs_bound_nothing(self):
        lower, upper = signed_rank.bounds(signed_rank.walsh_averages([[0.1, 0.2, 0.3]]), 0.01)
        self.assertEqual((lower[0], upper[0]), (-numpy.inf, numpy.inf))

    def test_agrees_with_the_statistics_of_one_row(self):
        random = numpy.random.default_rng(6)
        for d in random.normal(0.01, 0.02, (20, 12)):
            walsh = signed_rank.walsh_averages(d)
            self.assertAlmostEqual(signed_rank.shift(walsh), statistics.hodges_lehmann(d), places=15)
            self.assertEqual(signed_rank.p_above(walsh, 0.004), statistics.signed_rank_p(d, 0.004))
            self.assertEqual(tuple(signed_rank.bounds(walsh, 0.01)), tuple(statistics.signed_rank_bound(d, 0.99)))


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
        p = signed_rank.p_above(signed_rank.walsh_averages(loud), numpy.log1p(0.01))
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
        lines = records.read(file) if file.exists() else []
        self.assertEqual([found for line in lines if (found := schema_check.violation(line))], [])
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
        self.assertIn("budget", out)

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
        page = (self.folder / "index.html").read_text()
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
    print(json.dumps({{"record": "run", "device": {{"kind": "{kind}", "uuid": "{uuid}", "name": "G"}}}}), file=file)
    for case in of("--case"):
        print(json.dumps({{"record": "bench", "case_id": case, "basis": "graph", "verdict": "{verdict}", "reason": "why",
                           "median_s": {seconds}}}), file=file)
{last}
"""


class ProgramTest(unittest.TestCase):
    """The runner of real programs, with programs that imitate tigon bench."""

    CASE = "rope/forward/fused/bf16/T=16384,Q=32,K=8,D=128,inputs=normal,seed=42"

    def program(self, name, **change):
        folder = pathlib.Path(self.folder.name)
        text = {"python": sys.executable, "kind": "cuda", "uuid": "u", "verdict": "passed", "seconds": 1e-4, "last": "", "before": ""}
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
        for change, text in (({"kind": "host"}, "host build"), ({"uuid": "v"}, "different GPUs"), ({"seconds": "None"}, "no time"),
                             ({"verdict": "crashed"}, "crashed: why"), ({"seconds": "float('nan')"}, "no time")):
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

    def test_case_keys_are_those_of_the_program(self):
        self.assertEqual(pairs.case_key("rms_norm/forward/fused/bf16/T=64,H=64,inputs=normal,seed=42"), "5de4360dadca6192")


class RecordedTest(unittest.TestCase):
    """What was recorded on a real GPU, judged again from its pairs."""

    @classmethod
    def setUpClass(cls):
        cls.lines = [line for file in sorted((ROOT / "reports/recorded/gate").glob("*.jsonl")) for line in records.read(file)]
        if not cls.lines:
            raise unittest.SkipTest("no gate is recorded in reports/recorded/gate")

    def of(self, kind, scope):
        return [line for line in self.lines if line["record"] == kind and line.get("scope") == scope]

    def test_records_are_whole(self):
        self.assertEqual([found for line in self.lines if (found := schema_check.violation(line))], [])
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
    def test_every_op_has_a_cell(self):
        listed = (ROOT / "CMakeLists.txt").read_text().split("set(TIGON_OPS", 1)[1].split(")")[0].split()
        self.assertEqual(set(listed) - {cell.op for cell in cells.all_cells()}, set())


if __name__ == "__main__":
    unittest.main()
