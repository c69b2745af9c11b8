# SPDX-License-Identifier: Apache-2.0
"""tigon mutants --sample: the mutation operators, and the fault files that they make. Run: python3 harness/mutants/tests/test_sample.py"""
import argparse
import pathlib
import re
import sys
import tempfile
import types
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "harness/mutants"))
from tigon_mutants import fault_file, files  # noqa: E402
from tigon_mutants.__main__ import number_for_each, sharing  # noqa: E402
from tigon_mutants.operators import Operators  # noqa: E402
from tigon_mutants.source import Source  # noqa: E402


def mutants(text, gpu=False):
    """{(operator, old, new)} of a source."""
    source = Source("kernels/a/a.h", text, gpu)
    return {(m.operator, text[m.begin:m.end], m.replacement) for m in Operators(source).all()}


class Mutations(unittest.TestCase):
    def test_change_the_whole_expression_around_an_operator(self):
        self.assertIn(("arithmetic", "a * b + c", "a * b - c"), mutants("void f() { x = g(a * b + c, d); }"))
        self.assertIn(("comparison", "i < n", "i <= n"), mutants("void f() { if (i < n && ok) g(); }"))
        self.assertIn(("loop bound", "i < n", "i <= n"), mutants("void f() { for (int i = 0; i < n; ++i) g(); }"))

    def test_know_what_is_special_in_kernels(self):
        found = mutants("void f() {\n  float max = -3.402823466e+38f;\n  __syncthreads();\n  p = x + row * a.stride[0];\n  m = fmaxf(m, v[j]);\n}")
        self.assertIn(("initial value", "-3.402823466e+38f", "0.0f"), found)
        self.assertIn(("barrier", "__syncthreads();", ""), found)
        self.assertIn(("32-bit offset", "row * a.stride[0]", "static_cast<int32_t>(row * a.stride[0])"), found)
        self.assertIn(("minimum", "fmaxf(m, v[j])", "fminf(m, v[j])"), found)
        self.assertIn(("index", "j", "(j) + 1"), found)
        self.assertIn(("dropped statement", "m = fmaxf(m, v[j]);", ""), found)

    def test_casts_are_to_types_that_may_lose_the_value(self):
        found = mutants("void f() { a = static_cast<int>(n / 2) + int64_t{rows} * 2; b = static_cast<int>(blockIdx.x); }")
        self.assertIn(("cast", "static_cast<int>(n / 2)", "static_cast<int>(static_cast<int16_t>(n / 2))"), found)
        self.assertIn(("cast", "int64_t{rows}", "static_cast<int64_t>(static_cast<int32_t>(rows))"), found)
        self.assertIn(("cast", "static_cast<int>(blockIdx.x)", "static_cast<int>(static_cast<int16_t>(blockIdx.x))"), found)
        for text in ("int64_t{-1}", "int64_t{gridDim.x}", "int64_t{kWidth}", "static_cast<int>(threadIdx.x)", "static_cast<int>(blockDim.x / 32)",
                     "static_cast<int64_t>(sizeof(T))"):
            self.assertFalse([m for m in mutants(f"void f() {{ a = {text}; }}") if m[0] == "cast"], text)

    def test_leave_declarations_constants_comments_and_another_device_alone(self):
        for text in ("constexpr int kA = b + 1;", "void f() { float x[kN + 1]; }", "void f() { float x[kN], y[kN + 1], z[kN]; }",
                     "void f() { float x[kN] = {}, y[kN + 1] = {a}, z[kN]; }",
                     "int y = g<kN + 1>(x);", "// a + b", "template <int kN = 3>", "static_assert(a < b);", "#if TIGON_GPU\nint a = b + 1;\n#endif",
                     "#if TIGON_GPU\n#else\nint a = b + 1;\n#endif", "#if !TIGON_GPU\nint a = b + 1;\n#endif"):
            self.assertEqual(mutants(text), set(), text)
        self.assertTrue(mutants("#if TIGON_GPU\nint a = b + 1;\n#endif", gpu=True))

    def test_every_record_has_its_place_once(self):
        text = (ROOT / "kernels/device/exp_sum.h").read_text()
        source = Source("kernels/device/exp_sum.h", text, False)
        faults = [fault_file.Fault(source, m) for m in dict.fromkeys(Operators(source).all())]
        self.assertEqual(len({f.name for f in faults}), len(faults))
        for fault in faults:
            code = "\n".join(line[2:] for line in fault.record(["softmax forward"], {}, None).splitlines() if line[:2] in ("= ", "- "))
            self.assertEqual(fault_file.times(fault_file.words(code), fault_file.words(text)), 1, fault.name)


class Equivalents(unittest.TestCase):
    def read(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "a.equivalent")
            path.write_text(text)
            return fault_file.read_equivalents([path])

    def test_are_found_wherever_the_line_is(self):
        proofs = self.read("file: kernels/a/a.h\n- x = a + b;\n+ x = a - b;\nproof: b is\n  always 0\n")
        for above in ("", "int y;\n"):
            source = Source("kernels/a/a.h", above + "void f() {\n  x = a + b;\n}", False)
            faults = [fault_file.Fault(source, m) for m in Operators(source).all()]
            proven = [f for f in faults if proofs.get((f.file, f.old, f.new))]
            self.assertEqual([f.new for f in proven], ["x = a - b;"])
            self.assertIn("equivalent: all: b is always 0", proven[0].record(["a forward"], {}, proofs[proven[0].file, proven[0].old, proven[0].new]))

    def test_are_of_the_ops_that_they_name(self):
        proofs = self.read("file: kernels/a/a.h\nof: b c e\n- x = a + b;\n+ x = a - b;\nproof: they pass 0\n")
        fault = next(f for f in (fault_file.Fault(s, m) for s in [Source("kernels/a/a.h", "void f() {\n  x = a + b;\n}", False)]
                                 for m in Operators(s).all()) if f.new == "x = a - b;")
        record = fault.record(["b forward", "c forward", "d forward"], {}, proofs[fault.file, fault.old, fault.new])
        self.assertEqual(re.findall("equivalent: .*", record), ["equivalent: b: they pass 0", "equivalent: c: they pass 0"])

    def test_a_record_without_a_proof_is_refused(self):
        self.assertRaisesRegex(ValueError, "no 'proof:'", self.read, "file: kernels/a/a.h\n- a\n+ b\n")

    def test_those_of_the_tree_can_be_read(self):
        for (file, _, _), proof in fault_file.read_equivalents(sorted(ROOT.glob("harness/ops/*.equivalent"))).items():
            self.assertTrue((ROOT / file).exists(), file)
            self.assertGreater(len(proof.text), 30)
            self.assertLessEqual(set(proof.ops), set(files.ops(ROOT)))


class Files(unittest.TestCase):
    def test_of_an_op_are_its_own_and_what_they_include(self):
        paths = files.sources_of(ROOT, "cross_entropy")
        self.assertIn("kernels/loss/rows.cu", paths)
        self.assertIn("kernels/device/exp_sum.h", paths)
        self.assertNotIn("kernels/softmax/softmax.cu", paths)
        self.assertIn("cross_entropy", files.ops(ROOT))

    def test_of_an_op_are_those_of_another_whose_launchers_it_calls(self):
        for op, other, calls in (("vocab_parallel_log_prob", "log_prob", True),
                                 ("vocab_parallel_linear_cross_entropy", "vocab_parallel_cross_entropy", True),
                                 ("linear_log_prob", "log_prob", False), ("vocab_parallel_cross_entropy", "cross_entropy", False)):
            self.assertEqual(f"kernels/{other}/{other}.cu" in files.sources_of(ROOT, op), calls, op)

    def test_of_an_op_are_those_of_its_family_whose_launchers_it_calls(self):
        for op, source, calls in (("cross_entropy", "rows", True), ("cross_entropy", "columns", False), ("linear_cross_entropy", "columns", True),
                                  ("linear_policy", "rows", True), ("linear_policy", "columns", False)):
            self.assertEqual(f"kernels/loss/{source}.cu" in files.sources_of(ROOT, op), calls, op)

    def test_what_ops_share_is_another_ones_too(self):
        every = files.ops(ROOT)
        for path, op, others in (("kernels/loss/rows.cu", "linear_cross_entropy", ["cross_entropy"]),
                                 ("kernels/log_prob/row.h", "linear_log_prob", ["log_prob"]),
                                 ("kernels/log_prob/row.h", "log_prob", ["divergence"]),
                                 ("kernels/geglu/geglu.cu", "geglu", []), ("kernels/device/reduce.h", "softmax", ["add_rms_norm"])):
            self.assertEqual(sharing(types.SimpleNamespace(file=path), op, every, lambda fault, op: True), others, (path, op))

    def test_what_ops_share_is_one_s_that_has_code_of_it(self):
        fault = types.SimpleNamespace(file="kernels/device/reduce.h")
        self.assertEqual(sharing(fault, "softmax", files.ops(ROOT), lambda fault, op: op == "layer_norm"), ["layer_norm"])

    def test_changed_files_have_so_many_mutants_in_all(self):
        for changed, ops, number in ((None, 17, 100), ("main", 1, 100), ("main", 3, 34), ("main", 0, 100)):
            self.assertEqual(number_for_each(argparse.Namespace(sample=100, changed=changed), ops), number, (changed, ops))


if __name__ == "__main__":
    unittest.main()
