# SPDX-License-Identifier: Apache-2.0
"""A .py file as a plug-in: which of its functions is which pass, and the program that the judge starts for it."""
import ast
import json
import os
import re
import sys

DTYPE_CODES = {"f32": 1, "bf16": 2, "f16": 3}


def functions(text, op, passes):
    """{pass: name of the function}; forward is called like the op, kernel or forward, another pass OP_PASS or PASS."""
    names = set()
    for node in ast.parse(text).body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names.update((alias.asname or alias.name).split(".")[0] for alias in node.names)
        elif isinstance(node, ast.Assign):
            names.update(target.id for target in node.targets if isinstance(target, ast.Name))
    found = {}
    for one in passes:
        wanted = ([op, "kernel", "forward"] if one == "forward" or len(passes) == 1 else []) + [f"{op}_{one}", one]
        for name in wanted:
            if name in names:
                found[one] = name
                break
    return found


def roundings(text):
    """What the file declares that it stores in the element type on the way: {function: number}."""
    return {name: int(number) for name, number in re.findall(r"^(\w+)\.roundings\s*=\s*(\d+)", text, re.M)}


def names_of(described):
    """The tensors and options of a call in their order, for tigon_call.named()."""
    def value(option):
        return option["default"] if option["choices"] else float(option["default"])
    return {"tensors": [{"name": t["name"], "role": t["role"]} for t in described["tensors"]],
            "options": [{"name": o["name"], "default": value(o), "choices": o["choices"]} for o in described["options"]]}


def program(build, file, text, name, signature, of_passes, folder):
    """The program in `folder` that serves the file's functions."""
    stored = roundings(text)
    facts = {"file": os.path.abspath(file), "name": name, "device": 1 if build.on_gpu else 0,
             "kernels": [{"name": f"{signature.op}.{one}", "function": function, "dtypes": list(DTYPE_CODES.values()),
                          "roundings": stored.get(function, 0), **names_of(signature.passes[one])} for one, function in of_passes.items()]}
    folder = folder / f"{name}.python"
    (folder / "cache").mkdir(parents=True)
    served = folder / f"{name}.py"
    served.write_text(f"#!{sys.executable}\n"
                      "import json, sys\n"
                      # In place of this folder, where a file may be called like a package: torch.py for torch.
                      f"sys.path[:1] = {[str(build.root / part) for part in ('harness/try', 'harness/worker')]!r}\n"
                      "from tigon_try import python_plugin\n"
                      f"facts = json.loads({json.dumps(facts)!r})\n"
                      'python_plugin.Server({**facts, "sandbox": sys.argv[1]}).serve()\n')
    served.chmod(0o755)
    return served
