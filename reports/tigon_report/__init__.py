# SPDX-License-Identifier: Apache-2.0
"""Reads the records of Tigon runs (JSONL) and writes a static report: pages, summary.md and figures.

It reads files only: harness/record/record.schema.json describes them. Nothing here measures or judges.
"""
import os

# Arrays here are short. OpenBLAS starts a thread for each core when NumPy is imported, and they wait for work by spinning.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
