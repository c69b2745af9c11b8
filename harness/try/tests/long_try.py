# SPDX-License-Identifier: Apache-2.0
"""tigon try on files: what it says, where it stops, and with which exit code."""
import ctypes
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import types
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "harness/try/examples"
PYTHONPATH = os.pathsep.join(str(ROOT / part) for part in ("reports", "harness/try", "harness/trees"))
sys.path[:0] = PYTHONPATH.split(os.pathsep)

from tigon_try import compiler, judge, python_kernel, show, signature  # noqa: E402


def tigon_try(*words, folder):
    """(exit code, output) of `tigon try`; results go below `folder`."""
    done = subprocess.run([sys.executable, "-m", "tigon_try", *map(str, words), "--out", str(pathlib.Path(folder) / "results")],
                          capture_output=True, text=True, check=False, cwd=folder,
                          env={**os.environ, "PYTHONPATH": PYTHONPATH, "TIGON_DEVICE": "host"})
    return done.returncode, done.stdout + done.stderr


class Try(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def tried(self, text, *words):
        (pathlib.Path(self.folder) / "mine.cu").write_text(text)
        return tigon_try("mine.cu", *words, folder=self.folder)

    def test_errors_name_the_line_of_the_file(self):
        code, said = self.tried('#include "kernels/rms_norm/rms_norm.h"\n\nint f() { return nothing; }\n', "--dtype", "bf16")
        self.assertEqual(code, 2, said)
        self.assertIn("mine.cu:3:18: error: ", said)
        self.assertIn("int f() { return nothing; }", said)
        self.assertIn("stopped at 'compiles'", said)

    def test_sizes_of_a_model(self):
        code, said = tigon_try(EXAMPLES / "rms_norm_right.cu", "--model", "llama4-8b", folder=self.folder)
        self.assertEqual(code, 2, said)
        self.assertIn("no model 'llama4-8b'; known: llama2-7b", said)
        code, said = tigon_try(EXAMPLES / "rms_norm_right.cu", "--dtype", "bf16", "--model", "qwen3-0.6b", folder=self.folder)
        self.assertEqual(code, 0, said)
        self.assertRegex(said, r"sizes of qwen3-0.6b +ok")
        self.assertIn("H=1024", said)

    def slow(self, seconds, *more, where="args.x.shape[1] == 33"):
        """The right example with a pause at a size."""
        text = (EXAMPLES / "rms_norm_right.cu").read_text()
        for old, new in (('rms_norm.h"\n', 'rms_norm.h"\n#include <unistd.h>\n'),
                         ("  if (rows > 0)", f"  if ({where}) sleep({seconds});\n  if (rows > 0)"), *more):
            self.assertEqual(text.count(old), 1)
            text = text.replace(old, new)
        return text

    def test_time_is_no_verdict_on_results(self):
        code, said = self.tried(self.slow(3), "--dtype", "bf16", "--timeout", "1")
        self.assertEqual(code, 5, said)
        self.assertRegex(said, r"checking executor +too slow .* 0 failed, \d+ too slow")
        self.assertRegex(said, r"oracle's budget +too slow .* [1-9]\d+ passed, 0 failed, \d+ too slow")  # the next stages come
        self.assertIn("T=3,H=33,inputs=normal,seed=42: no result within 1 s, killed", said)
        self.assertIn("more cases of T=1,H=33 and of T=3,H=33 are not run", said)
        self.assertRegex(said, r"verdict: not judged: too slow \(\d+ cases took longer than they may; --timeout SECONDS")
        self.assertNotIn("wrong", said)
        self.assertNotIn("what fails", said)

    def test_what_is_slow_and_wrong_is_wrong(self):
        code, said = self.tried(self.slow(3, ("y[h] = Elem(normal * gain);", "y[h] = Elem(columns == 4099 ? 0.0f : normal * gain);")),
                                "--dtype", "bf16", "--timeout", "1")
        self.assertEqual(code, 1, said)
        self.assertRegex(said, r"checking executor +FAILED .* [1-9]\d* failed, \d+ too slow")
        self.assertIn("verdict: wrong: stopped at 'checking executor'", said)

    def test_a_limit_that_is_given_or_found(self):
        code, said = self.tried(self.slow(2, where="args.x.shape[0] == 5 && args.x.shape[1] == 4099"), "--dtype", "bf16", "--timeout", "30")
        self.assertEqual(code, 0, said)
        for text in ("0", "-1", "nan", "soon"):
            code, said = tigon_try(EXAMPLES / "rms_norm_right.cu", "--timeout", text, folder=self.folder)
            self.assertEqual(code, 2, said)
            self.assertIn("--timeout", said)

    @unittest.skipUnless(shutil.which("nvcc"), "SKIPPED: no nvcc here")
    def test_launchers_may_be_left_out_on_a_gpu(self):
        build = compiler.Build(ROOT, os.environ.get("TIGON_TRY_BUILD") or ROOT / "build/host")
        file, of_op = EXAMPLES / "rms_norm_right.cu", signature.all_of(build.program)["rms_norm"]
        library, _ = compiler.gpu_library(build, "nvcc", of_op, file, file.read_text(), "right", pathlib.Path(self.folder),
                                          ["forward", "backward"], ["bf16"], "sm_90")
        self.assertEqual(list(compiler.defined_launchers(library, of_op, ["bf16"])), ["forward"])
        ctypes.CDLL(str(library), os.RTLD_NOW)

    def test_an_empty_grid_is_an_error_as_on_a_gpu(self):
        text = (EXAMPLES / "rms_norm_right.cu").read_text().replace("if (rows > 0) ", "")
        code, said = self.tried(text, "--dtype", "bf16")
        self.assertEqual(code, 1, said)
        self.assertIn("a grid of 0 blocks, which CUDA refuses", said)
        self.assertIn("stopped at 'oracle's budget'", said)

    def test_another_signature(self):
        code, said = self.tried('#include "kernels/rms_norm/rms_norm.h"\nnamespace tigon::rms_norm {\n'
                                "template <class P> Status forward(const Forward<P>&) { return {}; }\n}\n", "--dtype", "bf16")
        self.assertEqual(code, 2, said)
        self.assertIn("template <class P> Status forward(const Forward<P>& args, Stream stream);", said)
        self.assertIn("stopped at 'signature fits'", said)

    def test_a_file_of_another_op(self):
        code, said = tigon_try(EXAMPLES / "rms_norm_right.cu", "--op", "swiglu", folder=self.folder)
        self.assertEqual(code, 2, said)
        self.assertIn("--op swiglu: ", said)
        self.assertIn("includes the signature of rms_norm", said)

    def test_what_was_not_compared_is_not_said_to_be(self):
        code, said = tigon_try(EXAMPLES / "rms_norm_right.cu", "--dtype", "bf16", "--pass", "backward", folder=self.folder)
        self.assertEqual(code, 2, said)
        self.assertIn("records: none, no case ran", said)
        self.assertNotIn("compared with", said)
        self.assertNotIn("reproduce", said)
        self.assertRegex(said, r"Tigon commit: [0-9a-f]{40}")

    def test_a_failing_case_is_looked_at_again(self):
        """Not only its reason: all outputs, guards, seeds, and the smallest case."""
        code, said = tigon_try(EXAMPLES / "rms_norm_tail_fault.cu", "--dtype", "bf16", folder=self.folder)
        self.assertEqual(code, 1, said)
        for what in ("what fails: forward: H is no multiple of 8 (1, 33, 4099; right at 8, 48)", "y: 1 of 1 elements wrong",
                     "worst y[0,0]: got ", "rstd: 1 of 1 elements wrong", "guards around every tensor intact",
                     "same bits in 4 calls", "fails with 3 of 3 other seeds: not the data"):
            self.assertIn(what, said)
        self.assertIn("- compared with: the oracle alone", said)

    def test_cuda_that_the_host_executor_does_not_run(self):
        code, said = self.tried('#include "kernels/rms_norm/rms_norm.h"\n#include <cuda_bf16.h>\n', "--dtype", "bf16")
        self.assertEqual(code, 4, said)
        self.assertIn("mine.cu:2: CUDA's 16-bit types", said)

    def test_a_finding_of_the_checking_executor(self):
        file = EXAMPLES / "rms_norm_missing_barrier.cu"
        line = 1 + next(k for k, text in enumerate(file.read_text().splitlines()) if "sum += partial" in text)
        code, said = tigon_try(file, "--dtype", "bf16", folder=self.folder)
        self.assertEqual(code, 1, said)
        self.assertIn("uninitialized read: of 4 bytes at shared+0", said)
        self.assertIn(f"rms_norm_missing_barrier.cu:{line} [", said)
        self.assertIn("stopped at 'checking executor'", (pathlib.Path(self.folder) / "results/pull_request.md").read_text())

    def tried_python(self, text, *words):
        (pathlib.Path(self.folder) / "mine.py").write_text(text)
        return tigon_try("mine.py", *words, folder=self.folder)

    @unittest.skipUnless(importlib.util.find_spec("numpy"), "SKIPPED: this Python has no numpy")
    def test_a_function_of_numpy_arrays(self):
        code, said = tigon_try(EXAMPLES / "rms_norm_numpy.py", "--dtype", "bf16", folder=self.folder)
        self.assertEqual(code, 0, said)
        self.assertRegex(said, r"oracle's budget +ok .* \d+ passed, 0 failed, 3 skipped")
        lines = (pathlib.Path(self.folder) / "results/check.jsonl").read_text().splitlines()
        skipped = judge.tally(r for r in map(json.loads, lines) if r["record"] == "check").skipped
        self.assertEqual(skipped.pop("not for plug-ins: its memory cannot be copied to another process"), 3)  # rows 2^31 apart
        self.assertTrue(all("the host executor has no streams" in reason for reason in skipped), skipped)

    @unittest.skipUnless(importlib.util.find_spec("numpy"), "SKIPPED: this Python has no numpy")
    def test_a_wrong_function(self):
        code, said = self.tried_python("import numpy as np\ndef swiglu(a, b, y):\n    y[:] = a * b\n", "--dtype", "f32")
        self.assertEqual(code, 1, said)
        self.assertRegex(said, r"(?s)incorrect_numerical.*worst y\[")

    @unittest.skipUnless(importlib.util.find_spec("numpy"), "SKIPPED: this Python has no numpy")
    def test_threads_may_be_named(self):
        """CUDA names the threads that it starts, and does not start where it may not."""
        code, said = self.tried_python("import threading\nimport numpy\n"
                                       "open(f'/proc/self/task/{threading.get_native_id()}/comm', 'w').write('mine')\n"
                                       "def swiglu(a, b, y):\n    y[:] = a * b\n", "--dtype", "f32")
        self.assertEqual(code, 1, said)
        self.assertRegex(said, r"(?s)incorrect_numerical.*worst y\[")

    @unittest.skipUnless(importlib.util.find_spec("numpy"), "SKIPPED: this Python has no numpy")
    def test_kernels_may_be_called_like_a_package(self):
        """As torch's own, which are compared under the name torch."""
        build = compiler.Build(ROOT, os.environ.get("TIGON_TRY_BUILD") or ROOT / "build/host")
        file = pathlib.Path(self.folder) / "mine.py"
        file.write_text("import numpy\ndef swiglu(a, b):\n    return a / (1 + numpy.exp(-a)) * b\n")
        served = python_kernel.program(build, file, file.read_text(), "numpy", signature.all_of(build.program)["swiglu"],
                                       {"forward": "swiglu"}, pathlib.Path(self.folder))
        done = subprocess.run([build.program, "check", "--impl-from", served, "--quick", "--dtype", "f32", "--json", f"{self.folder}/check.jsonl"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_a_file_that_does_not_import(self):
        code, said = self.tried_python("import no_such_module\ndef swiglu(a, b):\n    return a\n")
        self.assertEqual(code, 4, said)
        self.assertIn("has no no_such_module; TIGON_PYTHON chooses another interpreter", said)

    def test_a_file_without_a_function(self):
        code, said = self.tried_python("def other():\n    pass\n", "--op", "swiglu")
        self.assertEqual(code, 2, said)
        self.assertIn("def swiglu(...)", said)

    def test_bad_usage(self):
        for words, what in ((["nothing.cu"], "nothing.cu: No such file"), (["x.cu", "--op", "rms"], "no op 'rms'"),
                            (["a.txt"], "a.txt: neither CUDA (.cu) nor Python (.py)")):
            (pathlib.Path(self.folder) / "x.cu").write_text("")
            code, said = tigon_try(*words, folder=self.folder)
            self.assertEqual(code, 2, said)
            self.assertIn(what, said)
            self.assertEqual(len(said.strip().splitlines()), 1)

    def test_the_machine_is_the_one_that_was_timed(self):
        def ran_on(kind, name):
            return judge.Outcome("r", {"device": {"kind": kind, "name": name}, "host": {"os": "Debian 12"}})
        both = types.SimpleNamespace(outcomes=[ran_on("host", "Xeon"), ran_on("cuda", "H200")])
        self.assertEqual(show.machine(both), "H200 (GPU) and Xeon (host executor), Debian 12")
        self.assertEqual(show.machine(types.SimpleNamespace(outcomes=both.outcomes[:1])), "Xeon (host executor), Debian 12")
        self.assertEqual(show.machine(types.SimpleNamespace(outcomes=[])), "?")


if __name__ == "__main__":
    unittest.main()
