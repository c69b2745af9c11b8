# SPDX-License-Identifier: Apache-2.0
"""The report's page of trainings: convergence, papers' claims, a step by part, controls, gradients."""
from . import figures as draw
from . import load, next_action, step_parts, tables
from .recorded import by_file

KINDS = ("converge", "converge_verdict", "converge_gradients", "converge_states", "converge_seed", "converge_parts", "claim",
         "next_action")


def page(run, recorded, folder, host_times):
    """What the page shows: the trainings of the run, and behind them, unless it had a GPU, those that were recorded."""
    files = [] if run.on_gpu else by_file([*recorded.trainings, *recorded.runs])
    others = [runs for runs in files if is_in(load.joined(runs))]
    return {"own": section(run, draw.Figures(folder), host_times),
            "recorded": [{"runs": runs, **section(load.joined(runs), draw.Figures(folder, f"recordedtraining{index}-"), host_times)}
                         for index, runs in enumerate(others)]}


def is_in(run):
    return any(map(run.of, KINDS)) or bool(tables.controls(run))


def section(run, figures, host_times):
    """What the templates show of the trainings of one run; times of the host executor only when they are asked for."""
    claims, steps = run.of("claim"), next_action.of(run)
    times = run.on_gpu or host_times
    controls = tables.controls(run)
    return {
        "run": run, "times": times,
        "convergence": [{"config": config, "dtype": dtype, **entry, "figure": draw.convergence_figure(figures, config, dtype, entry)}
                        for (config, dtype), entry in tables.convergence(run).items()],
        "step_parts": step_parts.section(figures, run, times),
        "claims": claims, "claims_figure": draw.claims_figure(figures, claims),
        "next_action": steps and {**steps, "figure": next_action.figure(figures, steps["predictors"])},
        "gradients": tables.gradients(run), "states": tables.states(run), "repeats": run.of("converge_repeat"),
        "seeds": tables.seeds(run), "controls": controls, "escapes": tables.escapes(controls) if controls else [],
    }
