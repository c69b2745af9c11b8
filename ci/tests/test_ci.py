#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of ci/push.sh, merge.sh, nightly.sh and summarize.py with a stand-in for ./tigon, and of the templates."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "ci"))
sys.path.insert(0, str(ROOT / "reports"))

import summarize  # noqa: E402

RUN = {
    "record": "run",
    "schema_version": "1.0.0",
    "run_id": "20260101T000000Z-00000001",
    "time": "2026-01-01T00:00:00.000Z",
    "device": {"kind": "cuda", "name": "fake"},
    "tool": {"commit": "c"},
    "command": ["./tigon"],
}
# Writes the records that the test put into $FAKE/NAME.jsonl to --out, and exits with the code in $FAKE/NAME.code; NAME
# is the command with its first option, e.g. "gate--aa".
STAND_IN = """#!/bin/bash
while [ "${1:-}" = --device ]; do shift 2; done
name=$1; case " $* " in *" --aa "*) name=gate--aa;; *" --static "*) name=gate--static;; esac
echo "$name $*" >> "$FAKE/calls"
out=; previous=
for word in "$@"; do [ "$previous" = --out ] && out=$word; previous=$word; done
if [ -n "$out" ] && [ -f "$FAKE/$name.jsonl" ]; then mkdir -p "$out"; cp "$FAKE/$name.jsonl" "$out/records.jsonl"; fi
exit $(cat "$FAKE/$name.code" 2>/dev/null || echo 0)
"""


# Lists two ops, one without a fused kernel.
PROGRAM = """#!/bin/bash
[ "$1" != --device ] || shift 2
[ "$1" != list ] || printf 'rms_norm forward fused bf16\\nrms_norm forward naive bf16\\nmine forward naive bf16\\n'
"""
# Runs nothing; what it finds is in $FAKE/TOOL.found.
SANITIZER = """#!/bin/bash
echo "$*" >> "$FAKE/calls"
echo "3 passed, 0 failed, 0 skipped"
found=$(cat "$FAKE/$2.found" 2>/dev/null || echo 0)
[ "$found" != hang ] || { echo $$ >> "$FAKE/pids"; exec sleep 60; }
[ "$found" != 1 ] || printf '========= COMPUTE-SANITIZER\\n========= Error: found at kernel\\n=========\\n'
[ "$found" = none ] || echo "========= ERROR SUMMARY: $found errors"
exit $(cat "$FAKE/$2.code" 2>/dev/null || echo 0)
"""


def check(number, verdict="passed", op="rms_norm"):
    case = f"{op}/forward/fused/bf16/T={number}"
    return {
        **RUN,
        "record": "check",
        "case_id": case,
        "case_key": f"{number:016x}",
        "op": op,
        "pass": "forward",
        "impl": "fused",
        "dtype": "bf16",
        "executor": "fast",
        "verdict": verdict,
        "reason": "y[0] is 3, not 2: 100 % off, by far",
        "repro": f"./tigon check --case '{case}'",
    }


class Scripts(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tigon-ci-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.tigon = self.folder / "tigon"
        self.tigon.write_text(STAND_IN)
        self.tigon.chmod(0o755)
        # nightly.sh builds a release, every header and what it fuzzes, which takes very long.
        self.stand_in("cmake", 'echo "cmake $*" >> "$FAKE/calls"')
        self.stand_in("g++", "")
        self.stand_in("clang++-14", 'cp /bin/true "${@: -1}"')  # it ends with -o FILE

    def stand_in(self, name, command):
        path = self.folder / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/bash\n{command}\n")
        path.chmod(0o755)

    def give(self, name, code=0, records=None):
        (self.folder / f"{name}.code").write_text(str(code))
        if records is not None:
            (self.folder / f"{name}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in [RUN, *records]))

    def environment(self, **variables):
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("TIGON_", "GITHUB_"))}
        environment["PATH"] = f"{self.folder / 'bin'}:{environment['PATH']}"
        environment.update(
            TIGON=str(self.tigon),
            FAKE=str(self.folder),
            TIGON_STYLE="true",
            TIGON_OUT=str(self.folder / "out"),
            TIGON_PYTHON=sys.executable,
            GITHUB_STEP_SUMMARY=str(self.folder / "summary.md"),
            **variables,
        )
        return environment

    def run_script(self, script, *arguments, **variables):
        """(exit code, stdout, summary, calls of ./tigon)."""
        done = subprocess.run(
            [ROOT / "ci" / script, *arguments],
            env=self.environment(**variables),
            capture_output=True,
            text=True,
            cwd="/",
            check=False,
        )
        summary, calls = (self.folder / name for name in ("summary.md", "calls"))
        return (
            done.returncode,
            done.stdout,
            summary.read_text() if summary.exists() else "",
            calls.read_text().splitlines() if calls.exists() else [],
        )

    def test_a_long_push_ends_with_the_slow_tests_and_the_sanitizers(self):
        self.give("check", 0, [check(1)])
        for long, ends in (("1", ["test test --long", "test test --sanitize"]), ("", [])):
            calls = self.run_script("push.sh", TIGON_LONG=long)[3]
            self.assertEqual([call for call in calls if call.startswith("test test --")], ends)
            (self.folder / "calls").unlink()

    def test_push_runs_every_stage_and_passes(self):
        self.give("check", 0, [check(1)])
        code, out, summary, calls = self.run_script("push.sh", TIGON_BASE="HEAD")
        self.assertEqual(code, 0, out)
        self.assertEqual([call.split()[0] for call in calls], ["test", "check", "gate--static", "mutants"])
        self.assertRegex(calls[-1], r" --sample 100 --score 97 --seed [1-9]\d* --changed HEAD ")
        self.assertIn("push: all stages passed", summary)
        self.assertIn("1 passed, 0 failed", summary)
        for stage in ("style", "test", "check", "static", "sample"):
            self.assertRegex(summary, rf"\| {stage} \| passed \| \d+ s \|")

    def test_push_without_a_base_has_nothing_to_compare(self):
        self.assertEqual(len(self.run_script("push.sh")[3]), 2)

    def test_push_passes_where_no_kernel_differs_and_fails_where_mutants_survive(self):
        for code, expected in ((4, 0), (1, 1), (5, 5)):
            self.give("mutants", code)
            self.assertEqual(self.run_script("push.sh", TIGON_BASE="HEAD")[0], expected)

    def test_a_failure_stops_nothing_and_the_lowest_code_wins(self):
        self.give("test", 5)
        self.give("check", 1, [check(1, "incorrect_numerical")])
        self.give("gate--static", 3)
        code, out, summary, calls = self.run_script("push.sh", TIGON_BASE="HEAD")
        self.assertEqual((code, len(calls)), (1, 4))
        self.assertIn("test (exit 5), check (exit 1), static (exit 3)", summary)
        self.assertIn("::error file=kernels/rms_norm/rms_norm.cu,title=incorrect_numerical::", out)
        self.assertIn("100 %25 off, by far%0A./tigon check --case", out)

    def test_exit_codes(self):
        for codes, expected in (
            ((0, 3), 3),
            ((0, 6), 6),
            ((1, 6), 1),
            ((5, 3), 3),
            ((0, 0), 0),
            ((0, 77), 5),
            ((130, 0), 130),
        ):
            self.give("check", codes[0])
            self.give("gate", codes[1])
            self.assertEqual(self.run_script("merge.sh", TIGON_BASE="HEAD")[0], expected, codes)

    def test_merge_needs_a_base(self):
        self.assertEqual(self.run_script("merge.sh")[0], 2)

    def test_nightly_adds_to_the_history_and_never_overwrites(self):
        aa = {**RUN, "run_id": "20260101T000000Z-00000002"}
        self.give("run", 1, [check(1, "crashed")])
        (self.folder / "gate--aa.jsonl").write_text(json.dumps(aa) + "\n")
        history = self.folder / "history"
        code, _, _, calls = self.run_script("nightly.sh", TIGON_HISTORY=str(history))
        self.assertEqual(code, 1)
        self.assertEqual(
            sorted(path.name for path in history.iterdir()), [f"{run['run_id']}.jsonl" for run in (RUN, aa)]
        )
        self.assertTrue(any(call.startswith("dashboard") and str(history) in call for call in calls), calls)
        self.assertEqual(
            [call for call in calls if not call.startswith("mutants")][-3:],
            ["cmake --preset release", "cmake --build --preset release", "test test --sanitize"],
        )
        self.assertRegex(calls[-2], r"^mutants mutants --sample 25 --score 97 --seed \d{8} ")
        stages = (self.folder / "out/stages.tsv").read_text()
        for stage in ("headers", "fuzz"):
            self.assertRegex(stages, rf"(?m)^{stage}\t0\t")
        self.give("run", 0, [])
        self.assertEqual(self.run_script("nightly.sh", TIGON_HISTORY=str(history))[0], 4)
        self.assertIn("crashed", (history / f"{RUN['run_id']}.jsonl").read_text())

    def sanitizer(self):
        """What the environment of sanitize.sh needs to find the stand-ins."""
        for name, text in (("tigon", PROGRAM), ("compute-sanitizer", SANITIZER)):
            (self.folder / name).write_text(text)
            (self.folder / name).chmod(0o755)
        return {"PATH": f"{self.folder}:{os.environ['PATH']}", "TIGON_PROGRAM": str(self.tigon)}

    def sanitize(self, *arguments):
        return self.run_script("sanitize.sh", *arguments, **self.sanitizer())

    def test_sanitize_runs_four_tools_for_each_type_of_a_fused_op(self):
        code, out, _, calls = self.sanitize()
        self.assertEqual((code, len(calls)), (0, 12), out)
        self.assertEqual(len({re.search(r"--tool (\w+).* --op rms_norm --dtype (\w+)", call).groups() for call in calls}), 12)
        self.assertTrue(all(" --tier tiny" in call for call in calls), calls)
        self.assertEqual(sum("--num-cuda-barriers" in call for call in calls), 3)

    def test_sanitize_fails_with_an_error_without_a_summary_or_with_a_wrong_case(self):
        for file, text in (("racecheck.found", "1"), ("memcheck.found", "none"), ("initcheck.code", "1")):
            (self.folder / file).write_text(text)
            code, out, _, _ = self.sanitize()
            self.assertEqual((code, out.count("FAILED")), (1, 3), out)
            self.assertEqual(out.count("Error: found at kernel"), 3 if text == "1" and file == "racecheck.found" else 0, out)
            (self.folder / file).unlink()

    def test_sanitize_runs_the_types_that_are_asked_for(self):
        code, out, _, calls = self.run_script("sanitize.sh", **self.sanitizer(), TIGON_DTYPES="f16 f32")
        self.assertEqual((code, {re.search(r"--dtype (\w+)", call)[1] for call in calls}), (0, {"f16", "f32"}), out)

    def test_interrupted_sanitize_leaves_nothing_running(self):
        for tool in ("memcheck", "racecheck", "initcheck", "synccheck"):
            (self.folder / f"{tool}.found").write_text("hang")
        with subprocess.Popen(
            [ROOT / "ci" / "sanitize.sh"],
            env=self.environment(**self.sanitizer()),
            start_new_session=True,
            stdout=subprocess.DEVNULL,
        ) as running:
            pids = self.folder / "pids"
            while not pids.exists() or not pids.read_text().endswith("\n"):
                time.sleep(0.01)
            os.killpg(running.pid, signal.SIGINT)  # as Ctrl-C does
            try:
                self.assertNotEqual(running.wait(20), 0)
            except subprocess.TimeoutExpired:
                os.killpg(running.pid, signal.SIGKILL)
                raise
        deadline = time.monotonic() + 20
        while left := [pid for pid in pids.read_text().split() if self.runs(pid)]:
            self.assertLess(time.monotonic(), deadline, f"still running: {left}")
            time.sleep(0.05)

    @staticmethod
    def runs(pid):
        try:
            return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except FileNotFoundError:
            return False

    def test_sanitize_passes_its_options_on_and_tells_when_they_choose_nothing(self):
        for tool in ("memcheck", "racecheck", "initcheck", "synccheck"):
            (self.folder / f"{tool}.code").write_text("4")
        code, out, _, calls = self.sanitize("--tier", "check", "--filter", "T=1 ")
        self.assertEqual(code, 4, out)
        self.assertTrue(all(call.endswith("--tier check --filter T=1 ") for call in calls), calls)

    def test_at_most_ten_annotations_the_worst_first(self):
        self.give(
            "gate",
            3,
            [
                {
                    **RUN,
                    "record": "gate",
                    "scope": "cell",
                    "case_id": f"swiglu/forward/fused/bf16/T={n}",
                    "outcome": "slower",
                    "change": 0.031,
                }
                for n in range(30)
            ],
        )
        self.give("check", 1, [check(n, "incorrect_numerical") for n in range(3)])
        _, out, summary, _ = self.run_script("merge.sh", TIGON_BASE="HEAD")
        lines = [line for line in out.splitlines() if line.startswith("::")]
        self.assertEqual(len(lines), 10)
        self.assertTrue(all("incorrect_numerical" in line for line in lines[:3]))
        self.assertIn("24 more findings", lines[-1])
        self.assertIn("swiglu/forward/fused/bf16/T=29: slower, +3.1 %", summary)

    def test_summary_stays_below_the_limit(self):
        text = summarize.bounded("x" * 100 + "\n" + ("line " * 20 + "\n") * 20000)
        self.assertLessEqual(len(text.encode()), 1_000_000)
        self.assertTrue(text.endswith("Cut here: the summary was too long.\n"))

    def test_damaged_records_are_said_and_do_not_stop_the_summary(self):
        self.give("check", 5)
        (self.folder / "check.jsonl").write_text("{broken\n" + json.dumps(RUN) + "\n")
        code, _, summary, _ = self.run_script("push.sh")
        self.assertEqual(code, 5)
        self.assertIn("not a record", summary)


class Templates(unittest.TestCase):
    """The templates call what exists; lint.sh checks their shape."""

    def test_every_script_that_is_called_exists(self):
        texts = {
            path: path.read_text()
            for path in [*ROOT.glob("ci/github/*.yml"), *ROOT.glob("ci/gitlab/*.yml"), ROOT / "ci/GATES.md"]
        }
        self.assertEqual(len(texts), 5)
        for path, text in texts.items():
            for script in re.findall(r"ci/[a-z]+\.(?:sh|py)\b", text):
                self.assertTrue(os.access(ROOT / script, os.X_OK), f"{path}: {script}")

    def test_kept_folders_are_those_that_scripts_write(self):
        for name in ("push", "merge", "nightly"):
            self.assertIn(f"results/ci/{name}", (ROOT / f"ci/github/{name}.yml").read_text())
            self.assertIn(f"results/ci/{name}", (ROOT / "ci/gitlab/gitlab-ci.yml").read_text())

    def test_options_of_python_commands_exist(self):
        environment = {**os.environ, "PYTHONPATH": f"{ROOT}/reports:{ROOT}/ci:{ROOT}/harness/trees"}
        for script in ("push.sh", "merge.sh", "nightly.sh"):
            for command, rest in re.findall(
                r'"\$TIGON"(?: --device \w+)? (gate|export|dashboard)\b(.*)', (ROOT / "ci" / script).read_text()
            ):
                module = ["-m", "tigon_gate"] if command == "gate" else ["-m", "tigon_report", command]
                shown = subprocess.run(
                    [sys.executable, *module, "--help"], env=environment, capture_output=True, text=True, check=True
                )
                for option in re.findall(r"--[a-z-]+", rest):
                    self.assertIn(option, shown.stdout, f"{script}: {command} {option}")


if __name__ == "__main__":
    unittest.main()
