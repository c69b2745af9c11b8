# SPDX-License-Identifier: Apache-2.0
"""The pages of the newest state beside speed: error, convergence, kernels, trust, environment."""

import collections

from .. import tables
from . import causes, draw, landing
from .newest import as_run, newest_with, raw_text


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
        {"device": device, "run": run, "rows": tables.traffic(as_run(run, {"trace": run.records["trace"]}))}
        for device, run in traffic.items()
    ]
    site.page("accuracy.html", "accuracy.html.j2", parts=parts, counted=counted, raw=raw_text, repro=landing.repro)


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
            as_run(run, {kind: run.records[kind] for kind in ("converge", "converge_verdict")})
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
    site.page("convergence.html", "convergence.html.j2", parts=parts, raw=raw_text)


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
    site.page("kernels.html", "kernels.html.j2", parts=parts, moved=moved[::-1], raw=raw_text)


def _trust(site, every):
    """How far judge and gate can be trusted: A/A, gates, planted faults, faults of the world, soak."""
    store = site.store
    aa = [(run, record) for run in store.runs for record in run.records["aa"]]
    suites = [(run, record) for run, record in aa if record.get("scope") == "suite"]
    newest = suites[-1][0] if suites else None
    planted = [
        (run, tables.mutants(as_run(run, {"mutant": run.records["mutant"]})))
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
        raw=raw_text,
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
    for page in (_accuracy, _convergence, _kernels, _trust, _environment):
        page(site, every)
