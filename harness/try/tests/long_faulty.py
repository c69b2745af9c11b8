# SPDX-License-Identifier: Apache-2.0
"""tigon mutants --faults FILE --in SOURCE: faults in a file for `tigon try` and in a plug-in's source."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = pathlib.Path(os.environ.get("TIGON_TRY_BUILD") or ROOT / "build/host")

NO_EPS = """
fault: mine.no_eps
what: eps is left out
on: rms_norm forward
file: {file}
expression:
- args.eps
+ 0.0f
"""
NO_BARRIER = """
fault: mine.no_barrier
what: a barrier is missing
on: rms_norm forward
group: memory_sync
file: {file}
statement:
- __syncthreads();
"""
NOTHING = """
fault: mine.nothing
what: an addition is written in another way
on: rms_norm forward
file: {file}
expression:
- squares += v * v
+ squares = squares + v * v
"""


class Faulty(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def take(self, example, name):
        """An example as a file of the user's."""
        (self.folder / name).write_text((ROOT / example).read_text())

    def mutants(self, faults, name, *words):
        """(exit code, {(fault, executor): outcome}, stderr) of these faults in that file."""
        (self.folder / "mine.faults").write_text("".join(faults).format(file=name))
        records = self.folder / "records.jsonl"
        records.unlink(missing_ok=True)
        done = subprocess.run([BUILD / "bin/tigon", "mutants", "--faults", "mine.faults", "--in", name, "--dtype", "bf16", "--json", records, *words],
                              capture_output=True, text=True, check=False, cwd=self.folder, env={**os.environ, "CXXFLAGS": "-DMINE"})
        lines = map(json.loads, records.read_text().splitlines()) if records.exists() else []
        return done.returncode, {(r["mutant"], r["executor"]): r["outcome"] for r in lines if r["record"] == "mutant"}, done.stderr

    def refused(self, code, what, *words):
        found, outcomes, said = self.mutants(*words)
        self.assertEqual((found, outcomes), (code, {}), said)
        self.assertIn(what, said)
        self.assertEqual(len([line for line in said.splitlines() if "building" not in line]), 1, said)

    def test_a_tried_file(self):
        self.take("harness/try/examples/rms_norm_right.cu", "faulty_tried.cu")
        code, outcomes, said = self.mutants([NO_EPS, NO_BARRIER, NOTHING], "faulty_tried.cu")
        self.assertEqual(code, 1, said)
        self.assertEqual(outcomes, {("mine.no_eps", "fast"): "caught", ("mine.no_barrier", "checked"): "caught",
                                    ("mine.nothing", "fast"): "survived"}, said)

    def test_a_plugin(self):
        self.take("harness/plugin/examples/rms_norm_cpu.cpp", "faulty_plugin.cpp")
        shutil.copy(ROOT / "kernels/call/tigon.h", self.folder)
        (self.folder / "rms_norm_call.h").write_bytes(subprocess.run([BUILD / "bin/tigon", "describe", "rms_norm", "--call"],
                                                                     capture_output=True, check=True).stdout)
        with (self.folder / "faulty_plugin.cpp").open("a") as file:
            file.write("#ifndef MINE\n#error CXXFLAGS are not those of the user\n#endif\n")
        code, outcomes, said = self.mutants([NO_EPS], "faulty_plugin.cpp")
        self.assertEqual((code, outcomes), (0, {("mine.no_eps", "fast"): "caught"}), said)
        no_kernel = NO_EPS.replace("rms_norm forward", "swiglu forward")
        self.refused(2, "mine.faults:2: mine.no_eps: faulty_plugin.cpp has no swiglu forward", [no_kernel], "faulty_plugin.cpp")

    def test_a_text_that_is_not_there_once(self):
        self.take("harness/try/examples/rms_norm_right.cu", "faulty_text.cu")
        self.refused(2, "mine.faults:6: mine.no_eps: its text is not in faulty_text.cu; it must be there once",
                     [NO_EPS.replace("args.eps", "args.epsilon")], "faulty_text.cu")
        self.refused(2, "mine.faults:6: mine.no_eps: its text is 4 times in faulty_text.cu; it must be there once: add '='",
                     [NO_EPS.replace("args.eps", "rstd")], "faulty_text.cu")

    def test_what_cannot_be_built(self):
        self.take("harness/try/examples/rms_norm_right.cu", "faulty_build.cu")
        line = 1 + next(k for k, text in enumerate((self.folder / "faulty_build.cu").read_text().splitlines()) if "args.eps" in text)
        self.refused(5, f"faulty_build.cu with mine.no_eps cannot be built: faulty_build.cu:{line}:",
                     [NO_EPS.replace("0.0f", "nowhere")], "faulty_build.cu")
        for text, what in (("#include <cuda_bf16.h>\n", "2: the host executor does not run CUDA's 16-bit types"), ("int i = x;\n", "2:9: error: ")):
            (self.folder / "faulty_build.cu").write_text(f'#include "kernels/rms_norm/rms_norm.h"\n{text}float e = args.eps;\n')
            self.refused(5, f"faulty_build.cu cannot be built: faulty_build.cu:{what}", [NO_EPS], "faulty_build.cu")

    def test_sources_that_have_no_faults(self):
        (self.folder / "mine.py").write_text("")
        self.refused(2, "--in mine.py: faults are planted in CUDA and C++ (.cu, .cpp)", [NO_EPS], "mine.py")
        self.refused(2, "--in nothing.cu: no such file", [NO_EPS], "nothing.cu")
        (self.folder / "mine.cpp").write_text("int f() { return args.eps; }\n")
        self.refused(2, "--in mine.cpp: neither a file for ./tigon try, ", [NO_EPS], "mine.cpp")


if __name__ == "__main__":
    unittest.main()
