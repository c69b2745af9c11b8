# SPDX-License-Identifier: Apache-2.0
"""The CSV files of the site: every case, its time in every run, every step, every run, every failure."""

import json


def write(site, every, failed):
    """Writes data/cases.csv, times.csv, changes.csv, runs.csv and failures.csv."""
    times = {run.id: [None] * len(every) for run in site.store.runs if run.timed}  # seconds
    for column, series in enumerate(every):
        for run, point in zip(series.runs, series.points):
            times[run.id][column] = f"{point.median_s:.6g}"
    site.csv("data/times.csv", ("run_id", *(series.slug for series in every)), ([run_id, *row] for run_id, row in times.items()))
    site.csv(
        "data/cases.csv",
        ("case", "basis", "device", "runs", "median_s", "recent_change", "band", "steps", "page"),
        (
            (
                s.name,
                s.cell.basis,
                s.cell.device,
                len(s.runs),
                repr(s.last.median_s),
                f"{s.recent:.6g}",
                f"{s.half[-1]:.6g}",
                len(s.changes),
                f"case/{s.slug}.html",
            )
            for s in every
        ),
    )
    site.csv(
        "data/changes.csv",
        (
            "case",
            "basis",
            "device",
            "run_id",
            "started",
            "change",
            "p_value",
            "cause",
            "what",
            "commit_before",
            "commit_after",
        ),
        (
            (
                s.name,
                s.cell.basis,
                s.cell.device,
                label.after.id,
                label.after.started,
                f"{change.change:.6g}",
                f"{change.p_value:.3g}",
                label.cause,
                label.text,
                label.before.commit,
                label.after.commit,
            )
            for s in every
            for change, label in zip(s.changes, s.labels)
        ),
    )
    site.csv(
        "data/runs.csv",
        ("run_id", "started", "commit", "device", "environment", "passed", "failed", "cells", "origin", "file"),
        (
            (
                run.id,
                run.started,
                run.commit,
                run.device,
                json.dumps(run.environment(), sort_keys=True),
                run.checks.passed,
                run.checks.failed,
                run.timed,
                run.origin,
                run.file,
            )
            for run in site.store.runs
        ),
    )
    site.csv(
        "data/failures.csv",
        ("verdict", "case", "device", "run_id", "reason", "repro"),
        (
            (row["verdict"], row["case_id"], row["run"].device, row["run"].id, row["reason"], row["repro"])
            for row in failed
        ),
    )
