#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a CI service shows of a gate: a step summary in Markdown and at most ten annotations, the worst first.

  ci/summarize.py results/ci/push --headline "push: all stages passed" --summary summary.md

Annotations are GitHub's `::error::` lines on stdout; other services show them as log lines. GitHub drops a summary over
1 MiB as a whole and an eleventh annotation without a word, so both are bounded here and say what they left out.
"""

import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "reports"))

from tigon_report import records  # noqa: E402
from tigon_report.errors import DataError  # noqa: E402

MOST_ANNOTATIONS = 10
MOST_BYTES = 1_000_000  # of a summary; GitHub's limit is 1 MiB
MOST_ROWS = 200  # of a table
GREEN = ("passed", "unsupported", "skipped")


def sources(op):
    """The file that a failure of `op` is shown at, when it exists."""
    path = f"kernels/{op}/{op}.cu"
    return path if (pathlib.Path(__file__).resolve().parents[1] / path).is_file() else ""


def findings(found):
    """[(rank, title, text, repro, file)] of everything that is not green, the worst first."""
    rows = []
    for record in found:
        kind, case = record["record"], record.get("case_id") or record.get("kernel") or ""
        op = record.get("op") or case.split("/")[0]
        if kind in ("check", "bench") and record["verdict"] not in GREEN:
            command = record.get("repro") or f"./tigon {kind} --case '{case}'"
            rows.append(
                (0, record["verdict"], f"{case}: {record.get('reason') or record['verdict']}", command, sources(op))
            )
        elif kind == "converge_verdict" and record["verdict"] not in GREEN:
            rows.append(
                (
                    0,
                    f"training {record['verdict']}",
                    f"{record['config']} {record['dtype']}: {record.get('reason') or ''}",
                    f"./tigon converge --config {record['config']} --dtype {record['dtype']}",
                    "",
                )
            )
        elif kind == "gate" and record.get("scope") == "cell" and record.get("outcome") in ("slower", "inconclusive"):
            rank = 1 if record["outcome"] == "slower" else 3
            change = record.get("change")
            text = f"{case}: {record['outcome']}" + (f", {100 * change:+.1f} %" if change is not None else "")
            rows.append((rank, record["outcome"], text, f"./tigon gate --base BASE --case '{case}'", sources(op)))
        elif kind == "static":
            rows += [
                (
                    2,
                    "static",
                    f"{case} {record.get('arch') or ''}: {change['number']} {change.get('base')} -> "
                    f"{change.get('head')}: {change['cause']}",
                    f"./tigon gate --static --base BASE --op {op}",
                    sources(op),
                )
                for change in record.get("changes") or []
                if change["effect"] == "blocks"
            ]
    return sorted(rows, key=lambda row: row[0])


def escape(text, value=False):
    """Text inside a workflow command."""
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return text.replace(":", "%3A").replace(",", "%2C") if value else text


def annotations(rows):
    """The lines of at most MOST_ANNOTATIONS annotations; the last one says how many more there are."""
    shown = rows if len(rows) <= MOST_ANNOTATIONS else rows[: MOST_ANNOTATIONS - 1]
    lines = []
    for rank, title, text, repro, file in shown:
        place = f"file={escape(file, True)}," if file else ""
        lines.append(
            f"::{'warning' if rank == 3 else 'error'} {place}title={escape(title, True)}"
            f"::{escape(text)}%0A{escape(repro)}"
        )
    if len(shown) < len(rows):
        lines.append(f"::error title=more::{len(rows) - len(shown)} more findings; the step summary has them")
    return lines


def counts(found):
    """'3482 passed, 0 failed, 2 skipped' of all checks and timings."""
    verdicts = [record["verdict"] for record in found if record["record"] in ("check", "bench")]
    passed, skipped = verdicts.count("passed"), sum(verdict in GREEN[1:] for verdict in verdicts)
    return f"{passed} passed, {len(verdicts) - passed - skipped} failed, {skipped} skipped"


def stages(folder):
    """Lines of a table of the stages and their times, which ci/stages.sh wrote into stages.tsv."""
    file = pathlib.Path(folder) / "stages.tsv"
    if not file.is_file():
        return []
    rows = [line.split("\t") for line in file.read_text().splitlines()]
    total = sum(int(seconds) for _, _, seconds in rows)
    lines = ["| stage | result | time |", "|---|---|---|"]
    for name, code, seconds in rows:
        lines.append(f"| {name} | {'passed' if code == '0' else f'exit {code}'} | {int(seconds)} s |")
    return [*lines, f"| all | | {total // 60} min {total % 60} s |", ""]


def markdown(headline, found, rows, timed=()):
    """The summary: headline, stages with their times, counts, findings as a table, the rest folded away."""
    lines = [f"## {headline}", "", *timed, counts(found), ""]
    if rows:
        lines += ["| what | where | repeat it |", "|---|---|---|"]
        lines += [
            "| {} | {} | `{}` |".format(title, *(part.replace("|", "\\|").replace("\n", " ") for part in (text, repro)))
            for _, title, text, repro, _ in rows[:MOST_ROWS]
        ]
        if len(rows) > MOST_ROWS:
            lines.append(f"\n{len(rows) - MOST_ROWS} more are in the records.")
    for record in found:
        if record["record"] == "aa" and record.get("scope") == "suite":
            for kind in ("measured", "simulated"):
                rate = record.get(kind)
                if rate:
                    lines.append(
                        f"\nA/A, {kind}: {rate['false_blocks']} false blocks in {rate['suites']} suites, at most "
                        f"{100 * rate['rate_upper_95']:.2g} % with 95 % confidence."
                    )
    return "\n".join(lines) + "\n"


def bounded(text):
    """`text` in at most MOST_BYTES, cut at a line."""
    data = text.encode("utf-8")
    if len(data) <= MOST_BYTES:
        return text
    return (
        data[: MOST_BYTES - 200].decode("utf-8", "ignore").rsplit("\n", 1)[0]
        + "\n\nCut here: the summary was too long.\n"
    )


def main():
    parser = argparse.ArgumentParser(description="Writes a step summary and prints annotations.")
    parser.add_argument("folder", help="results folder of a gate; every *.jsonl in it is read")
    parser.add_argument("--headline", required=True)
    parser.add_argument("--summary", required=True, help="Markdown file to append to")
    arguments = parser.parse_args()
    found, notes = [], []
    for file in sorted(pathlib.Path(arguments.folder).rglob("*.jsonl")):
        try:
            found += [line.record for line in records.read_file(file, notes.append)]
        except DataError as error:
            notes.append(str(error))
    rows = findings(found)
    text = markdown(arguments.headline, found, rows, stages(arguments.folder)) + "".join(f"\n{note}\n" for note in notes)
    with open(arguments.summary, "a", encoding="utf-8") as stream:
        stream.write(bounded(text))
    print("\n".join(annotations(rows)), end="\n" if rows else "")
    return 0


if __name__ == "__main__":
    sys.exit(main())
