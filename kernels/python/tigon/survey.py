# SPDX-License-Identifier: Apache-2.0
"""python -m tigon.survey: patches a small model of every causal language model family of the transformers that is installed.

A family is the same if loss and gradients of a training step are within 1e-4 in float32 (or as near to float64 as the
model's own are), its gradients in bfloat16 no worse than the model's own, and the unpatched model has its own bits
again. The exit code is 1 if a patched family is not the same. A family whose small model does not run is not tried, and says why.
"""
import argparse
import collections
import multiprocessing
import os
import random
import sys
import warnings
from collections.abc import Iterator
from typing import Any

from ._survey.family import DIFFERENT, NOT_TRIED, SAME, Result, survey

SECONDS = 120  # for one family
KINDS = ("norm", "mlp", "experts", "rope", "loss")


def families() -> list[str]:
    """All causal language model families of the transformers that is installed."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    return list(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)


def _child(family: str, pipe: Any) -> None:
    import torch

    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    sys.stdout = sys.stderr = open(os.devnull, "w")  # what models print
    pipe.send(survey(family))


def results(chosen: list[str]) -> Iterator[Result]:
    """Each family in a process of its own, which may crash or never end."""
    context = multiprocessing.get_context("fork")
    for family in chosen:
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_child, args=(family, theirs))
        process.start()
        theirs.close()
        try:
            yield ours.recv() if ours.poll(SECONDS) else Result(family, NOT_TRIED, f"takes more than {SECONDS} s")
        except EOFError:
            yield Result(family, NOT_TRIED, "its process ended early")
        process.kill()
        process.join()


def row(result: Result) -> str:
    """A line of the table, and one below it for each reason why something was left."""
    counts = " ".join(f"{result.replaced.get(kind, 0) or '-':>7}" for kind in KINDS)
    bf16 = f"{result.bf16:5.2f}" if result.bf16 else f"{'-':>5}"
    numbers = f"{result.apart:8.1e} {bf16}" if result.verdict != NOT_TRIED else " " * 14
    lines = [f"{result.family:28.28} {counts} {numbers}  {result.verdict}{': ' + result.why if result.why else ''}"]
    lines += [f"{'':28} {count} left: {reason}" for reason, count in result.left.items()]
    return "\n".join(lines)


def summary(found: list[Result]) -> str:
    """The counts of a survey."""
    verdicts = collections.Counter(result.verdict for result in found)
    with_kind = {kind: sum(kind in result.replaced for result in found) for kind in KINDS}
    return (f"{len(found)} families: {verdicts[SAME]} the same, {verdicts[DIFFERENT]} different, {verdicts[NOT_TRIED]} not tried\n"
            f"families with something replaced: {', '.join(f'{kind} {count}' for kind, count in with_kind.items())}")


def main(arguments: list[str] | None = None) -> int:
    """Prints a table; 1 if a patched family is not the same, else 0."""
    parser = argparse.ArgumentParser(prog="python -m tigon.survey", description=(__doc__ or "").partition("\n\n")[2])
    parser.add_argument("names", nargs="*", help="families to survey, e.g. llama; none: all")
    parser.add_argument("--families", type=int, metavar="N", help="survey N families, drawn by chance")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of the draw")
    given = parser.parse_args(arguments)
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # no model needs a file
    known = families()
    unknown = [name for name in given.names if name not in known]
    if unknown:
        parser.error(f"transformers has no causal language model {unknown[0]}")
    chosen = given.names or known
    if given.families is not None:
        chosen = sorted(random.Random(given.seed).sample(chosen, min(given.families, len(chosen))))
    print(f"{'family':28} {' '.join(f'{kind:>7}' for kind in KINDS)} {'apart':>8} {'bf16':>5}")
    found = []
    for result in results(chosen):
        found.append(result)
        print(row(result), flush=True)
    print(summary(found))
    return int(any(result.verdict == DIFFERENT for result in found))


if __name__ == "__main__":
    sys.exit(main())
