# SPDX-License-Identifier: Apache-2.0
"""What the pages of the newest state share: the newest run that holds something, and its records as the report's."""

import json

from .. import load
from . import state


def as_run(run, records):
    """A run of the report's kind made of `records`, so that the report's tables and figures serve here too."""
    return load.Run(run.file, run.header, records, run.end)


def newest_with(store, wanted):
    """{device: newest run for which wanted(run) holds}, a complete one where there is any, GPUs first."""
    found = {run.device: run for run in sorted(store.runs, key=state.counts) if wanted(run)}
    return dict(sorted(found.items(), key=lambda item: (not item[1].on_gpu, item[0])))


def raw_text(record):
    """A record as it is shown: without what this program added."""
    return json.dumps(
        {key: value for key, value in record.items() if key not in ("row", "where", "smaller", "link")},
        ensure_ascii=False,
    )
