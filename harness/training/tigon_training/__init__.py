# SPDX-License-Identifier: Apache-2.0
"""Training steps of Hugging Face models beside each other: as they are, compiled, with Liger's kernels, with Tigon's.

shapes.py       sizes of models; weights are drawn, nothing is loaded
case.py         a model, a batch, a length, with activation checkpointing or without
variants.py     what is done to a model before it is trained
trained.py      one variant of one case: some steps from the same start, as often as asked
sharded.py      the same over several ranks that share the model
place.py        which of the ranks a process is
marks.py        points in time
worker.py       the process of a variant, or of one rank of it
turns.py        all variants in turns
ranks.py        the processes of a variant's ranks, as one
links.py        what links their GPUs
collectives.py  how much of a step collectives take
__main__.py     the command, and its records
"""
