#!/usr/bin/env python3
"""The promise of the dashboard at full size: two simulated years of 400 cases, every planted step found, in time.

CPU seconds are counted rather than elapsed ones, because a test machine has other work; their sum bounds what one
idle core needs.
"""

import collections
import json
import pathlib
import resource
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import browser  # noqa: E402
import site_check  # noqa: E402
from tigon_report import __main__ as program  # noqa: E402
from tigon_report import records  # noqa: E402
from tigon_report.dashboard import changepoints, history, scan  # noqa: E402

LEAST_STEP, NEAR = 0.0198, 5  # the logarithm of 1.02; points
MOST_CPU_S, MOST_FLAGGED, MOST_OPEN_MS = 120, 0.01, 1000


def cpu_seconds():
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


class Serial:
    map = staticmethod(lambda function, values, chunksize=1: map(function, values))


class FullSize(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="tigon-dashboard-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        assert program.main(["simulate", "--out", str(cls.folder / "runs"), "--seed", "11"]) == 0
        cls.truth = json.loads((cls.folder / "runs/truth.json").read_text())

    def test_planted_steps(self):
        store = scan.scan(records.files_of([self.folder / "runs"]), lambda text: None)
        series = {one.cell.record["case_key"]: one for one in history.build(store, Serial)}
        place = {run_id: number for number, run_id in enumerate(self.truth["runs"])}
        missed, late, causes, count = [], [], collections.Counter(), 0
        for event in self.truth["events"]:
            if event["kind"] not in ("step", "baseline") or abs(event["size"]) < LEAST_STEP:
                continue
            one, count = series[event["case_key"]], count + 1
            at = next(i for i, run in enumerate(one.runs) if place[run.id] >= event["run"])
            hits = [
                label
                for change, label in zip(one.changes, one.labels)
                if abs(change.index - at) <= NEAR and change.change * event["size"] > 0
            ]
            missed += [] if hits else [event]
            causes[event["kind"], hits[0].cause if hits else "none"] += 1
            late += (
                [] if any(abs(c.index - at) <= NEAR for c in changepoints.detect(one.ratio[: at + NEAR])) else [event]
            )
        flagged = [key for key in self.truth["flat"] if series[key].changes]
        print(
            f"{count} planted steps: {len(missed)} missed, {len(late)} not seen within {NEAR} points of them; "
            f"{len(flagged)} of {len(self.truth['flat'])} flat series flagged; causes {dict(causes)}"
        )
        self.assertGreater(count, 30)
        self.assertEqual((missed, late), ([], []))
        self.assertLessEqual(len(flagged), MOST_FLAGGED * len(self.truth["flat"]))
        self.assertEqual(causes["step", "code"] + causes["baseline", "driver"], count, causes)

    def test_site_in_time_and_landing_in_a_second(self):
        site, before = self.folder / "site", cpu_seconds()
        self.assertEqual(program.main(["dashboard", str(self.folder / "runs"), "--out", str(site)]), 0)
        spent = cpu_seconds() - before
        print(f"{spent:.0f} CPU seconds")
        self.assertLess(spent, MOST_CPU_S)
        self.assertEqual(len(list((site / "case").glob("*.html"))), 400)
        self.assertLess((site / "index.html").stat().st_size, 2_000_000)
        self.assertEqual(site_check.broken_links(site), [])
        chromium = browser.find()
        if chromium is None:
            self.skipTest("no chromium; install it with: sudo apt-get install chromium")
        with browser.Browser(chromium) as page:
            page.open(site / "index.html")  # the first page waits for the browser itself
            opened = page.open(site / "index.html")
            print(f"landing page opens in {opened:.0f} ms")
            self.assertLess(opened, MOST_OPEN_MS)


if __name__ == "__main__":
    unittest.main()
