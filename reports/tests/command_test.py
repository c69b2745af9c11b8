# SPDX-License-Identifier: Apache-2.0
"""What the tests of commands share: a folder, and a command run as ./tigon runs it."""
import contextlib
import io
import os
import pathlib
import sys
import tempfile
import unittest
import unittest.mock

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import sample  # noqa: E402
from tigon_report import __main__ as program  # noqa: E402
from tigon_report import figures, records  # noqa: E402


def without_drawing(but=None):
    """A context in which figures but those of this name are empty pictures: drawing takes most of a report's time."""
    draw, empty = figures.Figures.draw, unittest.mock.patch.object(figures.Figures, "_svg", return_value='<svg xmlns="http://www.w3.org/2000/svg"/>')

    def drawn(self, name, *rest, **more):
        with contextlib.nullcontext() if but and name.startswith(but) else empty:
            return draw(self, name, *rest, **more)

    return unittest.mock.patch.object(figures.Figures, "draw", drawn)


class CommandTest(unittest.TestCase):
    def setUp(self):
        self.enterContext(unittest.mock.patch.dict(os.environ, TIGON_JOBS="1"))  # what a test patches is asked in its process
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def tigon(self, *words):
        """(exit code, stdout, stderr) of ./tigon WORDS."""
        out, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            code = program.main([str(word) for word in words])
        return code, out.getvalue(), errors.getvalue()

    def write(self, name, items):
        """A file of records (dicts) or of whole lines (bytes)."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(item + b"\n" if isinstance(item, bytes) else sample.text([item]).encode()
                                  for item in items))
        return path

    def report_of(self, items, *words, drawn=False):
        """({file: page}, summary) of the report on a run of these records, beside what the folder `recorded` holds."""
        (self.folder / "records.jsonl").write_text(sample.text(items))
        with contextlib.nullcontext() if drawn else without_drawing():
            code, _, errors = self.tigon("report", self.folder, "--recorded", self.folder / "recorded", *words)
        self.assertEqual(code, 0, errors)
        return pages_in(self.folder), (self.folder / "summary.md").read_text()

    def refused(self, code, says, *words):
        """The command must fail with `code` and one line that says `says`."""
        got, _, errors = self.tigon(*words)
        self.assertEqual(got, code, errors)
        self.assertEqual(errors.count("\n"), 1, errors)
        self.assertIn(says, errors)


def pages_in(folder):
    return {file.name: file.read_text() for file in folder.glob("*.html")}


def full(record, run_id="20260101T120000Z-1a2b3c4d", time="2026-01-01T12:00:01.000Z"):
    """A sample record with the keys that every record of a run has."""
    result = {"schema_version": "1.0.0", "run_id": run_id, "time": time, **record}
    if "case_id" not in result and "axes" in result and record["record"] in ("bench", "memory", "trace"):
        shape = ",".join(f"{key}={value}" for key, value in result["axes"].items())
        names = "/".join(result[key] for key in ("op", "pass", "impl", "dtype"))
        result["case_id"] = f"{names}/{shape},inputs=normal,seed=42"
    if "case_id" in result:
        result["case_key"] = records.case_key(result["case_id"])
    return result


def full_run(run_id="20260101T120000Z-1a2b3c4d", records_of=sample.gpu_run):
    return [full({**record, "run_id": run_id}, run_id, f"2026-01-01T12:00:{index % 60:02d}.000Z")
            for index, record in enumerate(records_of())]
