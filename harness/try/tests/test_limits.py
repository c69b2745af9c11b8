# SPDX-License-Identifier: Apache-2.0
"""How long a case may take, and what is left out once cases took too long."""
import os
import pathlib
import stat
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[3]
for part in ("harness/try", "harness/trees", "reports"):
    sys.path.insert(0, str(ROOT / part))

from tigon_try import judge, limits, traffic  # noqa: E402


def record(sizes, verdict, inputs="normal", seed=1):
    return {"record": "check", "case_id": f"rms_norm/forward/plugin:mine/f32/{sizes},inputs={inputs},seed={seed}", "verdict": verdict,
            "reason": "", "outputs": [], "seconds_s": 0.5}


def outcome(*records, stopped=False):
    return judge.Outcome("r", {}, list(records), "", stopped)


def job(**more):
    return types.SimpleNamespace(op="rms_norm", folder=pathlib.Path("/nowhere"), limit=60, limit_checked=10, timeout=None, outcomes=[],
                                 verdicts=[], **more)


class Rounds(unittest.TestCase):
    def run_check(self, *outcomes, checked=False):
        with mock.patch.object(judge, "tigon", side_effect=list(outcomes)) as called:
            found = limits.run_check(job(), None, ["check"], "check", checked)
        return found, [call.args[1] for call in called.call_args_list]

    def test_sizes_that_were_too_slow_are_left_out(self):
        with mock.patch.dict(os.environ, {"TIGON_EXCLUDE": ""}):
            found, words = self.run_check(outcome(record("T=1,H=1", "passed", seed=1), record("T=3,H=33", "timeout"),
                                                  record("T=5,H=8", "not_run"), stopped=True),
                                          outcome(record("T=1,H=1", "passed", seed=2), record("T=5,H=8", "incorrect_numerical"),
                                                  record("T=5,H=8", "passed", seed="2,prop=offsets")))
        self.assertEqual(words, [["check", "--timeout", "60"], ["check", "--timeout", "60", "--exclude", "/T=3,H=33,"]])
        tally = judge.tally(found.records)
        self.assertEqual((tally.passed, len(tally.failed), len(tally.slow), found.left_out), (2, 1, 1, ["T=3,H=33,"]))

    def test_it_ends(self):
        each = [outcome(record(f"T=1,H={k}", "timeout"), stopped=True) for k in range(limits.MOST_ROUNDS + 1)]
        found, words = self.run_check(*each)
        self.assertEqual((len(words), found.stopped), (limits.MOST_ROUNDS, True))

    def test_large_sizes_are_not_for_the_checking_executor(self):
        with mock.patch.dict(os.environ, {"TIGON_EXCLUDE": "naive"}):
            _, words = self.run_check(outcome(record("T=1,H=1", "passed")), checked=True)
        self.assertEqual(words, [["check", "--timeout", "10", "--exclude", r"(?:naive)|[A-Z]=\d{6}"]])
        for text, large in (("T=1,V=800003,", True), ("T=2,V=70001,inputs=normal,seed=1234567", False)):
            self.assertEqual(bool(limits.re.search(limits.LARGE, text)), large, text)


class Limit(unittest.TestCase):
    def found(self, seconds, timeout=None):
        one = job()
        one.timeout = timeout
        with mock.patch.object(judge, "tigon", return_value=outcome({**record("T=1,H=1", "passed"), "seconds_s": seconds})):
            limits.find_limit(one, None, True, ["forward"], ["f32"])
        return one.limit_checked, one.limit

    def test_it_is_as_slow_as_the_machine(self):
        self.assertEqual(self.found(0.01), (10, 60))
        self.assertEqual(self.found(0.5), (25, 60))
        self.assertEqual(self.found(2), (100, 100))

    def test_what_is_given_counts(self):
        self.assertEqual(self.found(2, 3.5), (3.5, 3.5))


class Programs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_a_check_is_stopped_after_some_slow_cases(self):
        program = self.folder / "tigon"
        program.write_text(f"""#!{sys.executable}
import signal, sys, time
file = open(sys.argv[3], "w")
def stop(*_):
    file.write('{{"record":"end"}}\\n')
    file.close()
    sys.exit(130)
signal.signal(signal.SIGINT, stop)
file.write('{{"record":"run","run_id":"r"}}\\n{{"record":"check","verdict":"timeout"}}\\n')
file.flush()
time.sleep(30)
""")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        build = types.SimpleNamespace(program=str(program))
        self.assertTrue(judge.tigon(build, ["check"], self.folder / "records", 1).stopped)

    def test_a_count_that_hangs_ends(self):
        (self.folder / "hangs.c").write_text("#include <unistd.h>\n__attribute__((constructor)) static void hang(void) { sleep(60); }\n")
        library = self.folder / "hangs.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, self.folder / "hangs.c"], check=True)
        signature = types.SimpleNamespace(op="rms_norm", passes={"forward": {"tensors": []}})
        environment = {"PYTHONPATH": os.pathsep.join(str(ROOT / part) for part in ("reports", "harness/try", "harness/trees"))}
        with mock.patch.dict(os.environ, environment), self.assertRaises(subprocess.TimeoutExpired):
            traffic.of_case(library, signature, "forward", "f32", {}, 1)


if __name__ == "__main__":
    unittest.main()
