# SPDX-License-Identifier: Apache-2.0
"""What the tests of the dashboard share: a command run as ./tigon runs it, and a history read in this process."""

import contextlib
import io
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from tigon_report import __main__ as program  # noqa: E402
from tigon_report import records  # noqa: E402
from tigon_report.dashboard import history, scan  # noqa: E402


def run(*arguments):
    """(exit code, stdout, stderr) of ./tigon ARGUMENTS."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = program.main([str(argument) for argument in arguments])
    return code, out.getvalue(), err.getvalue()


class Serial:
    """What a process pool offers, in this process."""

    @staticmethod
    def map(function, values, chunksize=1):
        del chunksize
        return map(function, values)


def read(path):
    """(store, series) of the runs of a folder or a file."""
    store = scan.scan(records.files_of([path]), lambda text: None)
    return store, history.build(store, Serial)
