# SPDX-License-Identifier: Apache-2.0
"""What collectives cost on GPUs that are not here, modelled from link rates: the model that NCCL chooses its algorithms by, for its
ring (src/graph/tuning.cc). A ring of n GPUs over m nodes takes n - 1 steps, an all-reduce twice as many, of which m - 1 cross the
network; each step passes 1/n of the bytes on and has a latency.
"""
import csv
import json
import re
from typing import NamedTuple

from . import units
from .errors import DataError

BF16, FP32 = 2, 4
STATISTICS = 3 * FP32  # of a token and a rank: maximum, sum and the target's logit
TOKENS = 4096  # of a GPU
GPUS = (8, 64, 1024)
ROUNDS = {"all-gather": 1, "reduce-scatter": 1, "all-reduce": 2}


class Links(NamedTuple):
    """The values of a table of links, by its names; units are bytes and seconds."""

    gpus_of_a_node: float
    link_rate: float
    network_rate: float
    start: float
    link_step: float
    network_step: float


class Model(NamedTuple):
    """A row of harness/cli/options/models.inc, as far as collectives depend on it."""

    name: str
    layers: int
    hidden: int
    vocabulary: int
    tied: bool
    parameters: float

    @property
    def root(self):
        """Parameters outside of the blocks: embedding and head."""
        return self.vocabulary * self.hidden * (1 if self.tied else 2)

    @property
    def block(self):
        return (self.parameters - self.root) / self.layers


def read_links(path):
    """Links of a table with the columns name, value, unit and source. DataError: no such file; ValueError: not such a table."""
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    with open(path, encoding="utf-8", newline="") as file:
        values = {row.get("name"): row.get("value") for row in csv.DictReader(file, delimiter="\t")}
    if set(values) != set(Links._fields):
        raise ValueError(f"{path.name} is no table of links: it has rows {', '.join(map(str, values))}; wanted are {', '.join(Links._fields)}")
    return Links(**{name: float(value) for name, value in values.items()})


def read_model(path, name):
    """The model of that name in a table of models. DataError: no such file; ValueError: no such model."""
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    found = re.search(rf'^\{{("{re.escape(name)}", .*)\}},$', path.read_text(encoding="utf-8"), re.M)
    if not found:
        raise ValueError(f"{path.name} has no model {name}")
    row = json.loads(f"[{found[1]}]")
    return Model(name, row[1], row[2], row[9], row[12], row[13] * 1e9)


def seconds(links, collective, size_bytes, gpus, nodes):
    """Of one collective whose whole result, or whole input of a reduce-scatter, has so many bytes. All nodes have as many of the GPUs."""
    if gpus == 1:
        return 0.0
    rounds = ROUNDS[collective]
    steps, crossing = rounds * (gpus - 1), rounds * (nodes - 1)
    rate = links.link_rate if nodes == 1 else links.network_rate * gpus / nodes
    if nodes < gpus:
        rate = min(rate, links.link_rate)
    return links.start + (steps - crossing) * links.link_step + crossing * links.network_step + size_bytes * steps / gpus / rate


def nodes_of(links, gpus):
    return max(1, round(gpus / links.gpus_of_a_node))


def sharded_step(links, model, gpus, nodes, parts=1):
    """A step of FSDP2 or ZeRO-3 over these GPUs, each of which would have 1 / parts of the model alone: parameters gathered in forward
    and backward block by block, embedding and head once, and all gradients reduced, in bf16."""
    def both(parameters, gathers):
        size = BF16 * parameters / parts
        return gathers * seconds(links, "all-gather", size, gpus, nodes) + seconds(links, "reduce-scatter", size, gpus, nodes)
    return model.layers * both(model.block, 2) + both(model.root, 1)


def tensor_step(links, model, gpus, nodes, tokens):
    """A step of tensor parallelism over these GPUs, which have so many tokens together: two all-reduces of the residual in forward and
    two in backward of each block, the loss' statistics, and the head's dx in fp32."""
    residual = tokens * model.hidden
    return (4 * model.layers * seconds(links, "all-reduce", BF16 * residual, gpus, nodes)
            + head_step(links, model.hidden, gpus, nodes, tokens))


def head_step(links, hidden, gpus, nodes, tokens):
    """The loss behind a head in shards, as tigon.ops.vocab_parallel_linear_cross_entropy has it: statistics, and dx in fp32."""
    return (seconds(links, "all-gather", STATISTICS * tokens * gpus, gpus, nodes)
            + seconds(links, "all-reduce", FP32 * tokens * hidden, gpus, nodes))


def both_step(links, model, gpus, tokens):
    """Tensor parallelism inside of each node, FSDP2 over the nodes: the GPUs of one place in their nodes share a part of the model."""
    nodes = nodes_of(links, gpus)
    inside = gpus // nodes
    return tensor_step(links, model, inside, 1, tokens * inside) + sharded_step(links, model, nodes, nodes, inside)


def even_tokens(links, model, gpus):
    """Tokens of a GPU above which FSDP2 over all GPUs has less to wait for than both together; none where it always has."""
    def gain(tokens):
        return both_step(links, model, gpus, tokens) - sharded_step(links, model, gpus, nodes_of(links, gpus))
    slope = (gain(2e6) - gain(1e6)) / 1e6
    return max(0.0, 1e6 - gain(1e6) / slope)


def single(links, model):
    """Rows of a table of single collectives: what, its bytes, and its time by the number of GPUs."""
    residual = TOKENS * model.hidden
    kinds = [("parameters of a block, bf16", "all-gather", lambda n: BF16 * model.block),
             ("gradients of a block, bf16", "reduce-scatter", lambda n: BF16 * model.block),
             ("the head's weight, bf16", "all-gather", lambda n: BF16 * model.vocabulary * model.hidden),
             (f"residual of {TOKENS:,} tokens, bf16", "all-reduce", lambda n: BF16 * residual),
             (f"statistics of {TOKENS:,} tokens", "all-gather", lambda n: STATISTICS * TOKENS * n),
             (f"the head's dx of {TOKENS:,} tokens, fp32", "all-reduce", lambda n: FP32 * residual)]
    return [[f"{what}: {kind}", _range([size(n) for n in GPUS]),
             *(units.seconds(seconds(links, kind, size(n), n, nodes_of(links, n))) for n in GPUS)] for what, kind, size in kinds]


def _range(sizes):
    return " to ".join(dict.fromkeys(units.binary_bytes(size) for size in (min(sizes), max(sizes))))


def steps(links, model):
    """Rows of a table of whole steps, one for each number of GPUs."""
    rows = []
    for gpus in GPUS:
        sharded, both = sharded_step(links, model, gpus, nodes_of(links, gpus)), both_step(links, model, gpus, TOKENS)
        rows.append([model.name, f"{gpus:,}", units.seconds(sharded), units.seconds(both), "fsdp2, zero3" if sharded <= both else "tp in a node",
                     f"{even_tokens(links, model, gpus):,.0f}"])
    return rows


def measured(links, models, records):
    """Rows of a table of what was measured on GPUs of one node, beside what is modelled: [what, measured, of it hidden, modelled, their ratio].
    Of several measurements of one thing the shortest counts: a rank that waits for another is in a collective, too. ValueError: none was measured."""
    found = {}
    for record in records:
        if record.get("collective_s") and (modelled := _modelled(links, models, record)):
            what, expected = modelled
            if what not in found or record["collective_s"] < found[what][0]["collective_s"]:
                found[what] = record, expected
    if not found:
        raise ValueError("no collectives that are modelled in these records")
    return [[what, units.seconds(record["collective_s"]), units.percent(1 - record["exposed_s"] / record["collective_s"], 0), units.seconds(expected),
             f"{record['collective_s'] / expected:.2f}"] for what, (record, expected) in found.items()]


def _modelled(links, models, record):
    """(what, seconds) of a record's collectives; None where no model says them."""
    if record["record"] == "head_loss" and record["variant"] == "tigon":
        return (f"loss of {record['tokens']:,} tokens behind a head of {record['hidden']:,} x {record['classes']:,}, {record['ranks']} GPUs",
                head_step(links, record["hidden"], record["ranks"], 1, record["tokens"]))
    if record["record"] == "training" and record.get("layout") == "fsdp2":
        model = read_model(models, record["model"])
        return f"step of {model.name} with fsdp2, {record['ranks']} GPUs", sharded_step(links, model, record["ranks"], 1)
    return None
