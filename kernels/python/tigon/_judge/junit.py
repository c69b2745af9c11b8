# SPDX-License-Identifier: Apache-2.0
"""Verdicts as JUnit XML: a suite for each reference. Needs no torch."""
import pathlib
from collections.abc import Sequence
from typing import Any
from xml.sax.saxutils import quoteattr

from .files import printable, write_whole

TAGS = {"right": "", "wrong": "failure", "too slow": "error", "bad problem": "error", "not judged": "skipped"}


def _attribute(text: str) -> str:
    return quoteattr(printable(text))


def _counts(records: Sequence[dict[str, Any]]) -> str:
    tags = [TAGS[record["verdict"]] for record in records]
    return f'tests="{len(tags)}" failures="{tags.count("failure")}" errors="{tags.count("error")}" skipped="{tags.count("skipped")}" ' \
           f'time="{sum(record["seconds"] for record in records):.3f}"'


def _case(record: dict[str, Any]) -> str:
    tag, message = TAGS[record["verdict"]], _attribute(f"{record['verdict']}: {record['reason']}")
    name = " ".join(filter(None, (record["candidate"], record["options"]["workload"].rpartition("#")[2])))
    begin = f'    <testcase classname={_attribute(record["reference"])} name={_attribute(name)} time="{record["seconds"]:.3f}"'
    if not tag:
        return begin + "/>\n"
    kind = "" if tag == "skipped" else f" type={_attribute(record['verdict'])}"
    return f"{begin}><{tag}{kind} message={message}/></testcase>\n"


def junit(records: Sequence[dict[str, Any]]) -> str:
    """The text of the file."""
    suites: dict[str, list[dict[str, Any]]] = {}
    for record in records:
        suites.setdefault(record["reference"], []).append(record)
    lines = [f'  <testsuite name={_attribute(name)} {_counts(own)}>\n{"".join(map(_case, own))}  </testsuite>\n' for name, own in suites.items()]
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="tigon judge" {_counts(records)}>\n{"".join(lines)}</testsuites>\n'


def write_junit(file: pathlib.Path, records: Sequence[dict[str, Any]]) -> None:
    """Writes the file whole or not at all. OSError: it cannot be written."""
    write_whole(file, junit(records))
