# SPDX-License-Identifier: Apache-2.0
"""Tests of what is recorded: every line has its sum, and names a commit of this history. Run: python3 reports/tests/test_recorded.py"""
import contextlib
import io
import json
import subprocess
import unittest

from command_test import HERE, CommandTest, full_run
from tigon_report import recorder, records, seal, slim


RECORDED = HERE.parent / "recorded"
NOT_IN_THIS_HISTORY = {("judge/2026-11-22-h200-soak.jsonl", "98590100af99320baa6b3d0caa70a33fe4029424")}  # its README has why


def unsealed(folder):
    """'file:line' of every line of records that has no right sum."""
    return [f"{file.relative_to(folder)}:{number}" for file in sorted(folder.rglob("*.jsonl"))
            for number, raw in enumerate(file.read_bytes().splitlines(), 1) if not records.has_right_sum(raw)]


def git(*words):
    return subprocess.run(["git", "-C", RECORDED, *words], capture_output=True, text=True)


class RecordedFilesTest(CommandTest):
    def test_every_line_has_its_sum(self):
        self.assertGreater(sum(1 for _ in RECORDED.rglob("*.jsonl")), 30)
        self.assertEqual(unsealed(RECORDED), [])

    def test_a_line_without_a_sum_or_with_a_wrong_one_is_found(self):
        lines = [records.with_sum(json.dumps(record)).encode() for record in full_run()[:3]]
        self.write("good/good.jsonl", lines)
        self.write("bad/none.jsonl", [lines[0], json.dumps(full_run()[1]).encode()])
        self.write("bad/part/wrong.jsonl", [lines[0].replace(b"H200", b"H100"), lines[1]])
        self.assertEqual(unsealed(self.folder / "good"), [])
        self.assertEqual(unsealed(self.folder / "bad"), ["none.jsonl:2", "part/wrong.jsonl:1"])

    def test_commits_are_of_this_history(self):
        shallow = git("rev-parse", "--is-shallow-repository")
        if shallow.stdout.strip() != "false":
            self.skipTest("no whole git history here")
        named = {(file.relative_to(RECORDED).as_posix(), record["tool"]["commit"]) for file in RECORDED.rglob("*.jsonl")
                 for record in map(json.loads, file.read_text().splitlines()) if record["record"] == "run"}
        self.assertEqual({(file, commit) for file, commit in named if git("cat-file", "-e", f"{commit}^{{commit}}").returncode}, NOT_IN_THIS_HISTORY)


class WritersTest(CommandTest):
    """What Python writes has sums; test_records has simulate."""

    def setUp(self):
        super().setUp()
        (self.folder / "out").mkdir()
        self.write("run.jsonl", full_run())

    def test_slim(self):
        self.assertEqual(slim.main([str(self.folder / "run.jsonl"), str(self.folder / "out/slim.jsonl")]), 0)
        self.assertEqual(unsealed(self.folder / "out"), [])

    def test_slim_leaves_out_what_bits_have_nothing_to_compare_with(self):
        cases = [{"record": "bits", "scope": "case", "outcome": outcome, "sum": "x"} for outcome in ("equal", "base_only", "head_only")]
        self.assertEqual([kept["outcome"] for case in cases if (kept := slim.slim(case))], ["equal", "base_only"])

    def test_import(self):
        for name in ("google_benchmark.json", "nvbench.json", "liger.csv"):
            self.tigon("import", HERE / "data" / name, "-o", self.folder / "out/imported.jsonl")
            self.assertEqual(unsealed(self.folder / "out"), [], name)

    def test_gate(self):
        gate = recorder.Recorder(self.folder / "out/gate.jsonl", ["./tigon", "gate"], (None, False))
        gate.end(1, 0, 0, 0)
        self.assertEqual(unsealed(self.folder / "out"), [])
        self.assertEqual(len(list(records.read_file(self.folder / "out/gate.jsonl"))), 2)


class SealTest(CommandTest):
    def seal(self, *files):
        out, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            code = seal.main([str(file) for file in files])
        return code, out.getvalue() + errors.getvalue()

    def test_lines_without_a_sum_get_one_and_nothing_else_changes(self):
        first, second = (json.dumps(record).encode() for record in full_run()[:2])
        file = self.write("a.jsonl", [first, records.with_sum(second.decode()).encode()])
        self.assertEqual(self.seal(file), (0, f"{file}: 1 lines sealed\n"))
        after = file.read_bytes().splitlines()
        self.assertEqual(unsealed(self.folder), [])
        self.assertEqual([line[:-records.SUM_BYTES] + b"}" for line in after], [first, second])
        self.assertEqual(self.seal(file), (0, f"{file}: 0 lines sealed\n"))

    def test_a_wrong_sum_and_what_is_no_record_are_refused(self):
        good = records.with_sum(json.dumps(full_run()[0])).encode()
        moved = json.dumps({"sum": "00000000", **full_run()[1]}).encode()  # not where a sum stands
        for bad, says in ((good.replace(b"H200", b"H100"), "do not match its sum"), (b"{}", "no string"), (moved, "has a sum")):
            file = self.write("a.jsonl", [json.dumps(full_run()[0]).encode(), bad])
            before = file.read_bytes()
            code, text = self.seal(file)
            self.assertEqual((code, file.read_bytes()), (4, before))
            self.assertIn(f"{file}:2: ", text)
            self.assertIn(says, text)


if __name__ == "__main__":
    unittest.main()
