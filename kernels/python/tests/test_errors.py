# SPDX-License-Identifier: Apache-2.0
"""What a wrong call is told: one sentence that names what is wrong."""
import os
import subprocess
import sys
import unittest

import tigon
import torch

X, W = torch.randn(2, 3, 16), torch.ones(16)


class ErrorsTest(unittest.TestCase):
    def refused(self, error, text, call):
        with self.assertRaises(error) as caught:
            call()
        self.assertEqual(str(caught.exception), text)

    def test_the_status_is_the_text_of_the_error(self):
        self.refused(RuntimeError, "rms_norm.forward: w is [9], but its axis 0 must be 16: it is H, which is 16 by x (axis 1)",
                     lambda: tigon.ops.rms_norm(X, W[:9]))
        self.refused(RuntimeError, "rms_norm.forward: w is bf16, but must be f32", lambda: tigon.ops.rms_norm(X, W.bfloat16()))
        self.refused(RuntimeError, "rms_norm.forward: w has 2 axes, but must have 1: [H]", lambda: tigon.ops.rms_norm(X, W[None]))
        self.refused(RuntimeError, "softmax.forward: x has 1 axes, but must have 2: [T, V]", lambda: tigon.ops.softmax(W))

    def test_dtypes_without_kernels(self):
        for dtype in (torch.float64, torch.int64, torch.complex64):
            self.refused(RuntimeError, "tigon::softmax_forward: x must be float32, bfloat16 or float16",
                         lambda dtype=dtype: tigon.ops.softmax(X.to(dtype)))

    def test_options_and_extras(self):
        self.refused(ValueError, "casting is 'other', but must be one of llama, gemma, none",
                     lambda: tigon.ops.rms_norm(X, W, casting="other"))
        self.refused(TypeError, "cross_entropy has no extra speed; it has z_part, accuracy, entropy",
                     lambda: tigon.ops.cross_entropy(X, torch.zeros(2, 3, dtype=torch.int64), extras=("speed",)))
        self.refused(ValueError, "activation is 'relu', but must be one of silu, gelu, gelu_tanh", lambda: tigon.ops.gated(X, X, "relu"))
        self.refused(TypeError, "up is missing; without it gate holds both halves, and layout must be gate_first or up_first",
                     lambda: tigon.ops.swiglu(X))
        self.refused(RuntimeError, "rms_norm.forward: the option casting is 7, but must be one of 0 (llama), 1 (gemma), 2 (none)",
                     lambda: torch.ops.tigon.rms_norm_forward(X, W, 1e-6, 0.0, 7))

    def test_an_op_that_there_is_not(self):
        self.refused(AttributeError, "module 'tigon.ops' has no attribute 'nothing'", lambda: tigon.ops.nothing)

    def test_an_error_leaves_no_memory_behind(self):
        for _ in range(3):
            with self.assertRaises(RuntimeError):
                tigon.ops.rms_norm(X, W[:9])
        torch.testing.assert_close(tigon.ops.rms_norm(X, W), torch.nn.functional.rms_norm(X, (16,), W, 1e-6))

    def test_a_package_without_libraries_says_what_to_do(self):
        environment = {**os.environ, "TIGON_PYTHON_LIBRARIES": os.path.dirname(os.path.abspath(__file__))}
        done = subprocess.run([sys.executable, "-c", "import tigon; tigon.build_info()"], env=environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("libtigon-host.so is missing: install the package with pip", done.stderr)


class DocumentsTest(unittest.TestCase):
    def test_every_op_has_a_docstring_of_what_it_takes(self):
        from tigon import _function

        for op in _function.OPS:
            with self.subTest(op=op):
                text, said = getattr(tigon.ops, op).__doc__, tigon.describe(f"{op}.forward")
                self.assertIn(said.formula, text)
                for name in (*(t.name for t in said.arguments), *(o.name for o in said.options)):
                    self.assertRegex(text, rf"(?m)^    {name}[:=]")

    def test_an_op_without_a_function_of_its_own_is_made_from_its_description(self):
        from tigon import _function

        made = _function.generic("add_rms_norm", "tigon.ops")
        h, y = made(X, X, w=W, casting="gemma")
        want = tigon.ops.add_rms_norm(X, X, W, casting="gemma")
        torch.testing.assert_close((h, y), want)
        with self.assertRaisesRegex(TypeError, "unexpected keyword argument 'speed'"):
            made(X, X, speed=1)


if __name__ == "__main__":
    unittest.main()
