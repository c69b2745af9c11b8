# SPDX-License-Identifier: Apache-2.0
"""Right candidates on all problems of problems.py: how often does tigon judge call one wrong?

    PYTHONPATH=kernels/python python kernels/python/tests/false_alarms.py --seeds 8 --jobs 4 [--device cuda] [--out FILE] [PROBLEM]...

Candidates (right_candidates.py): torch as it is, in float64, with other orders of sums, compiled, by hand, Tigon's and Liger's ops. Every second seed
has gradients, too. What cannot be had here is named and left out. Exit codes: 0 no false alarm, 1 some, 4 nothing to judge.
"""
import argparse
import importlib
import json
import os
import pathlib
import random
import re
import sys
import tempfile
from collections import Counter
from typing import Any

import torch
from problems import PROBLEMS
from right_candidates import HEAD, KINDS, candidates
from tigon._judge.batch import judge_all
from tigon._judge.entry import DEFAULTS, EXIT, Entry

DTYPES = ("float32", "bfloat16", "float16")


def _compiled(x: torch.Tensor) -> torch.Tensor:
    made: torch.Tensor = torch.compile(lambda v: v.exp() + 1)(x)
    return made


def _tigon(x: torch.Tensor) -> torch.Tensor:
    import tigon

    made: torch.Tensor = tigon.ops.softmax(x)
    return made


def _liger(x: torch.Tensor) -> torch.Tensor:
    liger = importlib.import_module("liger_kernel.transformers.functional")
    made: torch.Tensor = liger.liger_softmax(x)
    return made


def missing(device: str, left_out: list[str]) -> dict[str, str]:
    """Kinds of candidates that cannot be had here, and why."""
    found = dict.fromkeys(left_out, "left out")
    for kind, tried in (("compiled", _compiled), ("tigon", _tigon), ("liger", _liger)):
        if kind not in found:
            try:
                tried(torch.ones(2, 64, device=device))
            except Exception as error:  # whatever a compiler or a library that is not there raises
                found[kind] = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"[:160]
    return found


def _file(folder: pathlib.Path, name: str, text: str) -> str:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    return name


def wanted(folder: pathlib.Path, given: argparse.Namespace, without: set[str]) -> list[Entry]:
    """What is judged, in files of a folder."""
    place = os.environ.get("TIGON_PYTHON_LIBRARIES")  # which a candidate's process does not inherit
    libraries = f"import os\nos.environ['TIGON_PYTHON_LIBRARIES'] = {place!r}\n" if place else ""
    found = []
    for name in given.problem or PROBLEMS:
        reference = _file(folder, f"{name}/reference.py", HEAD + PROBLEMS[name].reference)
        for kind, text in candidates(name, libraries).items():
            if kind in without:
                continue
            candidate = _file(folder, f"{name}/{kind}.py", text)
            found += [Entry(candidate, reference, {**DEFAULTS, "dtype": dtype, "device": given.device, "seed": given.seed + i, "backward": i % 2 == 1,
                                                   "timeout": given.timeout}, folder) for dtype in DTYPES for i in range(given.seeds)]
    some = [entry for entry in found if re.search(given.only, said(entry))]
    return some if given.sample is None else random.Random(given.seed).sample(some, min(given.sample, len(some)))


def said(entry: Entry) -> str:
    """What is judged, in a line."""
    options = entry.options
    return f"{entry.candidate.removesuffix('.py')} {options['dtype']}{' backward' if options['backward'] else ''} seed {options['seed']}"


def _arguments(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="false_alarms.py", description="Judges right candidates: how many are called wrong?")
    parser.add_argument("problem", nargs="*", help="of problems.py, else all")
    parser.add_argument("--seeds", type=int, default=2, metavar="N", help="of each candidate in each dtype; every second one with gradients")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30), help="the first of them, else drawn")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="candidates at a time")
    parser.add_argument("--timeout", type=float, default=120.0, metavar="SECONDS", help="for each answer of a candidate")
    parser.add_argument("--only", default="", metavar="REGEX", help="of lines as 'softmax/reversed bfloat16 backward seed 3'")
    parser.add_argument("--sample", type=int, metavar="N", help="so many of them, drawn by the seed")
    parser.add_argument("--without", action="append", default=[], choices=("compiled", "tigon", "liger"), help="leaves these candidates out")
    parser.add_argument("--out", type=pathlib.Path, metavar="FILE", help="each verdict and the counts, a line of JSON each")
    given = parser.parse_args(words)
    if unknown := set(given.problem) - set(PROBLEMS):
        parser.error(f"no problem is called {', '.join(sorted(unknown))}")
    return given


def counted(given: argparse.Namespace, records: list[tuple[str, dict[str, Any]]], without: dict[str, str]) -> dict[str, Any]:
    """The record of all."""
    verdicts = Counter(record["verdict"] for _, record in records)
    kinds = {kind: Counter(record["verdict"] for _, record in records if pathlib.Path(record["candidate"]).name.startswith(kind)) for kind in KINDS}
    return {"record": "false_alarms", "schema": 1, "verdicts": len(records), "counts": dict(verdicts), "kinds": {k: dict(c) for k, c in kinds.items() if c},
            "limits": sum(bool(record["limits"]) for _, record in records), "without": without, "seed": given.seed, "seeds": given.seeds,
            "device": torch.cuda.get_device_name(given.device) if given.device.startswith("cuda") else given.device, "torch": torch.__version__}


def main(words: list[str] | None = None) -> int:
    """Judges and prints; the exit code."""
    given = _arguments(words)
    without = missing(given.device, given.without)
    for kind, why in without.items():
        print(f"without {kind}: {why}")
    out = given.out.open("w", encoding="utf-8") if given.out else None
    records = []
    with tempfile.TemporaryDirectory() as name:
        entries = wanted(pathlib.Path(name), given, set(without))
        for entry, record in judge_all(entries, given.jobs):
            records.append((said(entry), record))
            if record["verdict"] != "right":
                print(f"{'FALSE ALARM' if record['verdict'] == 'wrong' else 'no verdict'}: {said(entry)}: {record['verdict']}: {record['reason']}", flush=True)
            if out:
                print(json.dumps(record), file=out, flush=True)
    total = counted(given, records, without)
    if out:
        print(json.dumps(total), file=out)
        out.close()
    for kind, counts in total["kinds"].items():
        print(f"{kind}: {', '.join(f'{counts[verdict]} {verdict}' for verdict in EXIT if verdict in counts)}")
    print(f"{total['counts'].get('wrong', 0)} false alarms in {len(records)} verdicts of right candidates, {total['limits']} of them with limits; "
          f"{given.seeds} seeds from {given.seed} on, {total['device']}, torch {total['torch']}")
    return 4 if not records else int(total["counts"].get("wrong", 0) > 0)


if __name__ == "__main__":
    sys.exit(main())
