# SPDX-License-Identifier: Apache-2.0
"""tigon dashboard: a static site of many runs over time, from records alone; needs neither server nor script.

Exit codes: 0 written, 2 usage, 4 no records, or some that contradict each other, 5 the site cannot be written.
"""

import concurrent.futures
import pathlib

from .. import records
from ..command import Parser, say
from ..errors import DataError, UsageError

ROOT = pathlib.Path(__file__).resolve().parents[3]
DEFAULT_RUNS = ("results", "reports/recorded", "reports/recorded/bench", "reports/recorded/gate", "reports/recorded/judge")


def default_runs(root=ROOT):
    """Where runs lie when none is named: the results folder and the recorded runs, those that hold any."""
    found = [root / name for name in DEFAULT_RUNS if _holds_runs(root / name)]
    if not found:
        raise DataError(f"no run in {' or '.join(DEFAULT_RUNS[:2])}; name results folders, or make one with ./tigon run")
    return found


def _holds_runs(folder):
    try:
        return bool(records.files_of([folder]))
    except DataError:
        return False


def main(argv):
    parser = Parser(
        "dashboard",
        "Write a static site of a history of runs: open its index.html, or serve the folder anywhere.",
        ["--out site", "results/* --out site --commit-url https://example.org/commit/{commit}"],
    )
    parser.add_argument(
        "runs",
        nargs="*",
        help=f"results folders, folders of them, or records.jsonl files (default: {' and '.join(DEFAULT_RUNS[:2])})",
    )
    parser.add_argument("--out", required=True, help="folder of the site: new, empty or an earlier site, whose pages are replaced")
    parser.add_argument(
        "--anchor",
        help="part of the id of one timed case: histories are ratios to it "
        "(default: copy bandwidth or GEMM rate of the same run)",
    )
    parser.add_argument("--commit-url", default="", help="link of a commit, with {commit} in it")
    arguments = parser.parse_args(argv)
    if arguments.commit_url and "{commit}" not in arguments.commit_url:
        raise UsageError("--commit-url must hold {commit}, e.g. https://example.org/commit/{commit}")
    from . import history, scan, site  # matplotlib takes a second; --help does not need it

    site.require_own(arguments.out)
    files = records.files_of(arguments.runs or default_runs())
    store = scan.scan(files, lambda text: say("dashboard", text))
    try:
        pinned = history.pinned_anchor(store, arguments.anchor) if arguments.anchor else None
    except ValueError as error:
        raise UsageError(str(error)) from error
    with concurrent.futures.ProcessPoolExecutor(history.workers()) as pool:
        every = history.build(store, pool, pinned)
    print(f"dashboard: {site.write(arguments.out, store, files, every, arguments.commit_url)}")
