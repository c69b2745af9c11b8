# SPDX-License-Identifier: Apache-2.0
"""python3 -m tigon_heads CASE...: losses behind a head whose classes lie in shards."""
import argparse
import os
import pathlib
import shlex
import sys

import torch
from tigon_report import head_losses, recorder
from tigon_training.links import links
from tigon_training.worker import facts
from tigon_trees.build import commit_of

from .case import parse
from .losses import LOSSES
from .spawned import measured

ROOT = pathlib.Path(__file__).resolve().parents[3]
EXAMPLES = """examples:
  python3 -m tigon_heads T=8192,H=4096,V=128256 --ranks 2
  python3 -m tigon_heads T=64,H=32,V=1001 --ranks 2 --steps 2     # on a CPU: that it runs, no speed

Exit codes: 0 every way ran (out of memory and what is not installed are results), 2 a wrong argument."""


def arguments(argv):
    p = argparse.ArgumentParser(prog="python3 -m tigon_heads", epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter,
                                description="Times ways to the loss behind a head whose classes lie in shards, one on each rank.")
    p.add_argument("cases", nargs="+", metavar="CASE", help="T=tokens,H=hidden,V=classes of all ranks")
    p.add_argument("--ranks", type=int, required=True, metavar="N", help="GPUs (without a GPU: processes)")
    p.add_argument("--ways", default=",".join(LOSSES), help=f"of {', '.join(LOSSES)}")
    p.add_argument("--rounds", type=int, default=3, help="turns of each way")
    p.add_argument("--steps", type=int, default=10, help="steps of a turn that are timed")
    p.add_argument("--seed", type=int, default=42)
    p.add_argument("--out", type=pathlib.Path, help="folder for records.jsonl (default: results/RUN)")
    options = p.parse_args(argv)
    try:
        options.cases = [parse(text) for text in options.cases]
    except ValueError as error:
        p.error(str(error))
    options.ways = options.ways.split(",")
    if unknown := [name for name in options.ways if name not in LOSSES]:
        p.error(f"there is no way {unknown[0]}; there are {', '.join(LOSSES)}")
    if min(options.ranks, options.rounds, options.steps) < 1:
        p.error("--ranks, --rounds and --steps must be 1 or more")
    if 0 < torch.cuda.device_count() < options.ranks:
        p.error(f"--ranks {options.ranks} needs as many GPUs; there are {torch.cuda.device_count()}")
    if narrow := [case for case in options.cases if case.classes < options.ranks]:
        p.error(f"{narrow[0]} has fewer classes than ranks")
    return options


def _record(options, where, case, way, number, found):
    return {"variant": way, "tokens": case.tokens, "hidden": case.hidden, "classes": case.classes, "round": number, **where, "dtype": "bf16",
            "seconds_s": found.get("seconds_s", []), "verdict": found.get("verdict", "passed"), "reason": found.get("reason", ""),
            **{key: found.get(key) for key in ("peak_bytes", "collective_s", "exposed_s", "loss_error", "dx_error", "dw_error")}}


def main(argv):
    options = arguments(argv)
    found = facts()
    on_gpu = found["device"]["kind"] == "cuda"
    if not on_gpu:
        print("no GPU here: this tries that everything runs; its times are no speed", file=sys.stderr)
    name = found["device"].get("name", "host")
    where = {"ranks": options.ranks, "devices": [name] * options.ranks, "links": links(options.ranks) if on_gpu else "",
             "executor": "cuda" if on_gpu else "fast"}
    folder = options.out or ROOT / "results" / recorder.new_run_id()
    command = ["python3", "-m", "tigon_heads", *argv]
    writer = recorder.Recorder(folder / "records.jsonl", command, commit_of(ROOT), found, options.seed)
    kept = []
    for case, way, number, one in measured(options):
        kept.append(_record(options, where, case, way, number, one))
        writer.write("head_loss", kept[-1])
    verdicts = [record["verdict"] for record in kept]
    writer.end(verdicts.count("passed"), 0, len(verdicts) - verdicts.count("passed"), 0)
    print(head_losses.text(kept))
    print(f"results: {os.path.relpath(writer.path)}\n{shlex.join(command)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
