# SPDX-License-Identifier: Apache-2.0
"""The worked examples say what their page shows. `long_examples.py --write` writes the page again."""
import importlib.util
import os
import pathlib
import re
import sys
import tempfile
import unittest

from long_try import EXAMPLES, tigon_try

PAGE = EXAMPLES / "README.md"
HEAD = """# What Tigon says about a kernel in one file

A `.cu` file includes the signature of an op, `kernels/OP/OP.h`, and defines the launcher that it declares, in ordinary
CUDA; `workspace()` only if it needs scratch memory. A `.py` file has a function of the op's name (`OP_backward` for
backward). It is called with the tensors and options that its parameters name, which `./tigon describe OP` lists: inputs
by value, outputs to write into. It returns the outputs that it has no parameter for. What an op keeps for backward may
come from `OP_saved`, which is not timed. Tensors are torch's if the file imports torch or triton, else numpy arrays in
float32. Either runs in a process that holds neither the oracle nor results.

What follows each file is what `./tigon try` prints without a GPU, up to the verdict; a test compares it. Seconds, tables
and the block for a pull request are left out. All are judged in bf16, but Triton in f16: in bf16 its interpreter on
a CPU is outside the budget.
"""
EXPECTED = {"rms_norm_right.cu": 0, "rms_norm_tail_fault.cu": 1, "rms_norm_missing_barrier.cu": 1, "rms_norm_reads_too_far.cu": 1,
            "rms_norm_numpy.py": 0, "swiglu_torch.py": 0, "rms_norm_triton.py": 0}
DTYPE = {"rms_norm_triton.py": "f16"}  # in bf16 Triton's interpreter on a CPU is outside the budget
NEEDS = {"rms_norm_numpy.py": "numpy", "swiglu_torch.py": "torch", "rms_norm_triton.py": "triton"}


def missing(name):
    """Why this Python cannot run an example as the page shows it; None when it can."""
    module = NEEDS.get(name)
    if module and not importlib.util.find_spec(module):
        return f"this Python has no {module}"
    if module == "torch" and int(importlib.import_module("torch").__version__.split(".")[0]) < 2:
        return "torch before 2.0 rounds silu of bf16 on a CPU more often than the file declares"
    return None


def comment(file):
    """The sentences that a file begins with."""
    lines = []
    for line in file.read_text().splitlines():
        if not line.startswith(("// ", "# ", "//   ")):
            break
        if "SPDX-License-Identifier" not in line:
            lines.append(line.lstrip("/# "))
    return " ".join(lines)


def said(file, folder):
    """(exit code, what it prints without what depends on the machine)."""
    code, text = tigon_try(file, "--dtype", DTYPE.get(file.name, "bf16"), folder=folder)
    kept = []
    for line in text.splitlines():
        if line.startswith(("static facts", "time, ", "peak memory:", "----")) or not line:
            if line.startswith("static facts "):
                continue
            if not line.startswith("verdict"):
                kept.append(None)  # until the verdict
        elif line.startswith("verdict"):
            kept = [k for k in kept if k is not None] + [re.sub(r" \(.*?\)$", "", line)]
            break
        elif None not in kept:
            kept.append(re.sub(r"^(.{31})  *[\d.]+ s  ", r"\1 ", line))
    text = "\n".join(kept)
    text = re.sub(r"(smallest found \(\d+ tries), [^)]*\)", r"\1)", text)
    text = re.sub(r"; worst error [\d.]+ of the budget \(\w+\)", "", text)
    for shown in (str(EXAMPLES), "harness/try/examples", str(folder)):  # files of the tree are named from its root
        text = text.replace(shown + os.sep, "")
    return code, text


def section(file, folder):
    code, text = said(file, folder)
    if code != EXPECTED[file.name]:
        raise AssertionError(f"{file.name}: exit code {code}, not {EXPECTED[file.name]}:\n{text}")
    return f"\n## {file.name}\n\n{comment(file)}\n\n```text\n{text}\n```\n"


class Page(unittest.TestCase):
    maxDiff = None

    def test_every_example_is_on_the_page_as_it_is(self):
        page = PAGE.read_text()
        for name in EXPECTED:
            if reason := missing(name):
                print(f"SKIPPED: {name}: {reason}")
                continue
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                start = page.index(f"\n## {name}\n")
                end = page.find("\n## ", start + 1)
                self.assertEqual(section(EXAMPLES / name, folder), page[start:end if end >= 0 else len(page)])

    def test_a_right_kernel_is_compared(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        code, said = tigon_try(EXAMPLES / "rms_norm_right.cu", "--dtype", "bf16", "--against", "fused", folder=folder.name)
        self.assertEqual(code, 0, said)
        self.assertRegex(said, r"forward bf16 +H=2048 T=256 +2.00 MiB +2.00 MiB")  # peak memory
        self.assertRegex(said, r"forward bf16 +H=2048 T=256 +2.00 MiB +4.00 MiB +2.00 +3.00 MiB")  # reads x twice, fused once
        block = (pathlib.Path(folder.name) / "results/pull_request.md").read_text()
        for what in ("**right**", "| speed | not run |", "- compared with: fused", "- repeat: `./tigon try", "./tigon reproduce results"):
            self.assertIn(what, block)

    def test_no_example_is_missing(self):
        self.assertEqual(sorted(file.name for file in EXAMPLES.iterdir() if file.suffix in (".cu", ".py")), sorted(EXPECTED))


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        sections = []
        for name in EXPECTED:
            with tempfile.TemporaryDirectory() as folder:
                sections.append(section(EXAMPLES / name, folder))
        PAGE.write_text(HEAD + "".join(sections))
    else:
        unittest.main()
