# SPDX-License-Identifier: Apache-2.0
"""Verdicts as one page of HTML, with nothing beside it and no scripts. Needs no torch.

All text of candidates, references and files goes through _code() or _text(), which escape it.
"""
import html
import pathlib
import re
import string
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from .defences import defences_of
from .entry import EXIT
from .files import printable, write_whole

_FRAME = pathlib.Path(__file__).with_name("page.html")
_SHOWN = 160  # characters of a reason in the table of all
_WORST = re.compile(r"(\d+ of \d+) elements wrong; (\[[\d,]*\]): got (.*), want (.*), off by (.*), budget (.*)")  # as the oracle says it
_NEAR = re.compile(r"at most ([\d.]+) of its budget")
_FIT = ("passed", "skipped")


def _text(value: Any) -> str:
    return html.escape(printable(str(value)))


def _code(value: Any) -> str:
    return f"<code>{_text(value)}</code>"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are HTML."""
    def line(tag: str, cells: Sequence[str]) -> str:
        return "<tr>" + "".join(f"<{tag}>{cell}</{tag}>" for cell in cells) + "</tr>\n"
    return "<table>\n" + (line("th", head) if head else "") + "".join(line("td", row) for row in rows) + "</table>\n"


def _verdict(name: str) -> str:
    kind = name if name in ("right", "wrong", "passed") else "other" if name in EXIT or name == "skipped" else "wrong"
    return f'<span class="verdict {kind}">{_text(name)}</span>'


def _name(record: dict[str, Any]) -> str:
    return " ".join(filter(None, (record["candidate"], record["options"]["workload"].rpartition("#")[2])))


def _list(title: str, lines: Sequence[str]) -> str:
    """A heading with a list of texts; nothing without them."""
    return f"<h3>{title}</h3>\n<ul>\n" + "".join(f"<li>{_code(line)}</li>\n" for line in lines) + "</ul>\n" if lines else ""


def _compared(record: dict[str, Any]) -> str:
    """Inputs, seed and options."""
    options, kinds = record["options"], dict.fromkeys(case["name"].partition(": ")[0] for case in record["cases"])
    errors = [f"{record['errors'][name]:.6g}" if record["errors"][name] is not None else "none" for name in ("max_absolute_error", "max_relative_error")]
    rows = [("reference", _code(record["reference"])), ("inputs of the first call", ", ".join(map(_code, record.get("inputs", []))) or "none"),
            ("kinds of inputs", ", ".join(map(_code, kinds)) or "none"), ("seed", _code(record["seed"])),
            ("options", ", ".join(_code(f"{name}={value}") for name, value in options.items() if value not in ("", None, False)) or "none"),
            ("largest errors against float64", f"absolute {_code(errors[0])}, relative {_code(errors[1])}"), ("time", f"{record['seconds']:.1f} s")]
    return "<h3>What was compared</h3>\n" + _table((), rows)


def _worst(record: dict[str, Any]) -> str:
    """The worst element of each result that is wrong; else which result came nearest to its budget."""
    rows = [[_code(case["name"]), *map(_code, found.groups())] for case in record["cases"]
            if case["verdict"] not in _FIT and (found := _WORST.search(case["reason"]))]
    if rows:
        return "<h3>Worst element</h3>\n" + _table(("result", "elements wrong", "worst at", "got", "want", "off by", "budget"), rows)
    near = [(float(found[1]), case["name"]) for case in record["cases"] if case["verdict"] == "passed" and (found := _NEAR.search(case["reason"]))]
    if not near:
        return ""
    share, name = max(near)
    return f"<h3>Worst element</h3>\n<p>It is at {share:.2f} of its budget, in {_code(name)}.</p>\n"


def _cases(record: dict[str, Any]) -> str:
    cases = record["cases"]
    rows = [(_code(case["name"]), _verdict(case["verdict"]), _code(case["reason"])) for case in cases]
    return f"<details>\n<summary>{len(cases)} comparisons</summary>\n{_table(('result', 'verdict', 'reason'), rows)}</details>\n" if cases else ""


def _section(number: int, record: dict[str, Any], is_alone: bool) -> str:
    """All of one verdict."""
    reason = f"<p>{_code(record['reason'])}</p>\n" if record["reason"] else ""
    calls = [name.removeprefix("aten::") for name in record.get("calls", [])]
    torch = f"<h3>Calls of torch, by the candidate's own word</h3>\n<p>{', '.join(map(_code, calls))}</p>\n" if calls else ""
    back = "" if is_alone else '<p><a href="#all">all verdicts</a></p>\n'
    return (f'<section id="v{number}">\n<h2>{_code(_name(record))}: {_verdict(record["verdict"])}</h2>\n{reason}'
            + _worst(record) + _compared(record) + _list("Limits", record.get("limits", [])) + _list("Not looked at", record["notes"])
            + torch + _list("Defences that ran", defences_of(record)) + _cases(record) + back + "</section>\n")


def _summary(records: Sequence[dict[str, Any]]) -> str:
    """Counts, and a row for each verdict."""
    counts = Counter(record["verdict"] for record in records)
    counted = _table(("verdict", "how many"), [(_verdict(name), str(counts[name])) for name in EXIT if counts[name]])
    rows = [(f'<a href="#v{number}">{_code(_name(record))}</a>', _code(record["reference"]), _verdict(record["verdict"]),
             _code(record["reason"][:_SHOWN]) if record["reason"] else "",
             f'<span class="time">{record["seconds"]:.1f} s</span>') for number, record in enumerate(records, 1)]
    return f'<div id="all">\n{counted}{_table(("candidate", "reference", "verdict", "reason", "time"), rows)}</div>\n'


def page(records: Sequence[dict[str, Any]]) -> str:
    """The text of the file."""
    counts, is_alone = Counter(record["verdict"] for record in records), len(records) == 1
    title = records[0]["verdict"] if is_alone else ", ".join(f"{counts[name]} {name}" for name in EXIT if counts[name])
    body = ("" if is_alone else _summary(records)) + "".join(_section(number, record, is_alone) for number, record in enumerate(records, 1))
    return string.Template(_FRAME.read_text(encoding="utf-8")).substitute(title=_text(title), body=body)


def write_page(file: pathlib.Path, records: Sequence[dict[str, Any]]) -> None:
    """Writes the file whole or not at all. OSError: it cannot be written."""
    write_whole(file, page(records))
