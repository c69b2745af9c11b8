# SPDX-License-Identifier: Apache-2.0
"""The files of a report's pages."""
from . import units

LANDING, TRAINING, TRUST = "index.html", "training.html", "trust.html"


def of_op(op):
    file = f"{units.file_name(op)}.html"
    return f"op-{file}" if file in (LANDING, TRAINING, TRUST) else file
