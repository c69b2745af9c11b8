"""--against torch,liger: functions of other packages as plug-ins beside the file."""
import importlib.util
import pathlib
import re

from . import python_kernel

PACKAGES = {"torch": "torch", "liger": "liger_kernel"}
FOLDER = pathlib.Path(__file__).resolve().parents[1] / "peers"


def programs(build, names, op, passes, dtypes, folder):
    """({name: program} of those that can be compared, a sentence about each that cannot)."""
    found, left_out = {}, []
    for name in names:
        file = FOLDER / f"{name}_peer.py"
        text = file.read_text()
        functions = {one: f for one, f in python_kernel.functions(text, op, passes).items() if re.match(op, f)}
        if not build.on_gpu:
            left_out.append(f"{name}: compared on a GPU only")
        elif not importlib.util.find_spec(PACKAGES[name]):
            left_out.append(f"{name}: this Python has no {PACKAGES[name]}")
        elif not functions:
            left_out.append(f"{name}: has nothing for {op} {' or '.join(passes)}")
        else:
            found[name] = python_kernel.program(build, file, text, name, op, functions, dtypes, folder)
    return found, left_out
