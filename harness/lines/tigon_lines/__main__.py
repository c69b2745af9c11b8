# SPDX-License-Identifier: Apache-2.0
"""tigon check --lines: PROGRAM ROOT CASES ROWS. Runs the cases over kernels that count, writes a row of JSON per file.

CASES has a case id per line, ROWS is written."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from . import gcov


def run(program, ids, counts):
    """Runs the cases in as many processes as there are cores; their counts are added up when they end."""
    environment = {**os.environ, "GCOV_PREFIX": str(counts)}
    jobs = max(1, min(os.cpu_count() or 1, len(ids)))
    running = []
    for job in range(jobs):
        process = subprocess.Popen([program], stdin=subprocess.PIPE, env=environment, text=True)
        process.stdin.write("".join(f"{name}\n" for name in ids[job::jobs]))
        process.stdin.close()
        running.append(process)
    return all([process.wait() == 0 for process in running])


def ranges(numbers):
    """'3, 7-9'"""
    groups = []
    for number in numbers:
        if groups and number == groups[-1][1] + 1:
            groups[-1][1] = number
        else:
            groups.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in groups)


def show(rows):
    print(f"{'file':<48} {'lines taken':>17} {'branches taken':>17}")
    for row in rows:
        print(f"{row['file']:<48} {row['lines_met']:>9} of {row['lines']:>4} {row['branches_met']:>9} of {row['branches']:>4}")
    for row in rows:
        if row["lines_missing"]:
            print(f"not taken: {row['file']}: {ranges(row['lines_missing'])}")


def main(program, root, cases, rows_file):
    ids = pathlib.Path(cases).read_text().splitlines()
    with tempfile.TemporaryDirectory() as folder:
        counts = pathlib.Path(folder)
        if not run(program, ids, counts):
            print("tigon: a case failed over the kernels that count", file=sys.stderr)
            return 5
        files = gcov.collect(gcov.documents(counts), pathlib.Path(root).resolve())
    rows = [gcov.row(file, lines) for file, lines in sorted(files.items())]
    rows = [row for row in rows if row["lines_met"]]  # others are of ops that no case is of
    pathlib.Path(rows_file).write_text("".join(json.dumps(row) + "\n" for row in rows))
    show(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
