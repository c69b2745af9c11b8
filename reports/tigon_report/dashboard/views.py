"""The pages that show the newest state: speed, memory, roofline, error, convergence, kernels, trust, environment."""

import collections
import json

from .. import load, tables
from . import causes, draw, landing
from .scan import stable_id


def _as_run(run, records):
    """A run of the report's kind made of `records`, so that the report's tables and figures serve here too."""
    return load.Run(run.file, run.header, records, run.end)


def newest_with(store, wanted):
    """{device: newest run for which wanted(run) holds}, GPUs first."""
    found = {run.device: run for run in store.runs if wanted(run)}
    return dict(sorted(found.items(), key=lambda item: (not item[1].on_gpu, item[0])))


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


def _speed(site, every):
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
        whole = _as_run(run, {"bench": records, "ceiling": [{"name": n, "value": v} for n, v in run.ceilings.items()]})

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
                    lambda record: record["median_s"] * 1e3,
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


def _memory(site, every):
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
            for (op, name), rows in sorted(tables.memory(_as_run(run, {"memory": records})).items())
        ]
        parts.append({"device": device, "run": run, "ops": ops})
    site.page("memory.html", "memory.html.j2", parts=parts, raw=_raw, repro=landing.repro)


def _raw(record):
    """A record as it is shown: without what this program added."""
    return json.dumps(
        {key: value for key, value in record.items() if key not in ("row", "where", "smaller", "link")},
        ensure_ascii=False,
    )


def _accuracy(site, every):
    parts = []
    for device, run in newest_with(site.store, lambda run: run.checks.cases).items():
        inline = draw.Inline()
        rows = [
            {
                "op": key[0],
                "pass": key[1],
                "impl": key[2],
                "dtype": key[3],
                "executor": key[4],
                "cases": count,
                "worst": run.checks.worst.get(key, (None, None))[0],
                "record": run.checks.worst.get(key, (None, None))[1],
            }
            for key, count in run.checks.cases.items()
        ]
        parts.append(
            {
                "device": device,
                "run": run,
                "rows": rows,
                "figure": draw.report.headroom_figure(inline, rows),
                "trend": _headroom_trend(inline, [run for run in site.store.runs if run.device == device]),
            }
        )
    traffic = newest_with(site.store, lambda run: run.records["trace"])
    counted = [
        {"device": device, "run": run, "rows": tables.traffic(_as_run(run, {"trace": run.records["trace"]}))}
        for device, run in traffic.items()
    ]
    site.page("accuracy.html", "accuracy.html.j2", parts=parts, counted=counted, raw=_raw, repro=landing.repro)


def _headroom_trend(inline, runs):
    """Worst error over budget of the fused kernels over the runs of a device that checked anything, per dtype."""
    runs = [run for run in runs if run.checks.worst]
    if len(runs) < 2:
        return None
    dtypes = sorted({key[3] for run in runs for key in run.checks.worst})

    def drawing(axes, theme):
        for dtype, shade in zip(dtypes, ("fused", "naive", "cudnn", "torch")):
            worst = [
                max(
                    (
                        error
                        for key, (error, _) in run.checks.worst.items()
                        if key[3] == dtype and key[2].startswith("fused")
                    ),
                    default=float("nan"),
                )
                for run in runs
            ]
            axes.plot(range(len(runs)), worst, marker="o", markersize=3, label=dtype, color=theme["colours"][shade])
        axes.axhline(1, color=theme["limit"], linewidth=1.2)
        draw.date_ticks(axes, runs)
        axes.set_ylabel("worst error / budget")
        axes.legend(fontsize=8)

    return inline.draw(
        "headroom-trend", "Worst error over budget of the fused kernels, run by run", drawing, size=(10, 3)
    )


def _convergence(site, every):
    parts = []
    for device, run in newest_with(site.store, lambda run: run.records["converge"]).items():
        inline = draw.Inline()
        entries = tables.convergence(
            _as_run(run, {kind: run.records[kind] for kind in ("converge", "converge_verdict")})
        )
        parts.append(
            {
                "device": device,
                "run": run,
                "entries": [
                    {
                        "config": config,
                        "dtype": dtype,
                        **entry,
                        "figure": draw.report.convergence_figure(inline, config, dtype, entry),
                    }
                    for (config, dtype), entry in entries.items()
                ],
            }
        )
    site.page("convergence.html", "convergence.html.j2", parts=parts, raw=_raw)


def aa_sentence(store):
    """The newest A/A suite record in one sentence, or '' when there is none."""
    for run in reversed(store.runs):
        for record in reversed(run.records["aa"]):
            if record.get("scope") == "suite":
                return f"{run.started[:10]}: " + "; ".join(
                    _rate_text(kind, record[kind]) for kind in ("measured", "simulated") if record.get(kind)
                )
    return ""


def _rate_text(kind, rate):
    return (
        f"{rate['false_blocks']} false blocks in {rate['suites']:,} suites ({kind}; at most "
        f"{100 * rate['rate_upper_95']:.2g} % with 95 % confidence)"
    )


def _kernels(site, every):
    """Static facts of the newest run that has them, and each kernel's history where it changed."""
    newest = newest_with(site.store, lambda run: run.records["static"])
    parts = [
        {
            "device": device,
            "run": run,
            "rows": [row for row in run.records["static"] if row.get("scope") != "suite"],
            "columns": sorted({name for row in run.records["static"] for name in row.get("numbers") or {}}),
            "summary": next((row for row in run.records["static"] if row.get("scope") == "suite"), None),
        }
        for device, run in newest.items()
    ]
    before, moved = {}, []
    for run in site.store.runs:
        for row in run.records["static"]:
            name = (row.get("kernel") or row.get("case_id"), row.get("arch"))
            old = before.get(name, row.get("numbers") or {})
            moved += [
                (run, *name, number, old.get(number), value)
                for number, value in (row.get("numbers") or {}).items()
                if number in old and old[number] != value
            ]
            before[name] = row.get("numbers") or {}
    site.page("kernels.html", "kernels.html.j2", parts=parts, moved=moved[::-1], raw=_raw)


def _trust(site, every):
    """How far judge and gate can be trusted: A/A, gates, planted faults, faults of the world, soak."""
    store = site.store
    aa = [(run, record) for run in store.runs for record in run.records["aa"]]
    suites = [(run, record) for run, record in aa if record.get("scope") == "suite"]
    newest = suites[-1][0] if suites else None
    planted = [
        (run, tables.mutants(_as_run(run, {"mutant": run.records["mutant"]})))
        for run in newest_with(store, lambda run: run.records["mutant"]).values()
    ]
    site.page(
        "trust.html",
        "trust.html.j2",
        suites=suites[::-1],
        rate_text=_rate_text,
        figure=_aa_figure(suites),
        cells=[record for run, record in aa if run is newest and record.get("scope") == "cell"],
        gates=[(run, record) for run in store.runs for record in run.records["gate"] if record.get("scope") == "suite"][
            ::-1
        ],
        gate_cells=[
            (run, record)
            for run in store.runs
            for record in run.records["gate"]
            if record.get("scope") == "cell" and record.get("outcome") in ("slower", "inconclusive")
        ][::-1][:100],
        planted=planted,
        faults=[(run, record) for run in store.runs[-50:] for record in run.records["fault"]],
        soak=[(run, record) for run in store.runs[-50:] for record in run.records["soak"]],
        raw=_raw,
    )


def _aa_figure(suites):
    if len(suites) < 2:
        return None

    def drawing(axes, theme):
        for kind, shade in (("measured", "fused"), ("simulated", "naive")):
            have = [(index, record[kind]) for index, (_, record) in enumerate(suites) if record.get(kind)]
            if have:
                axes.plot(
                    [index for index, _ in have],
                    [100 * rate["rate"] for _, rate in have],
                    marker="o",
                    markersize=4,
                    label=kind,
                    color=theme["colours"][shade],
                )
        axes.axhline(1, color=theme["limit"], linewidth=1.2)
        draw.date_ticks(axes, [run for run, _ in suites])
        axes.set_ylabel("false blocks per 100 suites")
        axes.legend(fontsize=8)

    return draw.Inline().draw(
        "aa", "How often the gate blocks a program against itself; the line is the promise", drawing, (10, 3)
    )


def _environment(site, every):
    events, before = [], {}
    for run in site.store.runs:
        if run.device in before:
            events += [(run, kind, text) for kind, text in causes.environment_changes(before[run.device], run).items()]
        before[run.device] = run
    kinds = collections.defaultdict(list)
    for run, kind, _ in events:
        kinds[run.id].append(kind)
    inline, ceilings = draw.Inline(), []
    for device in sorted({run.device for run in site.store.runs if run.ceilings}):
        runs = [run for run in site.store.runs if run.device == device and run.ceilings]
        ceilings.append((device, draw.ceilings_figure(inline, runs, kinds)))
    site.page("environment.html", "environment.html.j2", events=events[::-1], ceilings=[c for c in ceilings if c[1]])


def write(site, every):
    """Writes every page of this module."""
    for page in (_speed, _memory, _accuracy, _convergence, _kernels, _trust, _environment):
        page(site, every)
