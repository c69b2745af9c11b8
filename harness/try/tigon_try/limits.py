# SPDX-License-Identifier: Apache-2.0
"""How long a case may take, and `tigon check` under that limit."""
import math
import os
import re

from . import judge

LEAST_LIMIT_CHECKED, LEAST_LIMIT = 10, 60  # seconds of a case in the checking executor, and elsewhere
TIMES_FUSED = 50  # a case may take so many times what the tree's kernel takes
MOST_SLOW, MOST_ROUNDS = 4, 3  # cases that may run into the limit before their sizes are left out, and how often that is done
LARGE = r"[A-Z]=\d{6}"  # sizes that take the checking executor seconds


def find_limit(job, build, checked, passes, dtypes):
    """Seconds that a case may take, as --timeout says or as the tree's own kernel takes on this machine."""
    if job.timeout:
        job.limit_checked = job.limit = job.timeout
        return
    words = ["check", "--op", job.op, "--impl", "fused", "--pass", ",".join(passes), "--dtype", dtypes[0], "--tier", "tiny", "--exclude", LARGE]
    outcome = judge.tigon(build, [*words, *(["--executor", "checked"] if checked else [])], job.folder / "limit.records")
    fused = TIMES_FUSED * max((r["seconds_s"] for r in outcome.of("check")), default=0)
    job.limit_checked, job.limit = max(LEAST_LIMIT_CHECKED, math.ceil(fused)), max(LEAST_LIMIT, math.ceil(fused))


def sizes(record):
    """'T=3,H=33,' of a case."""
    return re.search(r"/((?:[A-Z]=\d+,)*)[^/]*$", record["case_id"])[1]


def _excluded(patterns):
    given = os.environ.get("TIGON_EXCLUDE")
    patterns = [*([f"(?:{given})"] if given else []), *patterns]
    return ["--exclude", "|".join(patterns)] if patterns else []


def run_check(job, build, words, file, checked=False):
    """What `tigon check` found. A kernel that hangs must not take hours: once some cases were too slow, their sizes are left out."""
    patterns, records, outcome = [LARGE] * checked, {}, judge.Outcome()
    limit = job.limit_checked if checked else job.limit
    for number in range(MOST_ROUNDS):
        found = judge.tigon(build, [*words, "--timeout", str(limit), *_excluded(patterns)],
                            job.folder / f"{file}{number + 1 if number else ''}.jsonl", MOST_SLOW)
        job.outcomes.append(found)
        for r in found.of("check"):
            key = re.sub(r",seed=\d+", "", r["case_id"])  # seeds are drawn in each call
            if key not in records or records[key]["verdict"] in judge.SKIPS:
                records[key] = r
        outcome.said += found.said
        outcome.stopped = found.stopped
        if not found.stopped:
            break
        outcome.left_out += sorted({sizes(r) for r in found.of("check") if r["verdict"] == judge.TOO_SLOW} - {*outcome.left_out})
        patterns = [LARGE] * checked + [f"/{one}" for one in outcome.left_out]
    outcome.records = list(records.values())
    job.verdicts += [r["verdict"] for r in outcome.records]
    return outcome
