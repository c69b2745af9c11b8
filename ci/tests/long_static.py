"""Sees the static gate block a rise in traffic of a real kernel. Usage: long_static.py BUILD_FOLDER (a host build).

The kernel with the planted fault is compiled with the build's own command and linked in place of the build's object, so
the test needs one object and two links instead of a second build.
"""
import contextlib
import io
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "ci"), str(ROOT / "reports"), str(ROOT / "ci/tests")]

import plants  # noqa: E402
from tigon_gate import __main__ as program  # noqa: E402
from tigon_report import command  # noqa: E402

BUILD = pathlib.Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else None


def planted_programs(name, stem, folder):
    """tigon and tigon-checked of the build with one kernel source planted, in `folder`."""
    tree = folder / "tree"
    shutil.copytree(ROOT / "kernels", tree / "kernels")
    plants.plant(name, tree)
    wrapper = folder / "planted.cu.cpp"
    wrapper.write_text(f'#include "{tree}/kernels/{stem}/{stem}.cu"\n')
    for target in ("tigon", "tigon-checked"):
        listed = subprocess.run(["ninja", "-C", str(BUILD), "-t", "commands", target], capture_output=True, text=True, check=True)
        commands = listed.stdout.splitlines()
        link = commands[-1]
        ours = next(word for word in shlex.split(link) if word.endswith(f"/{stem}/{stem}.cu.cpp.o"))
        words = shlex.split(next(line for line in commands if f"-o {ours} " in line))
        own = next(k for k, word in enumerate(words) if word.startswith("-I"))  # the planted headers come before them
        flags = words[:own] + [f"-I{tree}"] + words[own:words.index("-MD")]
        subprocess.run([*flags, "-o", str(folder / f"{target}.o"), "-c", str(wrapper)], cwd=BUILD, check=True)
        link = link.replace(ours, str(folder / f"{target}.o")).replace(f"-o bin/{target}", f"-o {folder / target}")
        subprocess.run(link, shell=True, cwd=BUILD, check=True)
    return folder / "tigon"


class TrafficTest(unittest.TestCase):
    def test_second_read_of_an_input_blocks(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            head = planted_programs("traffic", "swiglu", folder)
            out = io.StringIO()
            words = ["--static", "--only", "host", "--op", "swiglu", "--base-program", str(BUILD / "bin/tigon"),
                     "--head-program", str(head), "--json", str(folder / "records.jsonl")]
            with contextlib.redirect_stdout(out):
                code = command.run("gate", program.main, words)
            self.assertEqual(code, 3, out.getvalue())
            blocked = [line for line in out.getvalue().splitlines() if line.startswith("  blocks: bytes loaded")]
            self.assertEqual(len(blocked), 1, out.getvalue())
            self.assertIn("swiglu/forward", blocked[0])
            self.assertRegex(out.getvalue(), r"because of (swiglu::)?stream_kernel<.*Forward")


if __name__ == "__main__":
    unittest.main()
