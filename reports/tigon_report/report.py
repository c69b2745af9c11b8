# SPDX-License-Identifier: Apache-2.0
"""tigon report: the static report of one run.

Exit codes: 0 written, 2 usage, 4 the run's data are missing or damaged, 5 the report cannot be written.
"""
import os
import pathlib

import jinja2

from . import load, page
from .command import Parser, say
from .errors import DataError
from .progress import Progress
from .recorded import Recorded

RECORDED = pathlib.Path(__file__).resolve().parent.parent / "recorded"


def main(argv):
    parser = Parser("report", "Write the report of a run.",
                    ["results/20260101T120000Z-1a2b3c4d",
                     "merged.jsonl --run 20260101T120000Z-1a2b3c4d --out /tmp/report"])
    parser.add_argument("run", help="a results folder, or a records.jsonl file")
    parser.add_argument("--run", dest="run_id", help="which run, where a file holds several")
    parser.add_argument("--recorded", default=RECORDED, help="folder of recorded GPU runs (default: reports/recorded)")
    parser.add_argument("--out", help="folder for the pages (default: the run's folder)")
    parser.add_argument("--host-times", action="store_true",
                        help="also show wall times of the host executor, which are no kernel speed")
    arguments = parser.parse_args(argv)
    run = load.load_run(arguments.run, arguments.run_id, lambda text: say("report", text))
    jobs = int(os.environ.get("TIGON_JOBS") or len(os.sched_getaffinity(0)))
    progress = Progress("report")
    progress("reading what is recorded")
    recorded = Recorded.load(arguments.recorded)
    try:
        written = page.write(run, recorded, arguments.out or run.path.parent, arguments.host_times, progress, jobs)
    except (KeyError, TypeError, ValueError, AttributeError, jinja2.UndefinedError) as error:
        raise DataError(f"{run.path}: a record does not hold what the report shows: {error}") from error
    finally:
        progress.end()
    print(f"report: {written}")
