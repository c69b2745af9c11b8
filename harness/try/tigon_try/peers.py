# SPDX-License-Identifier: Apache-2.0
"""--against torch,liger: functions of the peers of `tigon bench --peers` as plug-ins beside the file."""
import importlib.util
import pathlib
import re
import sys

from . import python_kernel

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "peers"))
from tigon_peers import known  # noqa: E402

FILES = known.files()


def programs(build, names, signature, passes, folder):
    """({name: program} of those that can be compared, a sentence about each that cannot)."""
    found, left_out, op = {}, [], signature.op
    for name in names:
        file = FILES[name]
        text, package = file.read_text(), known.package_of(file)
        functions = {one: f for one, f in python_kernel.functions(text, op, passes).items() if re.match(op, f)}
        if not build.on_gpu:
            left_out.append(f"{name}: compared on a GPU only")
        elif package and not importlib.util.find_spec(package):
            left_out.append(f"{name}: this Python has no {package}")
        elif not functions:
            left_out.append(f"{name}: has nothing for {op} {' or '.join(passes)}")
        else:
            found[name] = python_kernel.program(build, file, text, name, signature, functions, folder)
    return found, left_out
