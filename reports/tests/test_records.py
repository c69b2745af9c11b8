# SPDX-License-Identifier: Apache-2.0
"""Tests of reading records, of tigon merge and of tigon simulate: nothing is lost, nothing wrong is taken."""
import json
import pathlib
import random
import re
import unittest
import zlib

from command_test import CommandTest, full, full_run
from tigon_report import merge, records, schema


def summed(record):
    text = json.dumps(record, separators=(",", ":"))[:-1]
    return f'{text},"sum":"{zlib.crc32(text.encode()):08x}"}}'.encode()


class ReadTest(CommandTest):
    def read(self, *paths):
        notices = []
        return [line.record for line in records.read(paths, notices.append)], notices

    def test_case_key_is_that_of_the_program(self):
        self.assertEqual(records.stable_hash(""), 0xEFD01F60BA992926)  # harness/tests/run_case_test.cpp
        self.assertEqual(records.case_key("rms_norm/forward/fused/f32/T=4096,H=4096,inputs=normal,seed=42"),
                         "f85a45528d4e5784")  # of a recorded run

    def test_axes_of_a_slimmed_record_come_from_its_case_id(self):
        record = {"case_id": "rms_norm/forward/fused/f32/T=7,H=127,w=absent,inputs=normal,seed=42"}
        self.assertEqual(records.axes_of(record), {"T": 7, "H": 127})

    def test_outcomes_are_those_that_the_program_counts(self):
        outcomes = {verdict: records.outcome_of(verdict) for verdict in schema.SCHEMA["definitions"]["verdict"]["enum"]}
        self.assertEqual({v for v, outcome in outcomes.items() if outcome == "passed"}, {"passed"})
        text = (pathlib.Path(__file__).resolve().parents[2] / "harness/judge/verdict.cpp").read_text()
        counted = dict(re.findall(r'"(\w+)", (kExit\w+)\}', text))
        self.assertEqual({v for v, outcome in outcomes.items() if outcome == "skipped"},
                         {v for v, code in counted.items() if code == "kExitOk"} - {"passed"})

    def test_torn_last_line_is_dropped_and_said(self):
        path = self.write("a.jsonl", full_run())
        with path.open("ab") as stream:
            stream.write(b'{"record":"bench","run_id":"2026')
        found, notices = self.read(path)
        self.assertEqual(len(found), len(full_run()))
        self.assertEqual(len(notices), 1)
        self.assertIn("torn", notices[0])

    def test_bad_lines_are_named_with_file_line_and_reason(self):
        bench = next(r for r in full_run() if r["record"] == "bench")
        bad = {
            b"nonsense": "Expecting value",
            b"[1]": "not a JSON object",
            b'"text"': "not a JSON object",
            b"{}": "no string \"record\"",
            b'{"record":"bench"}': "no run_id",
            b'{"record":"bench","run_id":"../../etc"}': "no run_id",
            b"\xff\xfe": "utf-8",
            b"[" * 100000: "nests too deep",
            json.dumps({**bench, "median_s": "fast"}).encode(): '"median_s" is "fast"',
            json.dumps({**bench, "median_s": True}).encode(): '"median_s" is true',
            json.dumps({**bench, "median_s": -1.0}).encode(): "a time is positive",
            json.dumps({**bench, "median_s": 0}).encode(): "a time is positive",
            json.dumps({**bench, "median_s": float("nan")}).encode(): "NaN is no JSON number",
            json.dumps({**bench, "n": 1.5}).encode(): '"n" is 1.5',
            json.dumps({**bench, "n": 10**40}).encode(): '"n" is 1000',
            json.dumps({**bench, "axes": []}).encode(): '"axes" is []',
            json.dumps({**bench, "schema_version": "2.0.0"}).encode(): "schema 2.0.0; this tigon reads 1.x",
            json.dumps({k: v for k, v in bench.items() if k != "basis"}).encode(): 'no "basis"',
            summed(bench).replace(b"NVIDIA", b"nvidia").replace(b'"n":30', b'"n":31'): "do not match its sum",
        }
        for line, reason in bad.items():
            path = self.write("bad.jsonl", [full_run()[0], line, bench])
            code, _, errors = self.tigon("merge", path, "-o", self.folder / "out")
            self.assertEqual(code, 4, line[:60])
            self.assertIn("bad.jsonl:2: not a record", errors)
            self.assertIn(reason, errors)
            self.assertEqual(errors.count("\n"), 1)
            self.assertFalse((self.folder / "out").exists())

    def test_a_right_sum_is_accepted_and_unknown_keys_too(self):
        found, _ = self.read(self.write("a.jsonl", [summed({**record, "news": 1}) for record in full_run()]))
        self.assertEqual(len(found), len(full_run()))

    def test_one_flipped_bit_anywhere_is_noticed(self):
        line = summed({"record": "bench", "run_id": "20260102T120000Z-1a2b3c4d"})
        for byte in range(len(line)):
            for bit in range(8):
                damaged = bytearray(line)
                damaged[byte] ^= 1 << bit
                with self.assertRaisesRegex(ValueError, "do not match its sum", msg=bytes(damaged)):
                    records.parse(bytes(damaged))

    def test_damage_that_a_resumed_run_made_good_is_said_and_dropped(self):
        run = full_run()
        resume = full({"record": "resume", "command": [], "damaged_lines": 1})
        found, notices = self.read(self.write("a.jsonl", [*run[:2], b"dam", resume, *run[2:]]))
        self.assertEqual((len(found), len(notices)), (len(run) + 1, 1))

    def test_folders_of_runs_and_missing_ones(self):
        self.write("results/A/records.jsonl", full_run())
        self.write("results/b.jsonl", full_run("20260102T120000Z-1a2b3c4d"))
        self.assertEqual(len(records.files_of([self.folder / "results"])), 2)
        self.assertEqual(len(records.files_of([self.folder / "results", self.folder / "results/b.jsonl"])), 2)
        (self.folder / "empty").mkdir()
        (self.folder / "empty.jsonl").touch()
        self.refused(4, "no records.jsonl in it", "merge", self.folder / "empty", "-o", "x")
        self.refused(4, "no such file", "merge", self.folder / "nosuch", "-o", "x")
        self.refused(4, "no record in it", "merge", self.folder / "empty.jsonl", "-o", "x")


class MergeTest(CommandTest):
    def merged(self, *paths):
        out = self.folder / "merged.jsonl"
        code, _, errors = self.tigon("merge", *paths, "-o", out)
        self.assertEqual(code, 0, errors)
        return out.read_bytes()

    def test_any_partition_order_and_duplication_gives_the_same_bytes(self):
        random.seed(5)
        lines = [json.dumps(r).encode() for run_id in ("20260101T120000Z-1a2b3c4d", "20260102T120000Z-00000001")
                 for r in full_run(run_id)]
        whole = self.merged(self.write("whole.jsonl", lines))
        self.assertEqual(sorted(whole.split()), sorted(b"\n".join(lines).split()))
        for _trial in range(40):
            parts = [[] for _ in range(random.randint(1, 6))]
            for line in lines:
                for part in random.sample(parts, random.randint(1, len(parts))):
                    part.append(line)
            files = []
            for index, part in enumerate(part for part in parts if part):
                random.shuffle(part)
                files.append(self.write(f"part{index}.jsonl", part + part[: random.randint(0, 2)]))
            random.shuffle(files)
            self.assertEqual(self.merged(*files), whole)
            middle = self.write("middle.jsonl", self.merged(*files[: len(files) // 2 + 1]).splitlines())
            self.assertEqual(self.merged(middle, *files), whole)  # merging what is merged changes nothing

    def test_output_may_be_an_input(self):
        a, b = self.write("a.jsonl", full_run()), self.write("b.jsonl", full_run("20260102T120000Z-00000001"))
        whole = self.merged(a, b)
        self.assertEqual(self.tigon("merge", a, b, "-o", a)[0], 0)
        self.assertEqual(a.read_bytes(), whole)

    def test_a_conflict_is_an_error_and_writes_nothing(self):
        for kind, key, value in (("bench", "median_s", 1.5), ("check", "verdict", "nonfinite"), ("run", "seed", 7),
                                 ("ceiling", "value", 1.0), ("bench", "time", "2027-01-01T00:00:00.000Z")):
            run = full_run()
            other = [dict(r) for r in run]
            next(r for r in other if r["record"] == kind)[key] = value
            a, b = self.write("a.jsonl", run), self.write("b.jsonl", other)
            for paths in ((a, b), (b, a)):
                self.refused(4, f"differ in {key}", "merge", *paths, "-o", self.folder / "out")
            self.assertFalse((self.folder / "out").exists())

    def test_the_same_content_in_other_bytes_is_no_conflict(self):
        run = full_run()
        a = self.write("a.jsonl", run)
        b = self.write("b.jsonl", [json.dumps(r, sort_keys=True).encode() for r in run])
        self.assertEqual(self.merged(a, b), self.merged(b, a))
        self.assertEqual(self.merged(a, b).count(b"\n"), len(run))

    def test_a_resumed_run_may_repeat_and_an_older_copy_of_it_merges(self):
        run = full_run()
        bench = next(r for r in run if r["record"] == "bench")
        again = {**bench, "median_s": bench["median_s"] * 1.1, "time": "2026-01-01T13:00:00.000Z"}
        resume = full({"record": "resume", "command": [], "damaged_lines": 0}, time="2026-01-01T12:59:00.000Z")
        a, b = self.write("a.jsonl", run), self.write("b.jsonl", [*run, resume, again])
        self.assertEqual(self.merged(a, b).count(b"\n"), len(run) + 2)
        parts = self.write("c.jsonl", [*run, resume]), self.write("d.jsonl", [again])
        self.assertEqual(self.merged(*parts).count(b"\n"), len(run) + 2)
        forged = self.write("e.jsonl", [{**again, "median_s": 1.0}])
        self.refused(4, "differ in median_s", "merge", a, *parts, forged, "-o", self.folder / "out")
        self.merged(a, b)
        lines = list(records.read([self.folder / "merged.jsonl"], print))
        kept = [line.record for line in records.latest(lines) if line.record.get("case_key") == bench["case_key"]]
        self.assertEqual([r["median_s"] for r in kept if r["record"] == "bench"], [again["median_s"]])

    def test_missing_shards_are_named(self):
        paths = []
        for index in (0, 2):
            run = full_run(f"20260101T120000Z-0000000{index}")
            run[0]["shard"] = {"index": index, "count": 3, "source": "--shard"}
            paths.append(self.write(f"{index}.jsonl", run))
        code, _, errors = self.tigon("merge", *paths, "-o", self.folder / "out")
        self.assertEqual(code, 0)
        self.assertIn("2 of 3, missing 1", errors)
        (self.folder / "out").unlink()
        self.assertEqual(self.tigon("merge", "--complete", *paths, "-o", self.folder / "out")[0], 4)
        self.assertFalse((self.folder / "out").exists())

    def test_usage(self):
        a = self.write("a.jsonl", full_run())
        self.refused(2, "--out", "merge", a)
        self.refused(2, "unrecognized arguments: --nosuch", "merge", a, "-o", "x", "--nosuch")
        self.refused(2, f"is a folder; name a file, e.g. {self.folder}/records.jsonl", "merge", a, "-o", self.folder)


class SimulateTest(CommandTest):
    def test_the_same_seed_gives_the_same_bytes_and_every_run_says_simulated(self):
        for name, seed in (("a", 3), ("b", 3), ("c", 4)):
            code, _, errors = self.tigon("simulate", "--out", self.folder / name, "--seed", seed, "--days", 61,
                                         "--cases", 30)
            self.assertEqual(code, 0, errors)
        texts = {name: [p.read_bytes() for p in sorted((self.folder / name).rglob("*.json*"))] for name in "abc"}
        self.assertEqual(texts["a"], texts["b"])
        self.assertNotEqual(texts["a"], texts["c"])
        lines = list(records.read([self.folder / "a"], print))
        runs = [line.record for line in lines if line.record["record"] == "run"]
        self.assertEqual(len(runs), 61)
        self.assertTrue(all(r["tags"]["simulated"] == "true" and "simulated" in r["device"]["name"] for r in runs))
        self.assertEqual(len(list(merge.union(lines))), len(lines))

    def test_planted_steps_are_in_the_records(self):
        self.tigon("simulate", "--out", self.folder / "h", "--seed", 3, "--days", 200, "--cases", 40)
        truth = json.loads((self.folder / "h/truth.json").read_text())
        series, copies = {}, {}
        for line in records.read([self.folder / "h"], print):
            r = line.record
            if r["record"] == "ceiling" and r["name"] == "copy":
                copies[r["run_id"]] = r["value"]
            if r["record"] == "bench" and r["median_s"]:
                series.setdefault(r["case_key"], {})[r["run_id"]] = r["median_s"]
        index = {run_id: i for i, run_id in enumerate(truth["runs"])}
        steps = [e for e in truth["events"] if e["kind"] == "step"]
        self.assertGreater(len(steps), 2)
        for event in steps:
            ratio = {index[run]: t * copies[run] for run, t in series[event["case_key"]].items()}
            mean = lambda runs: sorted(ratio[i] for i in runs if i in ratio)  # noqa: E731
            before, after = mean(range(event["run"] - 5, event["run"])), mean(range(event["run"], event["run"] + 5))
            self.assertAlmostEqual(after[len(after) // 2] / before[len(before) // 2] - 1, event["size"], delta=0.012)

    def test_usage(self):
        self.refused(2, "--seed", "simulate", "--out", self.folder / "x", "--seed", "-1")
        self.refused(2, "--cases", "simulate", "--out", self.folder / "x", "--seed", "1", "--cases", "100000")
        self.write("full/x", [])
        self.refused(2, "not an empty folder", "simulate", "--out", self.folder / "full", "--seed", "1")


if __name__ == "__main__":
    unittest.main()
