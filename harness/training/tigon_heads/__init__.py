# SPDX-License-Identifier: Apache-2.0
"""Losses behind a head whose classes lie in shards, one on each rank, beside each other: time, memory, collectives, errors.

case.py      sizes of a head
losses.py    the ways to the loss
exact.py     loss and gradients in float32, which theirs are compared with
measured.py  one rank's part of a measurement
spawned.py   the processes of the ranks
__main__.py  the command, and its records
"""
