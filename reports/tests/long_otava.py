# SPDX-License-Identifier: Apache-2.0
"""The real Apache Otava reads what tigon export writes and finds a step in it. Installs it with pip."""
import datetime
import json
import os
import pathlib
import random
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import install  # noqa: E402
import sample  # noqa: E402
from command_test import CommandTest, full, full_run  # noqa: E402

STEP = 15  # the run whose naive implementation becomes 10 % slower
CONFIGURATION = """tests:
  tigon:
    type: csv
    file: {file}
    time_column: time
    attributes: [commit, run_id]
    metrics:
      fused: {{column: "{fused}", direction: -1}}
      naive: {{column: "{naive}", direction: -1}}
"""


class OtavaTest(CommandTest):
    def run_of_day(self, day, noise):
        time = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(days=40 - day)
        run_id = f"{time:%Y%m%dT%H%M%SZ}-{day:08x}"
        header = {**full_run(run_id)[0], "started": f"{time:%Y-%m-%dT%H:%M:%S}.000Z"}
        header["tool"] = {**(header.get("tool") or {}), "commit": f"{day:040x}"}
        lines = [header]
        for impl in ("fused", "naive"):
            seconds = 1e-3 * noise.gauss(1, 0.003) * (1.1 if impl == "naive" and day >= STEP else 1)
            if (impl, day) != ("fused", 7):  # one night without it
                lines.append(full({**sample.bench(impl, 64, 1024, seconds), "median_s": seconds}, run_id))
        return self.write(f"{day}.jsonl", lines)

    def test_it_finds_the_step_and_no_other(self):
        python = install.environment(self.folder / "otava", "apache-otava")
        if python is None:
            install.skip("pip cannot get apache-otava")
        noise = random.Random(1)
        runs = [self.run_of_day(day, noise) for day in range(30)]
        csv = self.folder / "history.csv"
        self.assertEqual(self.tigon("export", *runs, "--format", "otava", "-o", csv)[0], 0)
        columns = csv.read_text().splitlines()[0].split('"')[1::2]
        names = {impl: next(name for name in columns if f"/{impl}/" in name) for impl in ("fused", "naive")}
        settings = self.folder / "otava.yaml"
        settings.write_text(CONFIGURATION.format(file=csv, **names))
        done = subprocess.run([python.parent / "otava", "analyze", "tigon", "--output", "json"], text=True,
                              env={**os.environ, "OTAVA_CONFIG": str(settings)}, capture_output=True,
                              stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = [(change["metric"], point["attributes"]["commit"]) for point in json.loads(done.stdout)["tigon"]
                 for change in point["changes"]]
        self.assertEqual(found, [("naive", f"{STEP:040x}")])


if __name__ == "__main__":
    unittest.main()
