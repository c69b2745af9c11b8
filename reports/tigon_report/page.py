# SPDX-License-Identifier: Apache-2.0
"""Puts tables and figures of a run together and renders index.html and summary.md."""
import dataclasses
import itertools
import pathlib

import jinja2

from . import figures as draw
from . import gates, load, next_action, peers, step_parts, tables, targets, units

TEMPLATES = pathlib.Path(__file__).parent / "templates"


def sections(run, figures, host_times=False):
    """Everything the templates show of one run; wall times of the host executor only when they are asked for."""
    checks = tables.correctness(run)
    speed = [{"op": op, "pass": name, "rows": rows,
              "figures": [figure for axis in draw.sweep_axes(draw.preferred(rows))[:2]
                          if (figure := draw.speed_figure(figures, op, name, rows, axis, run.on_gpu))]}
             for (op, name), rows in (tables.speed(run).items() if run.on_gpu or host_times else ())]
    memory = [{"op": op, "pass": name, "rows": rows,
               "figures": [figure for axis in draw.sweep_axes(draw.preferred(rows))[:2]
                           if (figure := draw.memory_figure(figures, op, name, rows, axis))]}
              for (op, name), rows in tables.memory(run).items()]
    traffic = tables.traffic(run)
    return {
        "run": run, "counts": tables.verdict_counts(run), "headline": tables.headline(run), "checks": checks,
        "failures": tables.failures(run),
        "summary_speed": [{"op": part["op"], "pass": part["pass"], "row": row} for part in speed
                          if run.on_gpu and (row := tables.largest(part["rows"]))],
        "host_times": host_times, "headroom": draw.headroom_figure(figures, checks), "speed": speed, "memory": memory,
        "roofline": draw.roofline_figure(figures, run), "ceilings": tables.ceilings(run),
        "peers": peers.section(figures, run),
        "traffic": traffic, "traffic_figure": draw.traffic_figure(figures, traffic),
        "environment": tables.environment(run), "mutants": tables.mutants(run),
        "faults": tables.faults(run), "soak": tables.soak(run),
        "gates": gates.of(run), **training(run, figures),
    }


def training(run, figures):
    """What the templates show of the trainings of one run."""
    return {
        "run": run,
        "convergence": [{"config": config, "dtype": dtype, **entry,
                         "figure": draw.convergence_figure(figures, config, dtype, entry)}
                        for (config, dtype), entry in tables.convergence(run).items()],
        "step_parts": step_parts.section(figures, run),
        "claims": run.of("claim"), "claims_figure": draw.claims_figure(figures, run.of("claim")),
        "next_action": next_action.of(run, figures),
        "gradients": tables.gradients(run), "controls": tables.controls(run),
    }


@dataclasses.dataclass
class Recorded:
    """Runs of other machines that a report shows behind its own, each named as recorded."""

    runs: list = dataclasses.field(default_factory=list)  # whole
    benches: list = dataclasses.field(default_factory=list)  # only beside what was set out
    trainings: list = dataclasses.field(default_factory=list)
    gates: list = dataclasses.field(default_factory=list)
    judged: list = dataclasses.field(default_factory=list)  # of which soak runs are shown

    @staticmethod
    def load(folder):
        folder = pathlib.Path(folder)
        return Recorded(*(load.load_recorded(folder / part) for part in ("", "bench", "converge", "gate", "judge")))


def _by_file(runs):
    """Lists of the runs that one file holds: parts of one thing that took several commands."""
    return [list(group) for _, group in itertools.groupby(runs, key=lambda run: run.path)]


def write(run, recorded, folder, host_times=False):
    """Writes index.html, summary.md and figures/ for `run` into `folder`; what is `recorded` is shown behind it.

    Returns the path of index.html. Raises OSError when a file cannot be written.
    """
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    shown = [sections(run, draw.Figures(folder / "figures"), host_times)]
    shown += [sections(other, draw.Figures(folder / "figures", f"recorded{index}-"))
              for index, other in enumerate([] if run.on_gpu else recorded.runs)]
    trainings = [{"runs": runs, **training(load.joined(runs), draw.Figures(folder / "figures", f"recordedtraining{index}-"))}
                 for index, runs in enumerate([] if run.on_gpu else _by_file(recorded.trainings))]
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(TEMPLATES), trim_blocks=True, lstrip_blocks=True,
                                     autoescape=jinja2.select_autoescape(["html", "j2"]), undefined=jinja2.StrictUndefined)
    environment.filters.update(seconds=units.seconds, bytes=units.binary_bytes, percent=units.percent,
                               number=units.number, share=next_action.share, points=next_action.points)
    soaks = _by_file(run for run in recorded.judged if run.of("soak"))
    context = {"main": shown[0], "recorded": shown[1:], "trainings": trainings, "rate": units.rate,
               "targets": targets.of([run, *recorded.runs, *recorded.benches]),
               "gates": [{"run": gate, "found": gates.of(gate)} for gate in recorded.gates if gates.of(gate)],
               "soaks": [{"runs": runs, "soak": tables.soak(load.joined(runs))} for runs in soaks]}
    page = folder / "index.html"
    page.write_text(environment.get_template("index.html.j2").render(context), encoding="utf-8")
    environment.autoescape = False  # Markdown is not HTML
    (folder / "summary.md").write_text(environment.get_template("summary.md.j2").render(context), encoding="utf-8")
    return page
