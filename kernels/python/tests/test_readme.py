# SPDX-License-Identifier: Apache-2.0
"""The examples of the page run as they stand there."""
import contextlib
import importlib.util
import io
import pathlib
import re
import unittest

PAGE = pathlib.Path(__file__).parents[1] / "README.md"
OPS, MODEL, CHECK, JAX = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)


class ReadmeTest(unittest.TestCase):
    def test_the_ops(self):
        names = {}
        exec(OPS, names)
        self.assertEqual(names["x"].grad.shape, names["x"].shape)

    @unittest.skipUnless(importlib.util.find_spec("transformers"), "transformers is not installed")
    def test_a_whole_model(self):
        names = {}
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(MODEL, names)
        self.assertEqual(len(printed.getvalue().splitlines()), 4)
        self.assertLess(names["loss"].item(), 4)  # of ln 256 = 5.5

    @unittest.skipUnless(importlib.util.find_spec("jax_tvm_ffi"), "jax_tvm_ffi is not installed")
    def test_jax(self):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(JAX, {})
        self.assertIn("6.9077", printed.getvalue())  # ln 1000

    def test_a_function_is_judged(self):
        exec(CHECK, {})


if __name__ == "__main__":
    unittest.main()
