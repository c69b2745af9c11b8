# SPDX-License-Identifier: Apache-2.0
"""Tests of tigon gate --bits: two made-up trees, exit codes and records. Run: python3 ci/tests/test_bits.py"""
import contextlib
import ctypes
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import numpy

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "ci"), str(ROOT / "reports"), str(ROOT / "harness/trees")]

from tigon_gate import __main__ as program  # noqa: E402
from tigon_gate import first_algorithm  # noqa: E402
from tigon_report import command, records, schema  # noqa: E402

# A tigon that knows the cases of a file beside it: {id: {"verdict", "reason", "tensors": {name: [what, dtype, [value...]]}}}.
# A list of values of that form in place of one stands for the runs of the program, in turns.
FAKE_PROGRAM = """#!{python}
import json, pathlib, struct, sys
here = pathlib.Path(__file__)
cases = json.loads(here.with_suffix(".json").read_text())
if sys.argv[1] == "list":
    print("op pass implementation dtypes axes")
    for case in cases:
        print(*case.split("/")[:4], "T H")
    sys.exit(0)
of = lambda option: [sys.argv[i + 1] for i, word in enumerate(sys.argv) if word == option]
turns = here.with_suffix(".turns")
turn = int(turns.read_text()) if turns.exists() else 0
turns.write_text(str(turn + 1))
known = [case for case in cases if case in of("--case") or not of("--case") and case.split("/")[::3][:2] == of("--op") + of("--dtype")]
types = {{"f32": "<f4", "bf16": "<u2"}}

def save(file, dtype, values):
    header = repr({{"descr": types[dtype], "fortran_order": False, "shape": (len(values),)}}).ljust(117) + "\\n"
    data = struct.pack(f"<{{len(values)}}{{'f' if dtype == 'f32' else 'H'}}", *values)
    file.write_bytes(b"\\x93NUMPY\\x01\\x00" + struct.pack("<H", len(header)) + header.encode() + data)

with open(of("--json")[0], "w") as file:
    def record(kind, **fields):
        print(json.dumps(dict(fields, record=kind, run_id="20260101T000000Z-00000000")), file=file)
    record("run", device=dict(kind="host"), host=dict(name="made up"),
           tool=dict(commit="commit of " + here.name))
    for number, case in enumerate(known):
        one = cases[case]
        names = dict(zip(("op", "pass", "impl", "dtype"), case.split("/")))
        record("check", **names, case_id=case, case_key=str(number), executor="fast", verdict=one.get("verdict", "passed"),
               reason=one.get("reason", ""))
        tensors = []
        for name, (what, dtype, values) in one.get("tensors", {{}}).items():
            if isinstance(values[0], list):
                values = values[turn % len(values)]
            folder = pathlib.Path(of("--save")[0]) / str(number)
            folder.mkdir(parents=True, exist_ok=True)
            save(folder / f"{{name}}.{{what}}.npy", dtype, values)
            tensors.append({{"name": name, "dtype": dtype, "files": {{what: f"{{name}}.{{what}}.npy"}}}})
        if tensors:
            (folder / "manifest.json").write_text(json.dumps({{"case_id": case, "tensors": tensors}}))
    if {ends}:
        record("end")
sys.exit({code})
"""

X = ["input", "f32", [1.0, 2.0]]
SAME = "rope/forward/fused/f32/T=1,H=2,inputs=normal,seed=42"
OTHER = "rope/backward/fused/f32/T=1,H=2,inputs=normal,seed=42"
NEW = "softmax/forward/fused/bf16/T=1,H=2,inputs=normal,seed=42"


def ran(*values, dtype="f32", **more):
    """A case that was run, with one output."""
    return {"tensors": {"x": X, "y": ["output", dtype, list(values)]}, **more}


class BitsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def program(self, name, cases, ends=True, code=0):
        path = self.folder / name
        path.write_text(FAKE_PROGRAM.format(python=sys.executable, ends=ends, code=code))
        path.with_suffix(".json").write_text(json.dumps(cases))
        path.chmod(0o755)
        return str(path)

    def gate(self, base, head, *words, **changed):
        """(exit code, stdout, stderr, records of kind bits) of a gate of two programs that know these cases."""
        file = self.folder / "records.jsonl"
        words = ["--bits", "--base-program", self.program("base", base), "--head-program",
                 self.program("head", head, **changed), "--json", str(file), *words]
        out, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors), \
                mock.patch.dict(os.environ, {"TIGON_DEVICE": "host"}):
            code = command.run("gate", program.main, words)
        lines = [line.record for line in records.read_file(file)] if file.exists() else []
        found = [line for line in lines if line["record"] == "bits"]
        self.assertEqual([wrong for line in found if (wrong := schema.violation(line))], [])
        return code, out.getvalue(), errors.getvalue(), found

    def test_equal(self):
        cases = {SAME: ran(1.0, float("nan")), OTHER: ran(3.0, -0.0)}
        code, out, errors, found = self.gate(cases, cases)
        self.assertEqual((code, out.splitlines()[-1]), (0, "2 passed, 0 failed, 0 skipped"), errors)
        self.assertEqual([(r["pass"], r["cases"], r["outputs"], r["equal"]) for r in found if r["scope"] == "group"],
                         [("backward", 1, 1, 1), ("forward", 1, 1, 1)])
        self.assertEqual([found[-1][key] for key in ("exit_code", "base_commit", "head_commit")], [0, "commit of base", "commit of head"])

    def test_one_bit_is_found(self):
        other = float(numpy.nextafter(numpy.float32(3), numpy.float32(4)))
        code, out, _, found = self.gate({SAME: ran(1.0, 2.0), OTHER: ran(3.0, 0.0)}, {SAME: ran(1.0, 2.0), OTHER: ran(3.0, -0.0)})
        self.assertEqual(code, 1)
        self.assertIn(f"different: {OTHER}: output y[1]: 0 (0x00000000) became -0 (0x80000000); 1 of 2 elements", out)
        self.assertEqual(out.splitlines()[-1], "1 passed, 1 failed, 0 skipped")
        case = next(r for r in found if r["scope"] == "case")
        self.assertEqual((case["case_id"], case["outcome"], case["differences"][0]["elements"]), (OTHER, "different", 1))
        code, out, _, _ = self.gate({SAME: ran(3.0)}, {SAME: ran(other)})
        self.assertIn("output y[0]: 3 (0x40400000) became 3.00000024 (0x40400001)", out)

    def test_bf16_is_shown_as_a_number(self):
        code, out, _, _ = self.gate({NEW: ran(0x3F80, dtype="bf16")}, {NEW: ran(0x3F81, dtype="bf16")})
        self.assertEqual(code, 1)
        self.assertIn("1 (0x3f80) became 1.0078125 (0x3f81)", out)

    def test_what_one_tree_lacks_is_listed(self):
        skipped = {"verdict": "unsupported", "reason": "not built for this dtype"}
        code, out, errors, found = self.gate({SAME: ran(1.0), OTHER: skipped}, {SAME: ran(1.0), OTHER: ran(2.0), NEW: ran(1, dtype="bf16")})
        self.assertEqual((code, out.splitlines()[-1]), (0, "1 passed, 0 failed, 2 skipped"), errors)
        self.assertIn(f"head only: {OTHER}: base: unsupported: not built for this dtype; head: passed", out)
        self.assertIn(f"head only: {NEW}: base: no such case; head: passed", out)
        code, out, _, _ = self.gate({SAME: ran(1.0), OTHER: ran(2.0)}, {SAME: ran(1.0), OTHER: skipped})
        self.assertIn(f"base only: {OTHER}: base: passed; head: unsupported", out)
        code, out, _, found = self.gate({SAME: ran(1.0), OTHER: skipped}, {SAME: ran(1.0), OTHER: skipped})
        self.assertIn(f"not run: {OTHER}: unsupported: not built for this dtype", out)
        self.assertEqual([r["not_run"] for r in found if r["scope"] == "group"], [1, 0])

    def test_a_crash_in_one_tree_is_a_difference(self):
        code, out, _, _ = self.gate({SAME: ran(1.0), OTHER: ran(1.0)}, {SAME: ran(1.0), OTHER: {"verdict": "crashed", "reason": "signal 11"}})
        self.assertEqual(code, 1)
        self.assertIn(f"different: {OTHER}: base: passed; head: crashed: signal 11", out)

    def test_other_inputs_and_other_tensors_are_differences(self):
        code, out, _, _ = self.gate({SAME: ran(1.0)}, {SAME: {"tensors": {"x": ["input", "f32", [1.0, 3.0]], "y": ["output", "f32", [1.0]]}}})
        self.assertEqual(code, 1)
        self.assertIn("the trees make different inputs; input x[1]: 2 ", out)
        code, out, _, _ = self.gate({SAME: ran(1.0)}, {SAME: {"tensors": {"x": X, "z": ["output", "f32", [1.0]]}}})
        self.assertEqual(code, 1)
        self.assertIn("only one tree has tensor y, z", out)
        code, out, _, _ = self.gate({SAME: ran(1.0)}, {SAME: ran(1.0, 2.0)})
        self.assertEqual(code, 1)
        self.assertIn("output y (type and shape): f32 [1] became f32 [2]", out)

    def test_what_differs_by_chance_is_neither_equal_nor_different(self):
        wavers = ran([1.0], [2.0])
        for base, head in ((wavers, ran(3.0)), (ran(1.0), ran([2.0], [1.0]))):
            for name in ("base", "head"):
                (self.folder / name).with_suffix(".turns").unlink(missing_ok=True)
            code, out, _, found = self.gate({SAME: base}, {SAME: head})
            self.assertEqual((code, out.splitlines()[-1]), (6, "0 passed, 0 failed, 1 skipped"), out)
            self.assertIn(f"not deterministic: {SAME}: output y[0]: ", out)
            self.assertEqual(found[0]["not_deterministic"], 1)
        code, _, _, _ = self.gate({SAME: ran(3.0)}, {SAME: wavers})  # it never gives the base's bytes
        self.assertEqual(code, 1)

    def test_selection(self):
        cases = {SAME: ran(1.0), NEW: ran(1, dtype="bf16")}
        for words in (["--op", "rope"], ["--dtype", "f32"], ["--case", SAME]):
            code, out, errors, _ = self.gate(cases, cases, *words)
            self.assertEqual((code, out.splitlines()[-1]), (0, "1 passed, 0 failed, 0 skipped"), errors)

    def test_nothing_to_compare(self):
        code, _, errors, _ = self.gate({SAME: ran(1.0)}, {NEW: ran(1, dtype="bf16")})
        self.assertEqual((code, len(errors.strip().splitlines())), (4, 3), errors)
        self.assertIn("no case ran in both trees", errors)

    def test_a_program_that_does_not_end_is_infrastructure(self):
        code, _, errors, _ = self.gate({SAME: ran(1.0)}, {SAME: ran(1.0)}, ends=False, code=7)
        self.assertEqual(code, 5)
        self.assertIn("exit code 7", errors.splitlines()[-1])

    def test_usage(self):
        for words in (["--bits"], ["--bits", "--aa"], ["--aa", "--dtype", "f32"], ["--bits", "--base", "x", "--dtype", "f64"],
                      ["--bits", "--base-program", self.program("base", {SAME: {}}), "--head-program",
                       self.program("head", {SAME: {}}), "--op", "swigloo"]):
            errors = io.StringIO()
            with contextlib.redirect_stderr(errors), mock.patch.dict(os.environ, {"TIGON_DEVICE": "host"}):
                code = command.run("gate", program.main, words)
            self.assertEqual((code, len(errors.getvalue().strip().splitlines())), (2, 1), f"{words}: {errors.getvalue()}")


CUBLASLT = """
int cublasLtMatmulAlgoGetHeuristic(void* a, void* b, void* c, void* d, void* e, void* f, void* g, int n, void* r, int* found) {
  *found = n;
  return 0;
}
int cublasLtCreate(void) { return 7; }
"""
CALLER = """
#include <dlfcn.h>
#include <stdio.h>
typedef int heuristic(void*, void*, void*, void*, void*, void*, void*, int, void*, int*);
%s
int main(void) {
  void* library = LIBRARY;
  heuristic* ask = (heuristic*)dlsym(library, "cublasLtMatmulAlgoGetHeuristic");
  int (*create)(void) = (int (*)(void))dlsym(library, "cublasLtCreate");
  int found = 0;
  ask(0, 0, 0, 0, 0, 0, 0, 12, 0, &found);
  printf("%%d %%d\\n", found, create());
  return 0;
}
"""


@unittest.skipUnless(shutil.which("cc"), "no C compiler")
class FirstAlgorithmTest(unittest.TestCase):
    """A library that imitates cuBLASLt, and programs that link it or open it."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "real").mkdir()
        self.real = self.folder / "real/libcublasLt.so.13"
        (self.folder / "versions").write_text("libcublasLt.so.13 { global: cublasLt*; local: *; };")
        self.compile("real.c", CUBLASLT, ["-shared", "-fPIC", f"-Wl,-soname,{self.real.name}",
                                          f"-Wl,--version-script={self.folder / 'versions'}"], self.real)

    def compile(self, name, text, words, out):
        (self.folder / name).write_text(text)
        subprocess.run(["cc", str(self.folder / name), *words, "-o", str(out)], check=True)
        return out

    def caller(self, head, words):
        program = self.compile("caller.c", CALLER % head, words, self.folder / "caller")
        return lambda **more: subprocess.run([str(program)], capture_output=True, text=True, check=True,
                                             env={"LD_LIBRARY_PATH": str(self.real.parent), **more}).stdout.split()

    def test_programs_are_told_of_one_algorithm(self):
        stand_in = first_algorithm.built(self.real, self.folder)
        linked = ("int cublasLtCreate(void);\n#define LIBRARY (cublasLtCreate(), RTLD_DEFAULT)", [str(self.real)])
        opened = ('#define LIBRARY dlopen("libcublasLt.so.13", RTLD_NOW)', [])
        for head, words in (linked, opened):
            call = self.caller(head, ["-D_GNU_SOURCE", *words, "-ldl"])
            self.assertEqual(call(), ["12", "7"])
            self.assertEqual(call(LD_PRELOAD=str(stand_in)), ["1", "7"])

    def test_it_stands_before_the_library_that_is_here(self):
        if (real := first_algorithm.library()) is None:
            self.skipTest("no CUDA toolkit")
        library = ctypes.CDLL(str(first_algorithm.built(real, self.folder)))
        self.assertNotEqual(library.cublasLtGetVersion, None)


if __name__ == "__main__":
    unittest.main()
