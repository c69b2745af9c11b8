# SPDX-License-Identifier: Apache-2.0
"""Bad inputs of the commands in Python: one clear line on stderr, the right exit code, nothing written, nothing lost."""
import contextlib
import io
import json
import pathlib
import shutil
import sys
import tempfile
import unittest
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "reports"), str(ROOT / "ci"), str(ROOT / "harness/trees")]

from tigon_gate import __main__ as gate  # noqa: E402
from tigon_report import __main__ as report  # noqa: E402
from tigon_report import command as frame  # noqa: E402

RUN = {"record": "run", "schema_version": "1.0.0", "run_id": "20261121T074500Z-1a2b3c4d",
       "time": "2026-11-21T07:45:00.123Z", "tool": {"name": "tigon", "version": "0.1.0", "commit": None, "dirty": False},
       "command": ["./tigon", "check"], "seed": 42, "started": "2026-11-21T07:45:00.123Z",
       "host": {"name": "h", "os": "o", "kernel": "k", "cpu": "c", "cores": 2, "memory_bytes": 1},
       "device": {"kind": "host", "name": "h"}, "build": {"preset": "host"}, "libraries": {}, "environment": {},
       "tags": {}}
CHECK = {**{key: RUN[key] for key in ("schema_version", "run_id", "time")}, "record": "check",
         "case_id": "rope/forward/fused/f32/T=1", "case_key": "0123456789abcdef", "op": "rope", "pass": "forward",
         "impl": "fused", "dtype": "f32", "axes": {"T": 1}, "options": {}, "inputs": "normal", "seed": 42,
         "executor": "fast", "verdict": "passed", "reason": "", "outputs": [], "seconds_s": 0.1, "repro": ""}


def line(record, damage=None):
    """A record as the C++ writer writes it, with its checksum; `damage` changes its bytes afterwards."""
    text = json.dumps(record, separators=(",", ":"))[:-1]
    text += f',"sum":"{zlib.crc32(text.encode()):08x}"}}\n'
    return damage(text) if damage else text


FILES = {
    "good.jsonl": line(RUN) + line(CHECK),
    "empty.jsonl": "",
    "garbage.jsonl": "this is no record\n",
    "zeros.jsonl": "\0" * 5000,
    "array.jsonl": "[1,2,3]\n[4]\n",
    "headless.jsonl": line(CHECK),
    "truncated.jsonl": line(RUN)[:60],
    "flipped.jsonl": line(RUN) + line(CHECK, lambda text: text.replace("passed", "passex")) + line(CHECK),
    "bad_middle.jsonl": line(RUN) + '{"record":"check","x":\n' + line(CHECK),
    "deep.jsonl": "[" * 100000 + "\n",
    "number_kind.jsonl": line(RUN) + '{"record":5}\n' + line(CHECK),
    "list.json": "[]",
    "google.json": '{"context": {}, "benchmarks": [{"name": "x", "real_time": "soon"}]}',
    "half.json": '{"context": {"date": "2026',
    "liger.csv": "kernel_name,wings\nrope,2\n",
}

# Words, exit code, part of the line. {name} is a file above; {here} its folder.
TABLE = [
    ("", 2, ""),
    ("reprot x", 2, "no such command"),
    *((f"{command} --wings", 2, "--help") for command in
      ("report", "merge", "index", "import", "export", "compare", "simulate", "dashboard")),
    *((f"{command} {{here}}/none", 4, "none") for command in ("report",)),
    *((f"{command} {{here}}/none -o {{here}}/out", 4, "none") for command in ("merge", "index")),
    *((f"{command} {{{name}}} -o {{here}}/out", 4, name) for command in ("merge", "index")
      for name in ("empty.jsonl", "garbage.jsonl", "zeros.jsonl", "array.jsonl", "truncated.jsonl", "bad_middle.jsonl",
                   "deep.jsonl", "number_kind.jsonl", "flipped.jsonl")),
    *((f"report {{{name}}} --out {{here}}/out", 4, name) for name in
      ("empty.jsonl", "garbage.jsonl", "zeros.jsonl", "array.jsonl", "headless.jsonl", "truncated.jsonl",
       "bad_middle.jsonl", "deep.jsonl", "flipped.jsonl")),
    *((f"compare {{good.jsonl}} {{{name}}}", 4, name) for name in
      ("empty.jsonl", "garbage.jsonl", "zeros.jsonl", "headless.jsonl", "flipped.jsonl")),
    ("merge", 2, "runs"),
    ("merge {good.jsonl}", 2, "-o"),
    ("merge {good.jsonl} -o /proc/no/out", 5, "/proc/no"),
    ("index {good.jsonl} -o /proc/no/out", 5, "/proc/no"),
    ("import {half.json} -o {here}/out", 4, "half.json"),
    ("import {google.json} -o {here}/out", 4, "google.json"),
    ("import {list.json} -o {here}/out", 4, "list.json"),
    ("import {liger.csv} -o {here}/out", 4, "liger.csv"),
    ("import {here}/none -o {here}/out", 4, "none"),
    ("import {google.json} --format wings -o {here}/out", 2, "google-benchmark"),
    ("import {google.json} --time yesterday -o {here}/out", 2, "yesterday"),
    ("export {good.jsonl} --format wings", 2, "otava"),
    ("export {good.jsonl}", 2, "--format"),
    ("export {here}/none --format csv", 4, "none"),
    ("export {garbage.jsonl} --format csv", 4, "garbage.jsonl"),
    ("compare {good.jsonl}", 2, "B"),
    ("compare {good.jsonl} {good.jsonl} --confidence 2", 2, "confidence"),
    ("compare {good.jsonl} {good.jsonl} --confidence high", 2, "confidence"),
    ("compare {good.jsonl} {good.jsonl} --filter (", 2, "filter"),
    ("compare {good.jsonl} {good.jsonl} --fail-above -1", 2, "fail-above"),
    ("simulate --out {here}/out", 2, "seed"),
    ("simulate --out {here} --seed 1", 2, "empty"),
    ("simulate --out {here}/out --seed x", 2, "seed"),
    ("simulate --out {here}/out --seed 1 --days -1", 2, "days"),
    ("dashboard {good.jsonl}", 2, "--out"),
    ("dashboard {here}/none --out {here}/out", 4, "none"),
    ("dashboard {garbage.jsonl} --out {here}/out", 4, "garbage.jsonl"),
    ("gate --wings", 2, "wings"),
    ("gate --pairs 0 --base HEAD", 2, "pairs"),
    ("gate --budget soon --base HEAD", 2, "budget"),
    ("gate --base no/such/commit --static", 2, "no/such/commit"),
    ("gate --simulate {half.json}", 2, "half.json"),
    ("gate --simulate {here}/none", 2, "none"),
]


def refuse(words):
    """Exit code and stderr of a command."""
    error = io.StringIO()
    with contextlib.redirect_stderr(error), contextlib.redirect_stdout(io.StringIO()):
        try:
            is_gate = words[:1] == ["gate"]
            code = frame.run("gate", gate.main, words[1:]) if is_gate else report.main(words)
        except SystemExit as exit_:
            code = exit_.code
    return code, error.getvalue()


def problem_of(words, code, says):
    """What is wrong with how `words` are refused; empty when all is right."""
    got, text = refuse(words)
    if got != code:
        return f"exit code {got} instead of {code}: {text}"
    lines = text.splitlines()
    if not words:
        return ""  # help
    if len(lines) > 2 or not all(line.startswith("tigon ") for line in lines):  # one may tell of a torn line
        return f"not one line: {text}"
    return "" if says in lines[-1] else f"does not say {says!r}: {text}"


class BadInputs(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        for name, text in FILES.items():
            (self.folder / name).write_text(text)

    def test_each_is_one_line_and_nothing_is_lost(self):
        refused = 0
        names = {name: str(self.folder / name) for name in FILES}
        for command, code, says in TABLE:
            (self.folder / "out").unlink(missing_ok=True)
            words = [self._word(word, names) for word in command.split()]
            with self.subTest(command):
                problem = problem_of(words, code, says)
                refused += not problem
                self.assertEqual(problem, "")
        self.assertEqual({file.name: file.read_text() for file in self.folder.iterdir()}, FILES)
        print(f"{refused} of {len(TABLE)} bad inputs refused", file=sys.stderr)

    def _word(self, word, names):
        for name, path in names.items():
            word = word.replace("{" + name + "}", path)
        return word.replace("{here}", str(self.folder))


if __name__ == "__main__":
    unittest.main()
