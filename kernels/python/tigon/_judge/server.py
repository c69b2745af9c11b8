# SPDX-License-Identifier: Apache-2.0
"""A judge's process of a batch: judges what a pipe asks for, one after the other, and answers by another pipe, a line of JSON each.

It is a process of its own because references are code of others, too, and because what hangs can be ended. SIGTERM ends a
candidate with it.
"""
import json
import os
import pathlib
import signal
import sys
from types import FrameType

from .entry import Entry
from .verdict import judged


def _end(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)


def main() -> None:
    """Answers until there is nothing more to judge."""
    asked, answers = int(sys.argv[1]), int(sys.argv[2])
    signal.signal(signal.SIGTERM, _end)
    with os.fdopen(asked) as requests, os.fdopen(answers, "w") as out:
        for line in requests:
            request = json.loads(line)
            entry = Entry(request["candidate"], request["reference"], request["options"], pathlib.Path(request["folder"]))
            print(json.dumps(judged(entry).record()), file=out, flush=True)


if __name__ == "__main__":
    main()
