# SPDX-License-Identifier: Apache-2.0
"""The report's page of what says how far to believe the others: faults, random cases, head-room, gates, environment."""
from . import figures as draw
from . import gates, load, tables
from .recorded import by_file


def page(run, recorded, folder):
    judged = [{"runs": runs, **section(load.joined(runs))} for runs in by_file(recorded.judged)]
    return {"own": section(run), "headroom": draw.headroom_figure(draw.Figures(folder), tables.correctness(run)),
            "recorded": [entry for entry in judged if is_shown(entry)],
            "gates": gates.of(run), "recorded_gates": [{"runs": [gate], "found": found, "planted": gates.is_planted(gate)}
                               for gate in recorded.gates if (found := gates.of(gate))],
            "environments": [{"run": one, "lines": tables.environment(one)} for one in (run, *recorded.measured)]}


def section(run):
    """The score of planted faults of a run, those of no op in full (an op's page has its own), and what else tried the judge,
    what the cases met."""
    return {"mutants": tables.mutants(run), "of_no_op": tables.mutants(run.only(None)), "faults": tables.faults(run), "soak": tables.soak(run),
            "coverage": run.of("coverage")}


def is_shown(entry):
    soak = entry["soak"]
    return bool(entry["mutants"]["rows"] or entry["faults"]["rows"] or entry["faults"]["skipped"] or entry["coverage"] or
                any(soak[key] for key in ("seeds", "repeats", "headroom", "rounding")))
