# SPDX-License-Identifier: Apache-2.0
"""The chart of a page: time and memory of a training step beside those of a model that one line patched."""
from . import statistics, training_steps

# A variant is drawn as what it is in the chart of kernels.
DRAWN_AS = {"eager": "torch", "compile": "compile", "liger": "liger", "tigon_cheap": "fused"}
NAMES = {"eager": "Hugging Face", "compile": "torch.compile", "liger": "Liger", "tigon_cheap": "Tigon with recompute"}


def data_of(runs):
    """[{case, points: [{impl, ratio, low, high, memory}]}]: time and memory over Tigon's, with the interval of the time."""
    found = []
    for case, variants in training_steps.rows([record for run in runs for record in run.of("training") if record["executor"] == "cuda"]).items():
        ours = variants.get(training_steps.OURS, {"verdict": "not_run"})
        others = {name: row for name, row in variants.items() if name in DRAWN_AS and row["verdict"] == "passed"}
        if ours["verdict"] == "passed" and others:
            found.append({"case": training_steps.case_text(case), "points": [_point(name, row, ours) for name, row in others.items()]})
    if not found:
        raise ValueError("no training steps beside Tigon's on a GPU in these records")
    return found


def _point(name, row, ours):
    known = all(0 < one["low"] and one["high"] < statistics.INFINITE for one in (row, ours))
    return {"impl": name, "ratio": round(ours["tokens_per_s"] / row["tokens_per_s"], 3), "low": round(ours["low"] / row["high"], 3) if known else None,
            "high": round(ours["high"] / row["low"], 3) if known else None, "memory": round(row["peak_bytes"] / ours["peak_bytes"], 3)}


def _shown(rows):
    have = {point["impl"] for row in rows for point in row["points"]}
    return [name for name in DRAWN_AS if name in have]


def alt_of(rows):
    return f"Time and memory over those with Tigon in {len(rows)} cases: {', '.join(NAMES[name] for name in _shown(rows))}"


def figure(folder, name, rows):
    """Draws into `folder`, a figures.Figures; right of the lines Tigon is faster, and takes less."""
    from . import figures

    def points(ax, theme, key):
        for impl in _shown(rows):
            mine = [(at, point) for at, row in enumerate(rows) for point in row["points"] if point["impl"] == impl]
            ends = [[abs(point[key] - (point[end] or point[key])) for _, point in mine] for end in ("low", "high")] if key == "ratio" else None
            ax.errorbar([point[key] for _, point in mine], [at for at, _ in mine], xerr=ends, fmt=figures.MARKERS[DRAWN_AS[impl]], markersize=6,
                        linewidth=1.2, color=figures.colour(theme, DRAWN_AS[impl]), label=NAMES[impl])
        ax.axvline(1, color=theme["limit"], linewidth=1.4)
        ax.set_ylim(len(rows) - 0.5, -0.5)

    def drawing(panels, theme):
        points(panels[0], theme, "ratio")
        points(panels[1], theme, "memory")
        panels[0].set_yticks(range(len(rows)), [row["case"] for row in rows])
        panels[1].set_yticks(range(len(rows)), [])
        panels[0].set_xlabel("time / time with Tigon")
        panels[1].set_xlabel("peak memory / that with Tigon")
        panels[1].legend(fontsize=9, loc="upper left", bbox_to_anchor=(1.0, 1.0))

    return folder.draw(name, alt_of(rows), drawing, size=(11.6, 1.2 + 0.4 * len(rows)), panels=2)
