# SPDX-License-Identifier: Apache-2.0
"""The next-action experiment: accuracy of its predictors on learners held out, and the gaps between them."""
from . import figures as draw


def of(run):
    """{predictors, gaps} of a run, or None when it has no such records."""
    predictors = run.of("next_action")
    return {"predictors": predictors, "gaps": run.of("next_action_gap")} if predictors else None


def share(record, name):
    """'76.2 % (75.1 to 77.3)'; a dash where there is no number."""
    value, low, high = (record[name + end] for end in ("", "_low", "_high"))
    if value is None:
        return "–"
    if low is None or high is None:
        return f"{100 * value:.1f} %"
    return f"{100 * value:.1f} % ({100 * low:.1f} to {100 * high:.1f})"


def points(record):
    """'+1.83 (+1.40 to +2.26)'."""
    texts = ["–" if record[f"top1{end}"] is None else f"{100 * record[f'top1{end}']:+.2f}" for end in ("", "_low", "_high")]
    return f"{texts[0]} ({texts[1]} to {texts[2]})"


def figure(figures, predictors):
    """Bars of top-1 with intervals; a mark where the paper's predictor stood on its own data, a line at the bound."""
    bound = next((record for record in predictors if record["predictor"] == "true law"), None)
    rows = [record for record in predictors if record is not bound and record["top1"] is not None]
    if not rows:
        return None

    def drawing(ax, theme):
        names = [record["predictor"] for record in rows]
        values = [100 * record["top1"] for record in rows]
        errors = [[abs(100 * (record["top1"] - record[key])) if record[key] is not None else 0 for record in rows]
                  for key in ("top1_low", "top1_high")]
        ax.barh(names, values, xerr=errors, height=0.5, color=draw.colour(theme, "fused"), label="here, 95 % by learner",
                error_kw={"ecolor": theme["text"], "capsize": 3})
        published = [record for record in rows if record["published"] is not None]
        if published:
            ax.plot([100 * record["published"] for record in published], [record["predictor"] for record in published],
                    linestyle="", marker="D", color=draw.colour(theme, "naive"), label="published, on other data")
        if bound:
            ax.axvline(100 * bound["top1"], color=theme["limit"], linewidth=1.4, label="the true law: nobody can expect more")
        ax.invert_yaxis()
        ax.set_xlim(0, 100)
        ax.set_xlabel("held-out actions predicted, %")
        ax.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=3)

    return figures.draw("next-action", "Top-1 accuracy of each predictor of learners' next actions", drawing,
                        size=(8.5, 1.7 + 0.4 * len(rows)))
