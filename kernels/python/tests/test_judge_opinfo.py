# SPDX-License-Identifier: Apache-2.0
"""tigon.judge with operators of torch and the samples of their OpInfos, BackendBench's format."""
import contextlib
import importlib.util
import io
import pathlib
import tempfile
import unittest

from tigon import judge

HAS_SAMPLES = importlib.util.find_spec("expecttest") is not None
LEAKY = """import torch
def leaky_relu_kernel_impl(x, negative_slope=0.01): return torch.where(x > 0, x, x * negative_slope)
"""
ADD = """import torch
def add_kernel_impl(x, other, *, alpha=1): return torch.add(other * alpha, x)
"""
MEAN = """import torch
def mean_kernel_impl(x, dim=None, keepdim=False, *, dtype=None):
    return x.to(dtype).mean(dim, keepdim) if dtype else x.mean(dim, keepdim)
"""


class OperatorTest(unittest.TestCase):
    def judged(self, text, operator, *words):
        """The exit code and what was said."""
        said = io.StringIO()
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(said):
            file = pathlib.Path(folder) / "candidate.py"
            file.write_text(text, encoding="utf-8")
            code = judge.main([str(file), "--reference", operator, *words])
        return code, said.getvalue()

    @unittest.skipUnless(HAS_SAMPLES, "expecttest is not installed, which torch's samples need")
    def test_right_and_wrong_by_samples_with_keywords(self):
        for text, operator in ((LEAKY, "aten.leaky_relu"), (ADD, "aten.add.Tensor"), (MEAN, "aten.mean.dim")):
            with self.subTest(operator=operator):
                code, said = self.judged(text, operator)
                self.assertEqual(code, 0, said)
        for text, operator in ((ADD.replace("other * alpha", "other"), "aten.add.Tensor"), (MEAN.replace(", keepdim)", ", False)"), "aten.mean.dim")):
            with self.subTest(operator=operator):
                code, said = self.judged(text, operator)
                self.assertEqual(code, 1, said)
                self.assertRegex(said, r"^wrong: (a )?sample.*: result: ")

    @unittest.skipUnless(HAS_SAMPLES, "expecttest is not installed, which torch's samples need")
    def test_a_cache_by_pointer(self):
        cached = LEAKY + """kept = {}
right = leaky_relu_kernel_impl
def leaky_relu_kernel_impl(x, **options):
    key = x.data_ptr(), x.shape
    if key not in kept: kept[key] = right(x, **options)
    return kept[key].clone()
"""
        self.assertRegex(self.judged(cached, "aten.leaky_relu.default")[1], "^wrong: a sample again, at the same addresses: result")

    def test_what_is_no_operator(self):
        code, said = self.judged(ADD, "aten.no_such_thing")
        self.assertEqual((code, said.splitlines()[0]), (2, "bad problem: torch has no operator aten.no_such_thing"))

    @unittest.skipIf(HAS_SAMPLES, "expecttest is installed")
    def test_what_samples_need(self):
        code, said = self.judged(ADD, "aten.add.Tensor")
        self.assertEqual((code, said.splitlines()[0]),
                         (5, "not judged: torch's samples of operators need what is not here: No module named 'expecttest'"))


if __name__ == "__main__":
    unittest.main()
