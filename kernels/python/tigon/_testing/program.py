# SPDX-License-Identifier: Apache-2.0
"""The judge: the program `tigon`, and the Python end of its worker protocol, which comes with it."""
import importlib.util
import json
import os
import pathlib
from typing import Any

from .report import Case

_PACKAGE = pathlib.Path(__file__).resolve().parents[1]
_CHECKOUT = _PACKAGE.parents[2]
_MISSING = ("tigon.testing.check needs the judge, the program tigon: ./tigon check --help builds it in a checkout, where "
            "TIGON_PROGRAM=build/host/bin/tigon names it; or install it with pip install . -C cmake.define.TIGON_HARNESS=ON")


def find() -> pathlib.Path:
    """TIGON_PROGRAM, or the program in the package or in the checkout around it. RuntimeError: there is none, and what to do."""
    named = os.environ.get("TIGON_PROGRAM")
    for path in [pathlib.Path(named)] if named else [_PACKAGE / "judge/tigon", _CHECKOUT / "build/host/bin/tigon"]:
        if path.is_file():
            return path.resolve()
    raise RuntimeError(f"TIGON_PROGRAM is {named}, but there is no such file" if named else _MISSING)


def protocol(program: pathlib.Path) -> Any:
    """The module tigon_call that came with the program. RuntimeError: it is not there."""
    folders = [program.parent, *(folder / "harness/worker" for folder in (*program.parents, _CHECKOUT))]
    for file in (folder / "tigon_call.py" for folder in folders):
        spec = importlib.util.spec_from_file_location("tigon_call", file)
        if file.is_file() and spec and spec.loader:
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
    raise RuntimeError(f"tigon_call.py is neither beside {program} nor in the checkout that it was built from")


def cases(records: pathlib.Path) -> tuple[Case, ...]:
    """The cases that a run recorded."""
    lines = records.read_text(encoding="utf-8").splitlines() if records.exists() else []
    checks = [record for record in map(json.loads, lines) if record["record"] == "check"]
    return tuple(Case(record["case_id"], record["verdict"], record["reason"]) for record in checks)
