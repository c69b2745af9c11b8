# SPDX-License-Identifier: Apache-2.0
"""tigon.judge with FlashInfer-Bench's Definition, Solution and Workload: what is right, wrong or not run here, and the Traces of it."""
import contextlib
import importlib.util
import io
import json
import pathlib
import tempfile
import unittest

import torch
from tigon import judge

DEFINITION = {
    "name": "rmsnorm_h32", "op_type": "rmsnorm", "axes": {"rows": {"type": "var"}, "hidden": {"type": "const", "value": 32}},
    "inputs": {"x": {"shape": ["rows", "hidden"], "dtype": "bfloat16"}, "weight": {"shape": ["hidden"], "dtype": "bfloat16"},
               "eps": {"shape": None, "dtype": "float32"}},
    "outputs": {"y": {"shape": ["rows", "hidden"], "dtype": "bfloat16"}, "rstd": {"shape": ["rows"], "dtype": "float32"}},
    "reference": """import torch
def run(x, weight, eps):
    h = x.float()
    rstd = torch.rsqrt(h.pow(2).mean(-1) + eps)
    return {"rstd": rstd, "y": (h * rstd[:, None] * weight.float()).to(x.dtype)}
""",
}
RETURNS = """import torch
from parts.norm import rstd_of
def launch(x, weight, eps):
    r = rstd_of(x, eps)
    return {"rstd": r, "y": (weight.float() * (x.float() * r[:, None])).to(x.dtype)}
"""
PART = "def rstd_of(x, eps): return (x.float().square().sum(-1) / x.shape[-1] + eps) ** -0.5\n"
WRITES = """import torch
from parts.norm import rstd_of
def launch(x, weight, eps, y, rstd):
    rstd.copy_(rstd_of(x, eps))
    y.copy_(weight.float() * (x.float() * rstd[:, None]))
"""


def workload(uuid, rows, **inputs):
    return {"definition": "rmsnorm_h32", "solution": None, "evaluation": None,
            "workload": {"uuid": uuid, "axes": {"rows": rows}, "inputs": {"eps": {"type": "scalar", "value": 1e-3}, **inputs}}}


class FlashinferTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def judged(self, text, *workloads, style=False, language="python", entry="main.py::launch", definition=None, words=()):
        """The exit code, what was said, and the Traces."""
        solution = {"name": "mine", "definition": "rmsnorm_h32", "author": "somebody",
                    "spec": {"language": language, "target_hardware": ["CPU"], "entry_point": entry, "destination_passing_style": style},
                    "sources": [{"path": "main.py", "content": text}, {"path": "parts/norm.py", "content": PART}]}
        files = {"solution.json": json.dumps(solution), "definition.json": json.dumps({**DEFINITION, **(definition or {})}),
                 "workloads.jsonl": "".join(json.dumps(line) + "\n" for line in workloads or (workload("a", 7),))}
        for name, content in files.items():
            (self.folder / name).write_text(content, encoding="utf-8")
        said, traces = io.StringIO(), self.folder / "traces.jsonl"
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = judge.main([str(self.folder / "solution.json"), "--reference", str(self.folder / "definition.json"), "--workload",
                               str(self.folder / "workloads.jsonl"), "--trace", str(traces), *words])
        return code, said.getvalue(), [json.loads(line) for line in traces.read_text(encoding="utf-8").splitlines()] if traces.exists() else []

    def status(self, *arguments, **options):
        _, said, traces = self.judged(*arguments, **options)
        self.assertEqual(len(traces), 1, said)
        return traces[0]["evaluation"]["status"]

    def test_solutions_that_return_and_that_write(self):
        for text, style in ((RETURNS, False), (WRITES, True)):
            with self.subTest(style=style):
                code, said, traces = self.judged(text, workload("a", 7), workload("b", 64), style=style)
                self.assertEqual(code, 0, said)
                self.assertRegex(said, r"solution.json \(b\): right(?s:.*)2 right; 2 in all")
                self.assertEqual([trace["workload"]["uuid"] for trace in traces], ["a", "b"])
                self.trace(traces[0])

    def trace(self, trace):
        """What the format's own reader asks of a Trace that passed."""
        self.assertEqual((trace["definition"], trace["solution"], trace["workload"]["axes"]), ("rmsnorm_h32", "mine", {"rows": 7}))
        evaluation = trace["evaluation"]
        self.assertEqual(evaluation["status"], "PASSED")
        self.assertLess(0, evaluation["correctness"]["max_absolute_error"])
        self.assertLess(evaluation["correctness"]["max_relative_error"], 0.01)
        self.assertEqual(set(evaluation["performance"]), {"latency_ms", "reference_latency_ms", "speedup_factor"})
        self.assertIn("nothing was timed", evaluation["log"])
        self.assertTrue(evaluation["environment"]["hardware"] and evaluation["timestamp"])

    def test_the_status_says_what_is_wrong(self):
        for text, status in ((RETURNS.replace("weight.float() *", "1.1 * weight.float() *"), "INCORRECT_NUMERICAL"),
                             (RETURNS.replace("r[:, None])).to(x.dtype)", "r[:, None]))"), "INCORRECT_DTYPE"),
                             (RETURNS.replace('"rstd": r,', '"rstd": r[:, None],'), "INCORRECT_SHAPE"),
                             (RETURNS.replace("    r =", "    raise KeyError\n    r ="), "RUNTIME_ERROR"),
                             (RETURNS + "def f(:\n", "COMPILE_ERROR"), (RETURNS + "while True: pass\n", "TIMEOUT")):
            with self.subTest(status=status):
                self.assertEqual(self.status(text, words=("--timeout", "6") if status == "TIMEOUT" else ()), status)

    def test_what_is_not_written_is_wrong(self):
        text = WRITES.replace("    rstd.copy_(", "    rstd = (")
        self.assertEqual(self.status(text, style=True), "INCORRECT_NUMERICAL")

    def test_what_is_not_run_here(self):
        code, said, traces = self.judged(RETURNS, language="cuda", entry="main.cu::launch")
        self.assertEqual((code, said.splitlines()[0], traces), (5, "not judged: a Solution in cuda is not run here: it would have to be built", []))
        self.assertEqual(self.judged(RETURNS, language="triton")[1].splitlines()[0], "not judged: a Solution in triton is not run here: --device cuda does")
        self.assertRegex(self.judged(RETURNS, entry="other.py::launch")[1], "^wrong: it is no Solution: no source other.py")
        self.assertRegex(self.judged(RETURNS, definition={"name": "other"})[1], "^bad problem: the Solution is for rmsnorm_h32, not for other")
        self.assertRegex(self.judged(RETURNS, definition={"reference": "def f(): pass"})[1], "^bad problem: .*its reference has no function run")
        self.assertRegex(self.judged(RETURNS, words=("--backward",))[1], "^bad problem: a Definition is judged by a workload, without gradients")

    def test_what_is_not_as_the_format_has_it(self):
        for definition in ({"axes": {"rows": 3}}, {"inputs": {"x": {"shape": ["columns"], "dtype": "bfloat16"}}}, {"constraints": ["rows =="]}):
            code, said, _ = self.judged(RETURNS, definition=definition)
            self.assertEqual(code, 2)
            self.assertRegex(said, "^bad problem: .* is not as the format has it: ")
        self.assertRegex(self.judged(RETURNS, {"uuid": "a"})[1], "a line is no Workload of FlashInfer-Bench")

    def test_other_sizes_keep_the_constraints(self):
        for_12 = RETURNS.replace("    r =", "    assert x.shape[0] == 12\n    r =")
        code, said, _ = self.judged(for_12, workload("a", 12), definition={"constraints": ["rows == 12"]})
        self.assertEqual(code, 0, said)
        self.assertEqual(self.judged(for_12, workload("a", 12))[0], 1)

    @unittest.skipUnless(importlib.util.find_spec("safetensors"), "safetensors is not installed")
    def test_inputs_of_files(self):
        from safetensors.torch import save_file

        save_file({"w": torch.rand(32).bfloat16()}, self.folder / "given.safetensors")
        given = workload("a", 7, weight={"type": "safetensors", "path": "given.safetensors", "tensor_key": "w"})
        code, said, _ = self.judged(RETURNS, given)
        self.assertEqual(code, 0, said)
        self.assertEqual(self.judged(RETURNS.replace("weight.float()", "1"), given)[0], 1)


if __name__ == "__main__":
    unittest.main()
