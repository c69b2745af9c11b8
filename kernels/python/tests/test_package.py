# SPDX-License-Identifier: Apache-2.0
"""What the build installs: a package that is small enough for a wheel, and the layout of Hugging Face's kernels hub."""
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest
import zipfile

from tigon import _native

BUILD = _native.folder().parents[2]
MOST_BYTES = 30 << 20  # of a wheel
# A folder kernels that is no package may lie in the working directory.
HAS_KERNELS = getattr(importlib.util.find_spec("kernels"), "origin", None) is not None

IN_A_KERNEL = """
import pathlib, sys, torch
from kernels import get_local_kernel
kernel = get_local_kernel(pathlib.Path(sys.argv[1]) / "build", backend="cpu")
x, w = torch.randn(3, 16, requires_grad=True), torch.ones(16)
y = kernel.ops.rms_norm(x, w)
torch.testing.assert_close(y, torch.nn.functional.rms_norm(x, [16], w, 1e-6))
y.sum().backward()
assert kernel.build_info()["torch"], kernel.build_info()
"""
IN_A_LAYER = """
import pathlib, sys, torch
from kernels import LocalLayerRepository, Mode, get_local_kernel, kernelize, use_kernel_forward_from_hub, use_kernel_mapping

class Repository(LocalLayerRepository):
    def load(self):  # for the CPU, where torch is one for GPUs, too
        return get_local_kernel(self._repo_path, backend="cpu").layers.RMSNorm

@use_kernel_forward_from_hub("RMSNorm")
class Norm(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.variance_epsilon = torch.nn.Parameter(torch.rand(16)), 1e-3

    def forward(self, hidden_states):
        return self.weight * hidden_states * torch.rsqrt(hidden_states.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)

model, x = torch.nn.Sequential(Norm(), torch.nn.Linear(16, 4)), torch.randn(3, 16, requires_grad=True)
want = torch.autograd.grad(model(x).sum(), (x, model[0].weight))
given, mode = Repository(pathlib.Path(sys.argv[1]) / "build", layer_name="RMSNorm"), Mode.TRAINING | Mode.TORCH_COMPILE
with use_kernel_mapping({"RMSNorm": {"cpu": {mode: given}}}, inherit_mapping=False):
    model = kernelize(model.train(), mode=mode, device="cpu")
assert "ops.rms_norm" in __import__("inspect").getsource(model[0].forward), model[0].forward
torch.testing.assert_close(torch.autograd.grad(model(x).sum(), (x, model[0].weight)), want)
"""
TWICE = """
import pathlib, sys, tigon.ops
from kernels import get_local_kernel
try:
    get_local_kernel(pathlib.Path(sys.argv[1]) / "build", backend="cpu").ops
except ImportError as error:
    assert "another copy of tigon is loaded" in str(error), error
else:
    raise AssertionError("two copies share torch.ops.tigon")
"""


@unittest.skipUnless((BUILD / "cmake_install.cmake").is_file() and shutil.which("cmake"), "the libraries are not in a CMake build")
class PackageTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def install(self, component):
        subprocess.run(["cmake", "--install", BUILD, "--component", component, "--prefix", self.folder], check=True, capture_output=True)
        return sorted(str(f.relative_to(self.folder)) for f in self.folder.rglob("*") if f.is_file())

    def run_python(self, program, **environment):
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", textwrap.dedent(program), self.folder], capture_output=True, text=True,
                              env={**{n: v for n, v in os.environ.items() if not n.startswith("TIGON_")}, **environment}, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_wheel_is_small(self):
        files = self.install("python")
        for name in ("lib/libtigon-host.so", "lib/libtigon_torch.so", "lib/libtigon_tvm_ffi.so", "judge/tigon", "judge/tigon-plugin-host"):
            self.assertIn(f"tigon/{name}", files)
        with zipfile.ZipFile(self.folder / "wheel.zip", "w", zipfile.ZIP_DEFLATED) as wheel:
            for name in files:
                wheel.write(self.folder / name, name)
        self.assertLessEqual((self.folder / "wheel.zip").stat().st_size, MOST_BYTES)
        symbols = subprocess.run(["readelf", "--sections", "--wide", self.folder / "tigon/judge/tigon"], capture_output=True, text=True, check=True)
        self.assertNotIn(".symtab", symbols.stdout)

    def test_the_libraries_need_nothing_that_a_wheel_would_have_to_bring(self):
        # What manylinux says every system has, and torch's own.
        allowed = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libstdc++.so.6", "libgcc_s.so.1",
                   "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "libtorch_cpu.so"}
        libraries = [name for name in self.install("python") if name.startswith("tigon/lib/")]
        self.assertGreaterEqual(len(libraries), 3)
        for name in libraries:
            said = subprocess.run(["readelf", "--dynamic", "--wide", self.folder / name], capture_output=True, text=True, check=True).stdout
            needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", said))
            self.assertTrue(needed, said)
            self.assertEqual(needed - allowed, set(), name)

    def test_the_installed_judge_runs(self):
        self.install("python")
        self.run_python("""
            import tigon.testing, torch
            report = tigon.testing.check(lambda x: torch.softmax(x, -1), "softmax", passes=["forward"], dtypes=["f32"], budget=0.1)
            assert report.passed, report""", TIGON_PROGRAM=str(self.folder / "tigon/judge/tigon"),
                        TIGON_PYTHON_LIBRARIES=str(self.folder / "tigon/lib"))

    def test_the_layout_of_the_hub(self):
        files = self.install("hub")
        variants = {name.split("/")[1] for name in files}
        self.assertEqual(len(variants), 1, files)
        self.assertRegex(variants.pop(), r"^torch-stable-abi210-(cpu|cu\d+)-\w+-linux$")
        ends = {name.split("/", 2)[2] for name in files}
        self.assertLessEqual({"__init__.py", "layers.py", "metadata.json", "lib/libtigon-host.so", "lib/libtigon_torch.so"}, ends)
        self.assertFalse([name for name in files if "__pycache__" in name])

    @unittest.skipUnless(HAS_KERNELS, "kernels is not installed")
    def test_the_hubs_loader_takes_it(self):
        self.install("hub")
        self.run_python(IN_A_KERNEL)
        self.run_python(IN_A_LAYER)
        self.run_python(TWICE, TIGON_PYTHON_LIBRARIES=str(_native.folder()))


if __name__ == "__main__":
    unittest.main()
