# SPDX-License-Identifier: Apache-2.0
"""Rewriting of CUDA source for the host executor, and finding what that does not run."""
import os
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
for part in ("harness/try", "harness/trees", "reports"):
    sys.path.insert(0, str(ROOT / part))

from tigon_try import compiler, signature, source  # noqa: E402


class Launches(unittest.TestCase):
    def rewritten(self, text):
        return " ".join(source.for_host(text).split())

    def test_a_launch(self):
        self.assertEqual(self.rewritten("k<<<g, 256>>>(a, b);"), "::tigon::tried::configured(g, 256).of(k)(a, b);")

    def test_template_and_namespace(self):
        self.assertEqual(self.rewritten("if (x) n::k<T, f(a < b)><<<dim3(a, b), t, 0, s>>>();"),
                         "if (x) ::tigon::tried::configured(dim3(a, b), t, 0, s).of(n::k<T, f(a < b)>)();")

    def test_lines_stay(self):
        text = "a\nk<P>\n  <<<g,\n     b>>>(x);\n// k<<<1, 1>>>()\n__shared__ float a[2],\n b;\nlast"
        new = source.for_host(text).split("\n")
        self.assertEqual(len(new), len(text.split("\n")))
        self.assertEqual((new[0], new[4], new[-1]), ("a", "// k<<<1, 1>>>()", "last"))

    def test_not_a_launch(self):
        with self.assertRaises(source.NotCuda) as caught:
            source.for_host("\n\nk<<<1, 1;")
        self.assertEqual(caught.exception.line, 3)


class SharedMemory(unittest.TestCase):
    def test_arrays(self):
        new = source.for_host("__shared__ __align__(16) Piece<T, 4> a[2][3], b;")
        self.assertIn("auto& a = ::tigon::tried::shared<Piece<T, 4> [2][3]>(a_site)", new)
        self.assertIn("auto& b = ::tigon::tried::shared<Piece<T, 4> >(b_site);", new)

    def test_dynamic(self):
        self.assertEqual(source.for_host("extern __shared__ unsigned char tile[];"),
                         "unsigned char* tile = static_cast<unsigned char*>(::tigon::simt::dynamic_shared());")


class NotOnTheHost(unittest.TestCase):
    def test_lines_and_comments(self):
        found = source.not_on_host('// asm\n"asm"\nasm volatile("x");\n#include <cuda_bf16.h>\n')
        self.assertEqual([line for line, _ in found], [3, 4])


class Signatures(unittest.TestCase):
    def test_every_op_has_launchers(self):
        build = compiler.Build(ROOT, os.environ.get("TIGON_TRY_BUILD") or ROOT / "build/host")
        known = signature.all_of(build.program)
        ops = {path.stem for path in ROOT.glob("kernels/*/*.cu") if path.stem == path.parent.name}
        self.assertEqual(set(known), {op for op in ops if not op.startswith("vocab_parallel_")})
        for of_op in known.values():
            header = (ROOT / of_op.header).read_text()
            for name in of_op.passes:
                self.assertIn(" ".join(of_op.declaration(name).split()), " ".join(header.split()))

    def test_the_op_that_is_included(self):
        self.assertEqual(signature.included_op('#include "kernels/rope/rope.h"\n'), "rope")
        self.assertIsNone(signature.included_op('#include "kernels/device/launch.h"\n'))


if __name__ == "__main__":
    unittest.main()
