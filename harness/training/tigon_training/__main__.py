# SPDX-License-Identifier: Apache-2.0
"""python3 -m tigon_training CASE...: speed, memory and losses of training steps of Hugging Face models."""
import argparse
import os
import pathlib
import shlex
import sys

from tigon_report import recorder, training_steps
from tigon_trees.build import commit_of

from .case import parse
from .links import links
from .ranks import Ranks
from .shapes import attention_of
from .sharded import LAYOUTS
from .trained import LEARNING_RATE
from .turns import Process, in_turns, longest
from .variants import VARIANTS

ROOT = pathlib.Path(__file__).resolve().parents[3]
EXAMPLES = """examples:
  python3 -m tigon_training llama3-1b llama3-8b,batch=8,checkpointing
  python3 -m tigon_training llama3-8b,checkpointing --longest 32768 --variants eager,liger,tigon --warmup 1 --steps 1
  python3 -m tigon_training llama3-8b,checkpointing --ranks 2 --layout fsdp2 --variants eager,liger,tigon
  python3 -m tigon_training tiny,batch=2,length=64 --variants eager,tigon --rounds 1   # on a CPU: that it runs, no speed

Exit codes: 0 every variant ran, 1 one failed (out of memory and what is not installed are results), 2 a wrong argument."""


def arguments(argv):
    p = argparse.ArgumentParser(prog="python3 -m tigon_training", epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter,
                                description="Trains Hugging Face models in turns: as they are, with torch.compile, Liger, Tigon.")
    p.add_argument("cases", nargs="+", metavar="CASE", help="MODEL[,batch=8][,length=4096][,checkpointing][,only=VARIANT/...]")
    p.add_argument("--variants", default="eager,compile,liger,tigon,tigon_cheap", help=f"of {', '.join(VARIANTS)}")
    p.add_argument("--ranks", type=int, metavar="N", help="train over N GPUs, each with a batch of its own (without a GPU: N processes)")
    p.add_argument("--layout", choices=LAYOUTS, help="how ranks share the model")
    p.add_argument("--longest", type=int, metavar="LIMIT",
                   help="one turn of each length from the case's, doubled until out of memory")
    p.add_argument("--rounds", type=int, default=3, help="turns of each variant")
    p.add_argument("--warmup", type=int, default=3, help="steps of a turn before those that are timed")
    p.add_argument("--steps", type=int, default=8, help="steps of a turn that are timed")
    p.add_argument("--seed", type=int, default=42)
    p.add_argument("--out", type=pathlib.Path, help="folder for records.jsonl (default: results/RUN)")
    p.add_argument("--profile", type=pathlib.Path, metavar="FOLDER", help="write what one step of each variant spends its time on")
    options = p.parse_args(argv)
    try:
        options.cases = [parse(text) for text in options.cases]
    except ValueError as error:
        p.error(str(error))
    options.variants = options.variants.split(",")
    if unknown := [name for name in (*options.variants, *(name for case in options.cases for name in case.only)) if name not in VARIANTS]:
        p.error(f"there is no variant {unknown[0]}; there are {', '.join(VARIANTS)}")
    if left := [name for case in options.cases for name in case.only if name not in options.variants]:
        p.error(f"{left[0]} is none of --variants")
    if min(options.rounds, options.steps) < 1 or options.warmup < 0:
        p.error("--rounds and --steps must be 1 or more, --warmup 0 or more")
    _check_ranks(p, options)
    if options.longest and any(case.length > options.longest for case in options.cases):
        p.error("--longest is shorter than a case")
    return options


def _check_ranks(p, options):
    if options.ranks is not None and options.ranks < 1:
        p.error("--ranks must be 1 or more")
    if options.layout and options.ranks is None:
        p.error("--layout needs --ranks")
    options.ranks = options.ranks or 1
    if options.ranks > 1 and not options.layout:
        p.error(f"--ranks {options.ranks} needs --layout, {' or '.join(LAYOUTS)}")


def _processes(options):
    if options.layout:
        return [Ranks(variant, options.seed, options.ranks, options.layout) for variant in options.variants]
    return [Process(variant, options.seed) for variant in options.variants]


def _ranks_of(options, processes, on_gpu):
    """What every record says of them."""
    return {"ranks": options.ranks, "layout": options.layout or "", "devices": processes[0].devices(),
            "links": links(options.ranks) if on_gpu and options.layout else ""}


def _record(options, on_gpu, shared, case, variant, number, answer):
    numbers = ("parameters", "peak_bytes", "reserved_bytes", "collective_s", "exposed_s")
    return {"model": case.model, "variant": variant, "batch": case.batch, "length": case.length, "checkpointing": case.checkpointing, **shared,
            "round": number, "dtype": "bf16", "executor": "cuda" if on_gpu else "fast", "optimizer": "AdamW", "learning_rate": LEARNING_RATE,
            "attention": attention_of(case.model), "warmup": options.warmup, "tokens_per_step": options.ranks * case.tokens,
            "loss": answer.get("loss", []), "seconds_s": answer.get("seconds_s", []), **{key: answer.get(key) for key in numbers},
            "what": answer.get("what", ""), "verdict": answer["verdict"], "reason": answer["reason"]}


def _turns(options, processes, request):
    if options.longest:
        return longest(processes, options.cases, options.longest, request)

    def profile_of(case, variant):
        return options.profile and str(options.profile / f"{str(case).replace(',', '-').replace('=', '')}-{variant}.txt")

    return in_turns(processes, options.cases, options.rounds, request, profile_of)


def main(argv):
    options = arguments(argv)
    if options.profile:
        options.profile.mkdir(parents=True, exist_ok=True)
    processes = _processes(options)
    found = [process.hello() for process in processes][0]
    on_gpu = found["device"]["kind"] == "cuda"
    if not on_gpu:
        print("no GPU here: this tries that everything runs; its times are no speed", file=sys.stderr)
    shared = _ranks_of(options, processes, on_gpu)
    folder = options.out or ROOT / "results" / recorder.new_run_id()
    command = ["python3", "-m", "tigon_training", *argv]
    writer = recorder.Recorder(folder / "records.jsonl", command, commit_of(ROOT), found, options.seed)
    request = {"warmup": options.warmup, "steps": options.steps}
    kept = []
    for case, variant, number, answer in _turns(options, processes, request):
        kept.append(_record(options, on_gpu, shared, case, variant, number, answer))
        writer.write("training", kept[-1])
        print(training_steps.turn_text(kept[-1]), flush=True)
    for process in processes:
        process.close()
    verdicts = [record["verdict"] for record in kept]
    passed, skipped = verdicts.count("passed"), verdicts.count("unsupported") + verdicts.count("oom")
    failed = len(verdicts) - passed - skipped
    writer.end(passed, failed, skipped, int(failed > 0))
    print(training_steps.text(kept))
    print(f"results: {os.path.relpath(writer.path)}\n{shlex.join(command)}: {passed} turns passed, {failed} failed, {skipped} skipped")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
