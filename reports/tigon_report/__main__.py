"""python3 -m tigon_report RUN [--recorded FOLDER] [--out FOLDER]: writes the report of a run and prints where it is.

Exit codes: 0 written, 2 usage, 4 the run's data are missing or damaged, 5 the report cannot be written.
"""
import argparse
import pathlib
import sys

from . import load, page

RECORDED = pathlib.Path(__file__).resolve().parent.parent / "recorded"


def main(argv=None):
    parser = argparse.ArgumentParser(prog="tigon report", description="Write the report of a run.",
                                     epilog="example: ./tigon report results/20260101T120000Z-1a2b3c4d")
    parser.add_argument("run", help="a results folder, or a records.jsonl file")
    parser.add_argument("--recorded", default=RECORDED, help="folder of recorded GPU runs (default: reports/recorded)")
    parser.add_argument("--out", help="folder for index.html (default: the run's folder)")
    arguments = parser.parse_args(argv)
    try:
        run = load.load_run(arguments.run)
        recorded = [] if run.on_gpu else load.load_recorded(arguments.recorded)
        written = page.write(run, recorded, arguments.out or run.path.parent)
    except load.DataError as error:
        print(f"tigon report: {error}", file=sys.stderr)
        return 4
    except OSError as error:
        print(f"tigon report: cannot write the report: {error}", file=sys.stderr)
        return 5
    print(f"report: {written}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
