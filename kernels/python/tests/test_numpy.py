# SPDX-License-Identifier: Apache-2.0
"""Ops on NumPy arrays, where there is no torch."""
import contextlib
import subprocess
import sys
import types
import unittest
from unittest import mock

import numpy as np
import tigon
from tigon import _native

X = np.random.default_rng(0).standard_normal((6, 16)).astype("float32")


class NumpyTest(unittest.TestCase):
    def test_torch_is_not_imported(self):
        # A torch that cannot be imported is in front of one that can.
        program = """
import sys
sys.modules["torch"] = None
import numpy, tigon
y = tigon.run("softmax.forward", x=numpy.zeros((2, 4), "float32"))["y"]
assert (y == 0.25).all(), y
assert tigon.build_info()["version"] == tigon.__version__
try:
    tigon.ops
except ImportError as error:
    print(error)
"""
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, "tigon.ops needs torch 2.10 or later; without torch, tigon.run takes NumPy arrays\n")

    def test_forward_and_backward(self):
        w, dy = np.full(16, 2, "float32"), np.ones_like(X)
        made = tigon.run("rms_norm.forward", x=X, w=w, eps=1e-6)
        rstd = 1 / np.sqrt((X.astype("float64") ** 2).mean(-1) + 1e-6)
        np.testing.assert_allclose(made["rstd"], rstd, rtol=1e-5)
        np.testing.assert_allclose(made["y"], 2 * X * rstd[:, None], rtol=1e-5)
        gradients = tigon.run("rms_norm.backward", dy=dy, x=X, w=w, rstd=made["rstd"], want=("dw",))
        np.testing.assert_allclose(gradients["dw"], (X * rstd[:, None]).sum(0), rtol=1e-4, atol=1e-5)

    def test_strides_choices_and_what_changes_in_place(self):
        wide = np.ones((6, 40), "float32")
        self.assertEqual(tigon.run("swiglu.forward", a=wide[:, :16], b=np.ones((6, 0), "float32"), layout="gate_first")["y"].shape, (6, 8))
        np.testing.assert_allclose(tigon.run("softmax.forward", x=wide[:, ::2])["y"], np.full((6, 20), 1 / 20), rtol=1e-6)
        before = X.copy()
        made = tigon.run("cross_entropy.backward", logits=X, target=np.zeros(6, "int64"), lse=np.zeros(6, "float32"))
        self.assertTrue((before == X).all() and made["logits_out"].shape == X.shape)

    def test_bfloat16_as_its_bits(self):
        ones = np.full((2, 4), 0x3F80, "uint16")
        self.assertTrue((tigon.run("softmax.forward", x=ones)["y"] == 0x3E80).all())  # 1/4
        with self.assertRaisesRegex(TypeError, "arrays of complex64 have no kernel"):
            tigon.run("softmax.forward", x=ones.astype("complex64"))

    def test_wrong_calls(self):
        for error, text, arguments in (
                (RuntimeError, r"rms_norm.forward: w is \[3\], but its axis 0 must be 16", {"x": X, "w": np.ones(3, "float32")}),
                (TypeError, "rms_norm.forward: x is missing", {"w": np.ones(16, "float32")}),
                (TypeError, "rms_norm.forward takes no speed; it takes casting, eps, offset, w, x", {"x": X, "speed": 1}),
                (ValueError, "casting is 'other', but must be one of llama, gemma, none", {"x": X, "casting": "other"}),
                (TypeError, "nothing to want is called dw; there are none", {"x": X, "want": ("dw",)})):
            with self.subTest(text=text), self.assertRaisesRegex(error, text):
                tigon.run("rms_norm.forward", **arguments)
        with self.assertRaisesRegex(LookupError, "no op is called other"):
            tigon.run("other", x=X)
        with self.assertRaisesRegex(LookupError, "has no kernel for f64, only for f32, bf16, f16"):
            tigon.run("softmax.forward", x=X.astype("float64"))


class Array(np.ndarray):
    """As CuPy's arrays are, but in the memory of the host."""
    device = types.SimpleNamespace(id=3)

    @property
    def data(self):
        return types.SimpleNamespace(ptr=self.ctypes.data if self.size else 0)


class CuPy(types.ModuleType):
    """What a call asks of CuPy."""

    def __init__(self):
        super().__init__("cupy")
        self.devices = []
        self.cuda = types.SimpleNamespace(Device=self.device, get_current_stream=lambda: types.SimpleNamespace(ptr=77))

    def device(self, number):
        self.devices.append(number)
        return contextlib.nullcontext()

    def asarray(self, a):
        return np.asarray(a).view(Array)

    def empty(self, shape, dtype):
        return np.empty(shape, dtype).view(Array)

    def ascontiguousarray(self, a):
        return np.ascontiguousarray(a).view(Array)


class CuPyTest(unittest.TestCase):
    """Without a GPU: the library for hosts stands for that for GPUs."""

    def setUp(self):
        self.cupy, host = CuPy(), _native.Library(_native.folder() / "libtigon-host.so")
        run, self.streams = host.run, []
        host.run = lambda op, call, stream: (self.streams.append(stream), run(op, call))
        for patch in (mock.patch.dict(sys.modules, cupy=self.cupy), mock.patch.object(_native, "cuda", lambda: host),
                      mock.patch.object(Array, "__module__", "cupy")):
            patch.start()
            self.addCleanup(patch.stop)

    def test_it_runs_on_the_arrays_device_and_the_current_stream(self):
        made = tigon.run("rms_norm.forward", x=X.view(Array), w=np.full(16, 2, "float32"))
        self.assertEqual((self.streams, self.cupy.devices), ([77], [3]))
        self.assertEqual({type(a) for a in made.values()}, {Array})
        self.assertTrue((np.asarray(made["y"]) == tigon.run("rms_norm.forward", x=X, w=np.full(16, 2, "float32"))["y"]).all())

    def test_an_array_without_elements_is_there(self):
        made = tigon.run("swiglu.forward", a=X.view(Array), b=np.ones((6, 0), "float32").view(Array), layout="gate_first")
        self.assertEqual(made["y"].shape, (6, 8))

    def test_a_package_without_the_library_says_so(self):
        with mock.patch.object(_native, "cuda", lambda: None), self.assertRaisesRegex(RuntimeError, "built without the library for CUDA"):
            tigon.run("softmax.forward", x=X.view(Array))


if __name__ == "__main__":
    unittest.main()
