# SPDX-License-Identifier: Apache-2.0
"""Tests of tigon import and tigon export: formats of other tools, there and back."""
import array
import csv
import io
import json
import pathlib
import re
import unittest
import xml.etree.ElementTree as xml

import sample
from command_test import CommandTest, full, full_run
from tigon_report import exporters, records, schema

DATA = pathlib.Path(__file__).resolve().parent / "data"
SMALL = "cross_entropy/forward_backward/fused/bf16/T=64,V=1024,inputs=normal,seed=42"


class ExchangeTest(CommandTest):
    def read(self, path):
        return [line.record for line in records.read([path], print)]

    def imported(self, file, *options):
        out = self.folder / "imported.jsonl"
        code, _, errors = self.tigon("import", file, "-o", out, *options)
        self.assertEqual(code, 0, errors)
        found = self.read(out)
        for record in found:
            self.assertEqual(schema.violation(record), "", record)
        return found

    def exported(self, format_name, *paths):
        code, out, errors = self.tigon("export", *paths, "--format", format_name)
        self.assertEqual(code, 0, errors)
        return out

    def run_with_all_kinds(self):
        failed = full({**sample.bench("naive", 64, 1024, 1e-3), "verdict": "oom", "reason": "8 GiB \x1b[31m<&>",
                       "median_s": None,
                       "q1_s": None, "q3_s": None, "n": 0})
        sampled = full({**sample.bench("fused", 64, 1024, 1e-3), "samples_s": [0.9e-3, 1e-3, 1.2e-3]})
        header = full_run()[0]
        header["host"] = {"name": "x", "os": "x", "kernel": "x", "cpu": "x", "cores": 2, "memory_bytes": 1}
        header["build"] = {"preset": "cuda", "compiler": "x", "flags": "", "type": "Release"}
        return self.write("run.jsonl", [header, *full_run()[1:], failed, sampled,
                                        full({**sample.check("nonfinite", reason="y[1] is nan", dtype="f32")}),
                                        full({**sample.check("unsupported", dtype="f16")}),
                                        full(sample.memory("fused", 64, 1024, 4096))])

    # ---- import ---------------------------------------------------------------------------------

    def test_google_benchmark(self):
        run, copy, fails = self.imported(DATA / "google_benchmark.json", "--commit", "abc")
        self.assertEqual((run["started"], run["tool"]["name"], run["tool"]["commit"]),
                         ("2026-03-02T08:15:04.000Z", "google-benchmark", "abc"))
        self.assertEqual(run["device"]["kind"], "host")
        self.assertEqual((copy["op"], copy["dtype"], copy["axes"], copy["basis"], copy["executor"], copy["n"]),
                         ("BM_Copy<float>", "f32", {"T": 1024, "arg1": 64}, "wall", "external", 3))
        self.assertAlmostEqual(copy["median_s"], 127e-6)
        self.assertEqual((fails["verdict"], fails["reason"], fails["median_s"]), ("runtime_error", "no device", None))
        run, copy, _ = self.imported(DATA / "google_benchmark.json", "--device", "NVIDIA H200")
        self.assertEqual((run["device"]["kind"], copy["executor"]), ("cuda", "cuda"))

    def test_nvbench(self):
        run, cold, warm, skipped = self.sorted(self.imported(DATA / "nvbench.json", "--time", "2026-01-01T00:00:00Z"))
        self.assertEqual((run["device"]["name"], run["run_id"][:16]), ("NVIDIA H200", "20260101T000000Z"))
        self.assertEqual((cold["op"], cold["dtype"], cold["axes"], cold["basis"], cold["n"], cold["statistic"]),
                         ("copy", "f32", {"Elements": 1048576}, "cold", 1036, "mean"))
        self.assertEqual((cold["median_s"], cold["bandwidth_bytes_per_s"], cold["q1_s"]), (4.83e-6, 1736e9, None))
        self.assertEqual((warm["basis"], warm["median_s"]), ("warm", 4.1e-6))
        self.assertEqual((skipped["verdict"], skipped["reason"], skipped["axes"]),
                         ("skipped", "out of memory", {"Elements": 2**24}))

    @staticmethod
    def sorted(found):
        return sorted(found, key=lambda r: (r["record"] != "run", r.get("verdict") or "", r.get("basis") or ""))

    def test_nvbench_samples_beside_the_file(self):
        (self.folder / "nvbench.json-bin").mkdir()
        (self.folder / "nvbench.json").write_text((DATA / "nvbench.json").read_text())
        samples = array.array("f", [5e-6, 4e-6, 6e-6, 4.5e-6, 7e-6])
        (self.folder / "nvbench.json-bin/0.bin").write_bytes(samples.tobytes())
        cold = next(r for r in self.imported(self.folder / "nvbench.json") if r.get("basis") == "cold" and r["n"])
        self.assertAlmostEqual(cold["median_s"], 5e-6)
        self.assertEqual(len(cold["samples_s"]), 5)
        (self.folder / "nvbench.json-bin/0.bin").write_bytes(samples.tobytes()[:8])
        self.refused(4, "not the 5 times", "import", self.folder / "nvbench.json", "-o", self.folder / "x")

    def test_liger(self):
        found = self.imported(DATA / "liger.csv")
        runs = [r for r in found if r["record"] == "run"]
        self.assertEqual([(r["device"]["name"], r["tool"]["version"], r["started"]) for r in runs],
                         [("NVIDIA A100-SXM4-80GB", "0.8.0", "2026-01-05T10:20:30.000Z"),
                          ("NVIDIA H100 80GB HBM3", "0.8.1", "2026-02-05T10:20:30.000Z")])
        bench = next(r for r in found if r["record"] == "bench" and r["impl"] == "liger"
                     and r["pass"] == "forward_backward")
        self.assertEqual((bench["op"], bench["dtype"], bench["axes"], bench["options"], bench["median_s"],
                          bench["q1_s"]),
                         ("rms_norm", "bf16", {"M": 2048, "H": 4096}, {"eps": "1e-06"}, 0.25e-3, None))
        memory = next(r for r in found if r["record"] == "memory")
        self.assertEqual(memory["peak_bytes"], 64.5 * 2**20)
        forward = next(r for r in found if r.get("pass") == "forward")
        self.assertEqual(forward["dtype"], "unknown")

    def test_importing_twice_and_merging_changes_nothing(self):
        for name in ("liger.csv", "nvbench.json", "google_benchmark.json"):
            for copy in ("a", "b"):
                self.tigon("import", DATA / name, "-o", self.folder / f"{copy}.jsonl", "--time", "2026-01-01T00:00:00Z")
            self.tigon("merge", self.folder / "a.jsonl", self.folder / "b.jsonl", "-o", self.folder / "c.jsonl")
            self.assertEqual((self.folder / "c.jsonl").read_bytes(), (self.folder / "a.jsonl").read_bytes())
            self.assertEqual(self.tigon("index", self.folder / "a.jsonl", "-o", self.folder / "i.sqlite")[0], 0)

    def test_bad_files_are_one_line(self):
        gbench = json.loads((DATA / "google_benchmark.json").read_text())
        liger = (DATA / "liger.csv").read_text()
        bad = {
            "a.json": ("{", "not JSON"), "b.json": ("[]", "neither JSON of"), "c.json": ("{}", 'no list "benchmarks"'),
            "d.json": (json.dumps({"benchmarks": [{}]}), "has no name"),
            "e.json": (json.dumps({"benchmarks": [{**gbench["benchmarks"][0], "time_unit": "days"}]}), "is no time"),
            "f.json": (json.dumps({"benchmarks": [{**gbench["benchmarks"][0], "real_time": -1}]}),
                       "times are positive"),
            "g.json": (json.dumps({"benchmarks": [gbench["benchmarks"][3]]}), "aggregates alone"),
            "h.json": (json.dumps({"benchmarks": [], "devices": []}), "no measured state"),
            "i.csv": (liger.replace("0.25,", "fast,"), "'fast' is no number"),
            "j.csv": (liger.replace(",ms,", ",days,"), "a positive time"),
            "k.csv": ("kernel_name,x\n1,2\n", "no column kernel_provider"),
            "l.csv": (liger + "a,b\n", "l.csv:6: not 15 columns"),
            "m.csv": (liger.replace("memory,MB", "energy,J"), "energy in J"), "n.csv": ("", "neither JSON of"),
            "o.csv": (liger.replace('"{""M"": 2048}"', '"[1]"'), "not an object"),
        }
        for name, (text, says) in bad.items():
            (self.folder / name).write_text(text)
            self.refused(4, says, "import", self.folder / name, "-o", self.folder / "out")
        (self.folder / "p.csv").write_bytes(b"\xff\xfe\x00")
        self.refused(4, "not text in UTF-8", "import", self.folder / "p.csv", "-o", self.folder / "out")
        self.refused(4, "No such file", "import", self.folder / "nosuch", "-o", self.folder / "out")
        self.refused(2, "--time", "import", DATA / "liger.csv", "-o", "x", "--time", "yesterday")
        self.refused(2, "invalid choice", "import", DATA / "liger.csv", "-o", "x", "--format", "excel")
        self.assertFalse((self.folder / "out").exists())

    # ---- export ---------------------------------------------------------------------------------

    def test_google_benchmark_there_and_back(self):
        path = self.run_with_all_kinds()
        text = self.exported("google-benchmark", path)
        (self.folder / "g.json").write_text(text)
        back = {(r["case_id"], r["basis"]): r for r in self.imported(self.folder / "g.json") if r["record"] == "bench"}
        there = {(r["case_id"], r["basis"]): r for r in self.read(path) if r["record"] == "bench"}
        self.assertEqual(back.keys(), there.keys())
        for key, record in there.items():
            for field in ("run_id", "case_key", "op", "pass", "impl", "dtype", "axes", "executor", "verdict", "reason",
                          "median_s",
                          "q1_s", "q3_s", "n", "flop", "bytes_min_bytes", "bound"):
                self.assertEqual(back[key].get(field), record.get(field), (key, field))
        sampled = next(r for r in back.values() if r.get("samples_s"))
        for got, want in zip(sampled["samples_s"], [0.9e-3, 1e-3, 1.2e-3]):
            self.assertAlmostEqual(got, want, delta=1e-15)
        names = [entry["name"] for entry in json.loads(text)["benchmarks"]]
        self.assertEqual(names.count(f"{SMALL}/cold"), 3)

    def test_github_action_benchmark(self):
        entries = json.loads(self.exported("github-action-benchmark", self.run_with_all_kinds()))
        self.assertEqual(len({entry["name"] for entry in entries}), len(entries))
        self.assertTrue(all(isinstance(e["value"], (int, float)) and e["unit"] in ("us", "bytes") for e in entries))
        fused = next(e for e in entries if "fused/bf16/T=8192,V=32000" in e["name"])
        self.assertAlmostEqual(fused["value"], 32000e-8 * 1.2 * 1e6)

    def test_otava_has_a_row_per_run_and_a_column_per_case(self):
        a, b = self.write("a.jsonl", full_run()), full_run("20260102T120000Z-00000001")
        b[0]["started"] = "2026-01-02T12:00:00.000Z"
        rows = list(csv.reader(io.StringIO(self.exported("otava", self.write("b.jsonl", b), a))))
        self.assertEqual(rows[0][:3], ["time", "commit", "run_id"])
        self.assertEqual([row[2] for row in rows[1:]], ["20260101T120000Z-1a2b3c4d", "20260102T120000Z-00000001"])
        self.assertEqual({len(row) for row in rows}, {5 + 4})
        self.assertAlmostEqual(float(rows[1][6]), 32000e-8 * 1.2)

    def test_otava_gets_a_number_for_every_cell(self):
        a, b = full_run(), full_run("20260102T120000Z-00000001")
        b[0]["started"] = "2026-01-02T12:00:00.000Z"
        failed = next(r for r in b if r["record"] == "bench")
        failed |= {"verdict": "oom", "median_s": None}
        paths = [self.write("b.jsonl", b), self.write("a.jsonl", a)]
        code, out, errors = self.tigon("export", *paths, "--format", "otava")
        rows = list(csv.DictReader(io.StringIO(out)))
        column = f"{failed['case_id']}/{failed['basis']}"
        self.assertEqual((code, rows[1][column]), (0, rows[0][column]))
        self.assertIn("1 cells were not measured and repeat the run before", errors)

    def test_tidy_csv_has_every_number_exactly(self):
        path = self.run_with_all_kinds()
        rows = list(csv.DictReader(io.StringIO(self.exported("csv", path))))
        medians = {(r["case_id"], r["basis"]): r["value"] for r in rows if r["metric"] == "median_s" and r["value"]}
        want = {(r["case_id"], r["basis"]): repr(r["median_s"]) for r in self.read(path) if r["record"] == "bench"
                and r["median_s"]}
        self.assertEqual(medians, want)
        self.assertEqual({r["unit"] for r in rows if r["metric"] == "copy"}, {"bytes_per_s"})
        self.assertEqual({json.dumps(json.loads(r["axes"])) for r in rows if r["kind"] == "memory"},
                         {'{"T": 64, "V": 1024}'})

    def test_junit(self):
        root = xml.fromstring(self.exported("junit", self.run_with_all_kinds()))
        self.assertEqual({key: root.get(key) for key in ("tests", "failures", "errors", "skipped")},
                         {"tests": "9", "failures": "1", "errors": "1", "skipped": "1"})
        for suite in root:
            self.assertEqual(int(suite.get("tests")), len(suite))
        failure = next(root.iter("failure"))
        self.assertIn("y[1] is nan", failure.text)
        self.assertIn("repro: ./tigon check", failure.text)
        self.assertIn("8 GiB ?[31m<&>", next(root.iter("error")).text)  # no control character is legal in XML

    def test_prometheus(self):
        text = self.exported("prometheus", self.run_with_all_kinds())
        self.assertTrue(text.endswith("\n"))
        line = re.compile(r'(# (HELP|TYPE) [a-z_]+ .+|[a-z_]+\{([a-z_]+="([^"\\\n]|\\[\\"n])*",?)*\} [-+0-9.e]+)')
        series = []
        for row in text.splitlines():
            self.assertTrue(line.fullmatch(row), row)
            if not row.startswith("#"):
                series.append(row.rsplit(" ", 1)[0])
        self.assertEqual(len(series), len(set(series)))
        self.assertIn('tigon_check_passed{', text)
        self.assertIn(f'tigon_memory_peak_bytes{{case="{SMALL}"', text)

    def test_wall_times_of_the_host_executor_are_no_speed(self):
        path = self.write("host.jsonl", full_run(records_of=sample.host_run))
        seconds = next(r["median_s"] for r in self.read(path) if r["record"] == "bench")
        for name in ("google-benchmark", "otava"):
            code, out, errors = self.tigon("export", path, "--format", name)
            self.assertEqual((code, out), (4, ""))
            self.assertIn("1 wall times of the host executor are left out: they are no kernel speed", errors)
            self.assertIn("only host wall times, which are not exported", errors)
        for name in ("github-action-benchmark", "prometheus"):  # of memory and checks
            code, out, errors = self.tigon("export", path, "--format", name)
            self.assertEqual(code, 0, errors)
            self.assertIn("1 wall times of the host executor are left out", errors)
            self.assertFalse("/wall" in out or "bench_median" in out or f"{seconds * 1e6}" in out, out)
        code, out, errors = self.tigon("export", path, "--format", "junit")  # of verdicts, those of timed cases too
        self.assertEqual((code, errors.count("1 wall times of the host executor are left out")), (0, 1))
        times = {case.get("name"): case.get("time") for case in xml.fromstring(out).iter("testcase")}
        self.assertEqual([time for name, time in times.items() if name.endswith(", wall]")], [None])
        self.assertNotIn(None, [time for name, time in times.items() if not name.endswith(", wall]")])
        rows = list(csv.DictReader(io.StringIO(self.exported("csv", path))))
        self.assertEqual([r["metric"] for r in rows if r["value"] == repr(seconds)], ["host_wall_median_s"])

    def test_nothing_to_export_is_said(self):
        header = self.write("h.jsonl", full_run()[:1])
        for name in ("google-benchmark", "github-action-benchmark", "otava", "junit", "prometheus"):
            self.refused(4, "record to export", "export", header, "--format", name)
        self.refused(2, "--format", "export", header)

    def test_what_is_simulated_says_so_in_every_format(self):
        self.tigon("simulate", "--out", self.folder / "h", "--seed", 3, "--days", 1, "--cases", 4)
        for name in exporters.FORMATS:
            self.assertIn("simulated", self.exported(name, self.folder / "h"), name)


    def test_simulated_records_are_as_the_schema_says(self):
        self.tigon("simulate", "--out", self.folder / "h", "--seed", 3, "--days", 61, "--cases", 20)
        for line in records.read([self.folder / "h"], print):
            self.assertEqual(schema.violation(line.record), "", line.where)


if __name__ == "__main__":
    unittest.main()
