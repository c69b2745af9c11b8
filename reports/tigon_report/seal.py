# SPDX-License-Identifier: Apache-2.0
"""python3 -m tigon_report.seal FILE...: gives every line of records files that has no sum one, for reports/recorded/.

Nothing else of a line changes. A line whose sum is wrong is refused, and its file left as it is: a sum that somebody
writes anew says nothing. Prints how many lines of each file were sealed.
"""
import json
import pathlib
import sys

from . import records
from .errors import DataError


def sealed(raw):
    """The line `raw` (bytes) with its sum. ValueError: it is no record, or its sum is wrong."""
    if records.has_right_sum(raw):
        return raw
    records.parse(raw)
    if "sum" in json.loads(raw):
        raise ValueError("it has a sum that is not that of its bytes")
    return records.with_sum(raw.decode("utf-8")).encode("utf-8")


def seal(file):
    """Seals one file; how many lines had no sum."""
    path = pathlib.Path(file)
    before, after = path.read_bytes().splitlines(), []
    for number, raw in enumerate(before, 1):
        try:
            after.append(sealed(raw))
        except ValueError as error:
            raise DataError(f"{path}:{number}: {error}") from error
    path.write_bytes(b"".join(raw + b"\n" for raw in after))
    return sum(old != new for old, new in zip(before, after))


def main(argv):
    try:
        for file in argv:
            print(f"{file}: {seal(file)} lines sealed")
    except DataError as error:
        print(f"seal: {error}", file=sys.stderr)
        return 4
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
