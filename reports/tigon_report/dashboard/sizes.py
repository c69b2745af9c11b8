# SPDX-License-Identifier: Apache-2.0
"""The pages over sizes: speed, roofline and peak memory of the newest run of every device."""

from .. import tables
from . import draw, landing
from .newest import as_run, newest_with, raw_text
from .scan import stable_id


def speed_runs(store, every):
    """{device: (run, timings, {record id: series})} of the newest run that timed half of what was ever timed."""
    found = {}
    for device in dict.fromkeys(series.cell.device for series in every):
        mine = [series for series in every if series.cell.device == device]
        run = next((run for run in reversed(store.runs) if run.device == device and 2 * run.timed >= len(mine)), None)
        if run is None:
            run = max((run for run in store.runs if run.device == device), key=lambda run: (run.timed, run.started))
        records = {
            id(series.cell.record): series
            for series in mine
            if run.id in series.cell.points and series.runs[-1].started >= run.started
        }
        if records:
            found[device] = (run, [series.cell.record for series in mine if id(series.cell.record) in records], records)
    return found


def _link_points(groups, axis, value, target):
    """What a drawing adds behind it: invisible marks over the points, each a link."""

    def add(axes):
        for group in groups:
            marks = axes.scatter(
                [record["axes"][axis] for record in group],
                [value(record) for record in group],
                s=60,
                alpha=0.0,
                zorder=5,
            )
            marks.set_urls([target(record) for record in group])

    return add


class _Linked(draw.Inline):
    """Inline whose next drawing is followed by `after`(first axes)."""

    after = None

    def draw(self, name, alt, drawing, size=(7.2, 3.6), panels=1, layout="constrained"):
        after, self.after = self.after, None

        def both(axes, theme):
            drawing(axes, theme)
            if after:
                after(axes[0] if panels > 1 else axes)

        return super().draw(name, alt, both, size, panels, layout)


def _sweep(inline, draw_figure, rows, value, target):
    """The report's figures of `rows` over their two longest axes, with links on the points."""
    figures = []
    for axis in draw.report.sweep_axes(draw.report.preferred(rows))[:2]:
        lines = draw.report.series([row for row in draw.report.preferred(rows) if value(row)], axis)
        inline.after = _link_points([group for _, group in lines], axis, value, target)
        figure = draw_figure(axis)
        inline.after = None
        if figure:
            figures.append(figure)
    return figures


def speed(site, every):
    parts = []
    for device, (run, records, series_of) in speed_runs(site.store, every).items():
        inline = _Linked()
        target = {
            id(record): f"case/{series.slug}.html"
            for record, series in ((series.cell.record, series) for series in series_of.values())
        }
        by_name = {
            (stable_id(s.cell.record["case_id"]), s.cell.basis): f"case/{s.slug}.html" for s in series_of.values()
        }
        whole = as_run(run, {"bench": records, "ceiling": [{"name": n, "value": v} for n, v in run.ceilings.items()]})

        def link(record):
            return by_name[stable_id(record["case_id"]), record["basis"]]

        ops = [
            {
                "op": op,
                "pass": name,
                "rows": [{**row, "link": link(row)} for row in rows],
                "figures": _sweep(
                    inline,
                    lambda axis: draw.report.speed_figure(inline, op, name, rows, axis, True),
                    rows,
                    lambda record: record["median_s"] * 1e6,
                    link,
                ),
            }
            for (op, name), rows in sorted(tables.speed(whole).items())
        ]
        parts.append(
            {
                "device": device,
                "run": run,
                "ops": ops,
                "count": len(target),
                "roofline": _roofline(inline, whole, link),
                "ceilings": sorted(run.ceilings.items()),
                "records": [{**record, "link": link(record)} for record in records],
            }
        )
    site.page("speed.html", "speed.html.j2", parts=parts)
    site.page("roofline.html", "roofline.html.j2", parts=parts)


def _roofline(inline, whole, link):
    cells = [
        record
        for record in whole.of("bench")
        if record.get("flop") and record.get("bytes_min_bytes") and record["basis"] in ("cold", "graph")
    ]

    def add(axes):
        marks = axes.scatter(
            [r["flop"] / r["bytes_min_bytes"] for r in cells],
            [r["flop"] / r["median_s"] / 1e12 for r in cells],
            s=30,
            alpha=0.0,
            zorder=5,
        )
        marks.set_urls([link(record) for record in cells])

    inline.after = add
    figure = draw.report.roofline_figure(inline, whole)
    inline.after = None
    return figure


def memory(site, every):
    parts = []
    for device, run in newest_with(site.store, lambda run: run.records["memory"]).items():
        inline = _Linked()
        records = [{**record, "row": f"m{number}"} for number, record in enumerate(run.records["memory"])]
        ops = [
            {
                "op": op,
                "pass": name,
                "rows": rows,
                "figures": _sweep(
                    inline,
                    lambda axis: draw.report.memory_figure(inline, op, name, rows, axis),
                    rows,
                    lambda r: (
                        (r["tensors_bytes"] + r["arena_bytes"]) / 2**20 if r.get("arena_bytes") is not None else None
                    ),
                    lambda r: draw.row_link(r["row"]),
                ),
            }
            for (op, name), rows in sorted(tables.memory(as_run(run, {"memory": records})).items())
        ]
        parts.append({"device": device, "run": run, "ops": ops})
    site.page("memory.html", "memory.html.j2", parts=parts, raw=raw_text, repro=landing.repro)
