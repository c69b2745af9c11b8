# SPDX-License-Identifier: Apache-2.0
"""python3 -m tigon_report.slim RUN FILE: a run's records without what the report does not show, for reports/recorded/.

Keeps every record but the steps of a training (its losses are in the converge record), drops the samples behind a
median, and of a check keeps its name, verdict and head-room. Of a comparison of bits it leaves out the cases that only
head has. No number is changed; the run record says "slim": true, and each line has the sum of what is left of it.
"""
import json
import pathlib
import sys

from . import load, records, schema
from .errors import DataError

CHECK_KEYS = ("record", "run_id", *schema.needed("check"), "reason")
OUTPUT_KEYS = ("name", "error_over_budget", "rms_over_budget")


def slim(record):
    """The record to keep, or None."""
    kind = record["record"]
    if kind == "converge_step" or record.get("outcome") == "head_only":
        return None
    if kind == "run":
        return {key: value for key, value in record.items() if key != "sum"} | {"slim": True}
    if kind == "check":
        kept = {key: record[key] for key in CHECK_KEYS if record.get(key) not in (None, "")}
        kept["outputs"] = [{key: output.get(key) for key in OUTPUT_KEYS} for output in record.get("outputs") or []]
        return kept
    return {key: value for key, value in record.items() if key not in ("samples_s", "sum")}


def main(argv):
    if len(argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        run = load.load_run(argv[0])
    except DataError as error:
        print(f"slim: {error}", file=sys.stderr)
        return 4
    kept = [record for line in run.path.read_text().splitlines() if (record := slim(json.loads(line)))]
    pathlib.Path(argv[1]).write_text("".join(records.with_sum(json.dumps(record, separators=(",", ":"))) + "\n" for record in kept))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
