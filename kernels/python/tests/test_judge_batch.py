# SPDX-License-Identifier: Apache-2.0
"""tigon.judge --batch: a verdict a line that is kept whatever happens, goes on, has parts and time limits, and says what it is by codes."""
import contextlib
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock
from xml.etree import ElementTree

import tigon
from tigon import judge
from tigon._judge.entry import EXIT
from tigon._judge.results import Results
from tigon_report import schema

PACKAGE = pathlib.Path(tigon.__file__).parent
SCHEMA = json.loads((PACKAGE / "_judge/verdict.schema.json").read_text(encoding="utf-8"))
REFERENCE = "import torch\ndef reference(x): return x * 2\ndef get_inputs(): return [torch.randn(6, 5)]\n"
FILES = {
    "right.py": "def candidate(x): return x + x\n",
    "wrong.py": "def candidate(x): return x * 2.01\n",
    "slow.py": "def candidate(x):\n    while True: pass\n",
    "missing.py": "import no_such_package\n",
    "hangs.py": "import time\ntime.sleep(99)\n",
    "ends.py": "import os\nos._exit(3)\n",
    "problem.py": REFERENCE,
}


def descendants(process):
    """Processes that a process began, by way of others, too."""
    parents = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    found, more = set(), {process}
    while more:
        found, more = found | more, {child for child, parent in parents.items() if parent in more} - found
    return found - {process}


class BatchTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name, text in FILES.items():
            (self.folder / name).write_text(text, encoding="utf-8")
        self.batch, self.file = self.folder / "problems.jsonl", self.folder / "verdicts.jsonl"

    def lines(self, *candidates, **options):
        made = [{"candidate": name, "reference": "problem.py", **options} for name in candidates]
        self.batch.write_text("".join(json.dumps(line) + "\n" for line in made), encoding="utf-8")

    def run_batch(self, *words):
        return self.run_words(["--batch", str(self.batch), "--json", str(self.file), *words])

    def run_words(self, words):
        """The exit code, and what was printed."""
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = judge.main(words)
        return code, said.getvalue()

    def verdicts(self):
        return {record["candidate"]: record for record in map(json.loads, self.file.read_text(encoding="utf-8").splitlines())}

    def test_each_verdict_is_a_line_of_the_schema(self):
        self.lines("right.py", "wrong.py", "slow.py", "missing.py", "none.py", timeout=6)
        code, said = self.run_batch("--junit", str(self.folder / "out.xml"), "--jobs", "2")
        verdicts = self.verdicts()
        self.assertEqual({name: record["verdict"] for name, record in verdicts.items()},
                         {"right.py": "right", "wrong.py": "wrong", "slow.py": "too slow", "missing.py": "not judged", "none.py": "bad problem"})
        self.assertEqual(code, 1)
        self.assertRegex(said, r"wrong.py: wrong: drawn: result: (?s:.*)1 right, 1 wrong, 1 bad problem, 1 not judged, 1 too slow; 5 in all\n$")
        for record in verdicts.values():
            self.assertEqual(schema._violation(record, SCHEMA, ""), "")
            self.assertEqual(record.keys() - SCHEMA["properties"].keys(), set())
        self.assertEqual(SCHEMA["properties"]["verdict"]["enum"], list(EXIT))
        self.junit(self.folder / "out.xml")

    def junit(self, file):
        suites = ElementTree.parse(file).getroot()
        self.assertEqual({name: suites.attrib[name] for name in ("tests", "failures", "errors", "skipped")},
                         {"tests": "5", "failures": "1", "errors": "2", "skipped": "1"})
        suite = suites.find("testsuite")
        self.assertEqual(suite.attrib["name"], "problem.py")
        found = {case.attrib["name"]: [child.tag for child in case] for case in suite}
        self.assertEqual(found, {"right.py": [], "wrong.py": ["failure"], "slow.py": ["error"], "missing.py": ["skipped"], "none.py": ["error"]})

    def test_it_goes_on_after_what_a_file_has(self):
        self.lines("right.py")
        self.assertEqual(self.run_batch()[0], 0)
        first = self.file.read_text(encoding="utf-8")
        self.lines("right.py", "wrong.py")
        with self.file.open("a", encoding="utf-8") as file:
            file.write(first[:40])  # a torn last line
        code, said = self.run_batch()
        self.assertEqual(code, 1)
        self.assertRegex(said, "1 right, 1 wrong; 2 in all, 1 of them before")
        self.assertNotIn("right.py: right", said)
        text = self.file.read_text(encoding="utf-8")
        self.assertEqual((text[:len(first)], len(text.splitlines())), (first, 2))
        (self.folder / "wrong.py").write_text(FILES["right.py"], encoding="utf-8")
        self.assertEqual(self.run_batch()[0], 0)  # another content is another candidate
        self.assertEqual(len(self.file.read_text(encoding="utf-8").splitlines()), 3)

    def test_parts_are_disjoint_and_all(self):
        self.lines(*(name for name in FILES if name != "problem.py"))
        parts = [judge.part(judge.entries(self.batch, judge.DEFAULTS), (i, 3)) for i in range(3)]
        names = [entry.candidate for part in parts for entry in part]
        self.assertEqual(sorted(names), sorted(set(FILES) - {"problem.py"}))
        self.assertEqual(self.run_batch("--shard", "3/3")[0], 2)
        self.lines()
        self.assertEqual(self.run_batch(), (4, "tigon judge: nothing to judge\n"))

    def test_references_that_hang_or_end_the_judge(self):
        made = [{"candidate": "right.py", "reference": name, "timeout": 0.5 if name == "hangs.py" else 60} for name in ("ends.py", "hangs.py", "problem.py")]
        self.batch.write_text("".join(json.dumps(line) + "\n" for line in made), encoding="utf-8")
        with unittest.mock.patch("tigon._judge.batch._START", 6.0):
            code, said = self.run_batch()
        self.assertEqual(code, 5)
        self.assertRegex(said, r"right.py: not judged: the judge's own process ended with exit code 3")
        self.assertRegex(said, r"right.py: too slow: no verdict in [0-9]+ s")
        self.assertRegex(said, r"1 right, 1 not judged, 1 too slow; 3 in all")

    def test_ctrl_c_loses_nothing(self):
        self.lines("right.py", "slow.py", timeout=90)
        words = [sys.executable, "-W", "ignore", "-m", "tigon.judge", "--batch", str(self.batch), "--json", str(self.file)]
        as_typed = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's job in the background ignores it
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        signal.signal(signal.SIGINT, as_typed)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.assertEqual(process.stdout.readline(), "right.py: right\n")
        ends = time.monotonic() + 60
        while len(begun := descendants(process.pid)) < 2 and time.monotonic() < ends:  # a judge and a candidate
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=30), 130)
        self.assertRegex(process.stderr.read(), "^interrupted; .*verdicts.jsonl has 1 of 2 verdicts, and the same command goes on\n$")
        self.assertEqual(list(self.verdicts()), ["right.py"])
        self.assertGreaterEqual(len(begun), 2)
        self.assertEqual([pid for pid in begun if os.path.exists(f"/proc/{pid}")], [])

    def test_a_folder_of_candidates_for_a_folder_of_problems(self):
        problem = "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x): return x * 2\ndef get_inputs(): return [torch.randn(6, 5)]\n"
        right, wrong = (problem.replace("Model", "ModelNew").replace("x * 2", of) for of in ("x + x", "x * 2.01"))
        files = {"problems/level1/1_Twice.py": problem, "problems/level1/11_Twice.py": problem, "problems/level2/1_Twice.py": problem,
                 "mine/level1/1_Twice.py": right, "mine/11_Twice.py": right, "mine/level_2_problem_1_sample_0_kernel.py": wrong}
        for name, text in files.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text(text, encoding="utf-8")
        words = [str(self.folder / "mine"), "--problems", str(self.folder / "problems"), "--json", str(self.file), "--jobs", "2"]
        self.assertEqual(self.run_words(words)[0], 1)
        judged = {str(pathlib.Path(name).relative_to(self.folder / "mine")): (str(pathlib.Path(record["reference"]).relative_to(self.folder / "problems")),
                  record["verdict"]) for name, record in self.verdicts().items()}
        self.assertEqual(judged, {"level1/1_Twice.py": ("level1/1_Twice.py", "right"), "11_Twice.py": ("level1/11_Twice.py", "right"),
                                  "level_2_problem_1_sample_0_kernel.py": ("level2/1_Twice.py", "wrong")})
        (self.folder / "mine/1_Twice.py").write_text(right, encoding="utf-8")
        self.assertRegex(self.run_words(words)[1], "^tigon judge: 1_Twice.py has 2 problems in .*problems: name it as its problem, or as level_1_problem_1_")
        (self.folder / "mine/1_Twice.py").rename(self.folder / "mine/9_Thrice.py")
        code, said = self.run_words(words)
        self.assertEqual(code, 2)
        self.assertRegex(said, "9_Thrice.py has no problem in ")
        self.assertEqual(self.run_words(["none", "--problems", "problems"]), (2, "tigon judge: none is no folder\n"))

    def test_what_is_no_batch_and_what_is_no_file_of_verdicts(self):
        for line, text in (("{", "it is no JSON"), ("[]", "it is no JSON object"), ('{"candidate": "a"}', 'it has no "reference"'),
                           ('{"candidate": "a", "reference": "b", "timout": 3}', '"timout" is no option'),
                           ('{"candidate": "a", "reference": "b", "dtype": "int8"}', '"dtype" cannot be "int8"')):
            self.batch.write_text("\n" + line + "\n", encoding="utf-8")
            code, said = self.run_batch()
            self.assertEqual(code, 2)
            self.assertIn(f"problems.jsonl, line 2: {text}", said)
        self.lines("right.py")
        for text, said in (('{"candidate": "right.py"}\n', "line 1: this is no verdict"), ("all my notes", "ends with what is no verdict")):
            self.file.write_text(text, encoding="utf-8")
            code, shown = self.run_batch()
            self.assertEqual((code, self.file.read_text(encoding="utf-8")), (2, text))
            self.assertIn(said, shown)
        self.file.unlink()
        with Results(self.file):
            self.assertRegex(self.run_batch()[1], "is written by another batch")
        for words in (["--reference", "x.py"], ["x.py"], ["--jobs", "0"]):
            with self.assertRaises(SystemExit) as end:
                self.run_batch(*words)
            self.assertEqual(end.exception.code, 2)


if __name__ == "__main__":
    unittest.main()
