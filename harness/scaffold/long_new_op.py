#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A new op from scaffold to green and red and out again, in a copy of the tree.

  long_new_op.py BUILD    the build folder whose libraries the op is linked with

The copy is configured and compiles what is new; the program is the build's `tigon`, linked once more with that.
"""

import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv.pop()).resolve() if len(sys.argv) > 1 else ROOT / "build" / "host"
NAME = "scaffolded_norm"
COMMAND = f"new-op {NAME} --axes T,H --inputs x:T,H w:H --outputs y:T,H".split()

# From rms_norm: the oracle and its gemma casting, each thread adding up the row for itself.
ORACLE = """
  const auto x = array(args.x);
  for (int64_t t = 0; t < x.rows(); ++t)
    array(args.y).row(t) = x.row(t) / std::sqrt(x.row(t).square().mean() + 1e-6) * array(args.w);
"""
VALUE = """const auto* x = args.x.data + row * args.x.stride[0];
    float sum = 0;
    for (int64_t k = 0; k < args.x.shape[1]; ++k) sum += to_float(load(x + k)) * to_float(load(x + k));
    const float rstd = 1.0f / sqrtf(sum / static_cast<float>(args.x.shape[1]) + 1e-6f);
    const float value = to_float(load(x + i)) * rstd * to_float(load(args.w.data + i));"""


def run(*words, cwd):
    return subprocess.run([str(word) for word in words], cwd=cwd, capture_output=True, text=True)


class Tree(unittest.TestCase):
    """A copy of the tree, and programs of the build with an op that only the copy has."""

    name = NAME

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.tree = self.folder / "tree"
        for name in run("git", "ls-files", "-co", "--exclude-standard", cwd=ROOT).stdout.splitlines():
            if name.startswith("reports/recorded") or not (ROOT / name).is_file():
                continue
            (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, self.tree / name)

    def must(self, *words, cwd=None):
        done = run(*words, cwd=cwd or self.tree)
        self.assertEqual(done.returncode, 0, f"{words}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
        return done.stdout

    def configure(self):
        """Each file is an object of its own, so that one can be taken alone."""
        self.must("cmake", "--preset", "host", "-DTIGON_TESTS=OFF", "-DTIGON_UNITY=OFF")

    def edit(self, path, *changes):
        file = self.tree / path
        text = file.read_text()
        for old, new in changes:
            self.assertIn(old, text, path)
            text = text.replace(old, new)
        file.write_text(text)

    def program(self, name="tigon"):
        """A program with the op: the build's own link command, with what the copy compiled before its libraries."""
        op = self.name
        objects = [f"kernels/CMakeFiles/tigon_{op}_host.dir/__/host_sources/kernels/{op}/{op}.cu.cpp.o"]
        objects += ["kernels/call/CMakeFiles/tigon_call.dir/registry.cpp.o"]
        objects += [f"harness/CMakeFiles/tigon_contracts.dir/{part}.cpp.o" for part in (f"ops/{op}", "manifest")]
        build = self.tree / "build" / "host"
        self.must("ninja", "-C", build, *objects)
        link = self.must("ninja", "-C", BUILD, "-t", "commands", f"bin/{name}").splitlines()[-1]
        words = shlex.split(link[link.index("&&") + 2 : link.rindex("&&")])
        words = [word for word in words if word != "ccache"]
        program = self.folder / name
        words[words.index("-o") + 1] = str(program)
        words[1:1] = [str(build / name) for name in objects]
        self.must(*words, cwd=BUILD)
        return program


class NewOp(Tree):
    def check(self, program):
        shutil.rmtree(self.folder / "run", ignore_errors=True)
        return run(
            *[program, "check", "--op", NAME, "--executor", "fast", "--quick", "--out", self.folder / "run"], cwd=self.folder
        )

    def test_scaffold_green_red_and_gone(self):
        before = (self.tree / "CMakeLists.txt").read_text()
        self.must("./tigon", *COMMAND)
        again = run("./tigon", *COMMAND, cwd=self.tree)
        self.assertEqual(again.returncode, 2)
        self.assertIn("is there already", again.stderr)
        if shutil.which("clang-format-14"):
            written = [f"kernels/{NAME}/{NAME}.h", f"kernels/{NAME}/{NAME}.cu", f"reference/{NAME}.h"]
            self.must("clang-format-14", "--dry-run", "--Werror", *written, f"harness/ops/{NAME}.cpp")
        self.configure()

        unwritten = self.check(self.program())
        self.assertNotEqual(unwritten.returncode, 0)
        self.assertIn(f"oracle not written: reference/{NAME}.h", unwritten.stdout)
        self.assertRegex(unwritten.stdout, r"\n  \d\d+ more fail alike: oracle not written")
        self.assertLess(len(unwritten.stdout.splitlines()), 30)

        self.edit(
            f"reference/{NAME}.h",
            (f'  throw std::logic_error("oracle not written: reference/{NAME}.h");\n', ORACLE),
            ("void forward(const Forward<P>&) {", "void forward(const Forward<P>& args) {"),
            ("#include <stdexcept>", "#include <cmath>"),
        )
        kernel = f"kernels/{NAME}/{NAME}.cu"
        self.edit(kernel, ("const float value = 0.0f;", VALUE))
        self.edit(f"harness/ops/{NAME}.cpp", ("add_nonfinite(&sets, {\"x\"});", 'add_nonfinite(&sets, {"x"}, 1e17);'))
        green = self.check(self.program())
        self.assertEqual(green.returncode, 0, green.stdout[-3000:] + green.stderr)
        self.assertRegex(green.stdout, r"[1-9]\d+ passed, 0 failed")

        self.edit(kernel, ("k < args.x.shape[1]", "k + 1 < args.x.shape[1]"))  # the last column is not in the sum
        red = self.check(self.program())
        self.assertEqual(red.returncode, 1, red.stdout[-3000:])
        self.assertIn("incorrect_numerical", red.stdout)

        self.must("./tigon", "new-op", NAME, "--remove")
        self.assertEqual((self.tree / "CMakeLists.txt").read_text(), before)
        left = [path for path in self.tree.rglob(f"*{NAME}*") if "build" not in path.relative_to(self.tree).parts]
        self.assertEqual(left, [])

    def test_what_is_wrong_is_one_line(self):
        for words, says in (
            ("Norm --axes T --inputs x:T --outputs y:T", "is not a name of an op"),
            ("my_op", "--axes is needed"),
            ("my_op --axes T,T", "--axes takes different capital letters"),
            ("my_op --axes= --inputs x:T", "--axes takes different capital letters"),
            ("my_op --axes T,H --inputs x:T,H", "has --inputs and --outputs"),
            ("my_op --axes T,H --inputs x:T,Q --outputs y:T", "axis Q is not in --axes"),
            ("my_op --axes T,H --inputs x:T --outputs y:T,H", "axis H is of no input"),
            ("my_op --axes T,H --inputs w:H x:T,H --outputs y:T", "first input"),
            ("my_op --axes T,H --inputs x --outputs y:T", "not a tensor"),
            ("my_op --axes T,H --inputs errno:T,H --outputs y:T,H", "'errno' is a word of C++"),
            ("my_op --axes T,H --inputs x:T,H --outputs stdin:T,H", "'stdin' is a word of C++"),
            ("my_op --axes T,H --inputs EOF:T,H --outputs y:T,H", "not a tensor"),
            ("rms_norm --axes T,H --inputs x:T,H --outputs y:T,H", "is there already"),
            ("double", "'double' is a word of C++; take another name"),
            ("errno", "'errno' is a word of C++; take another name, e.g. my_errno"),
            ("assert", "'assert' is a word of C++"),
            ("EOF", "is not a name of an op"),
            ("nosuch --remove", "there is no op nosuch"),
            ("double --axes T,H --inputs x:T,H --outputs y:T,H", "'double' is a word of C++; take another name, e.g. my_double"),
            ("size_t --axes T,H --inputs x:T,H --outputs y:T,H", "'size_t' is a word of C++; take another name, e.g. my_size"),
            ("std --axes T,H --inputs x:T,H --outputs y:T,H", "'std' is a word of C++"),
            ("norm --axes T,H --inputs x:T,H --outputs y:T,H", "'norm' is used already in kernels/norm; take another name"),
            ("sigmoid --axes T,H --inputs x:T,H --outputs y:T,H", "'sigmoid' is used already in kernels/device/math.h"),
            ("my_norm --axes T,H --inputs new:T,H --outputs y:T,H", "'new' is a word of C++"),
        ):
            done = run("./tigon", "new-op", *words.split(), cwd=self.tree)
            self.assertEqual(done.returncode, 2, words)
            self.assertIn(says, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)


if __name__ == "__main__":
    unittest.main()
