# SPDX-License-Identifier: Apache-2.0
"""The chart of a page: the time of peers over that of the kernels. Its data stand at the end of its SVG."""
import json
import math
import re

from .cited_tables import NAMES, PYTORCH, best_of_others, case, cells

DATA = re.compile(r"^<!-- data: (.*) -->$", re.M)
THEMES = ("light", "dark")


def data_of(runs):
    """What a page's chart shows: PyTorch eager and compiled, and the fastest other package."""
    return rows_of(cells(runs), lambda cell: [cell["peers"].get(impl) for impl in PYTORCH] + [best_of_others(cell)])


def rows_of(found, shown_of):
    """[{case, points: [{impl, ratio, low, high}]}]: of each cell the peers that `shown_of` chooses."""
    names = [case(cell["ours"]) for cell in found]
    rows = []
    for cell, name in zip(found, names):
        size = f", {cell['ours']['where'].split()[-1]}" if names.count(name) > 1 else ""
        rows.append({"case": name + size, "points": [_point(row) for row in shown_of(cell) if row]})
    return rows


def _point(row):
    low, high = (row["against"][key] for key in ("low", "high"))
    known = math.isfinite(low) and math.isfinite(high)  # too few samples give no interval
    return {"impl": row["impl"], "ratio": round(row["against"]["ratio"], 3), "low": round(low, 3) if known else None,
            "high": round(high, 3) if known else None}


def files(stem):
    return [stem.with_name(f"{stem.name}-{theme}.svg") for theme in THEMES]


def data_in(file):
    """The data of a chart that was drawn; None where there is no such file, or no data in it."""
    found = DATA.search(file.read_text(encoding="utf-8")) if file.is_file() else None
    return json.loads(found[1]) if found else None


def draw(stem, rows, drawn):
    """Draws the light and the dark chart of a page: `drawn` is the function that does."""
    from . import figures  # with matplotlib, which a check does without

    drawn(figures.Figures(stem.parent), stem.name, rows)
    for file in files(stem):
        text = file.read_text(encoding="utf-8")
        file.write_text(f"{text.rstrip()}\n<!-- data: {json.dumps(rows)} -->\n", encoding="utf-8")


def figure(folder, name, rows):
    """Draws into `folder`, a figures.Figures; right of the line Tigon is ahead."""
    def drawing(ax, theme):
        _draw_points(ax, theme, rows)
        ax.set_yticks(range(len(rows)), [row["case"] for row in rows])
        ax.set_ylim(len(rows) - 0.5, -0.5)
        ax.set_xlabel("time / time of Tigon; right of the line Tigon is faster")
        ax.legend(fontsize=9, loc="upper left", bbox_to_anchor=(1.0, 1.0))

    return folder.draw(name, alt_of(rows), drawing, size=(9.6, 1.2 + 0.26 * len(rows)))


def narrow_figure(folder, name, rows):
    """The same for the width of a phone: names above their points, what the marks mean below."""
    shown = len(_shown(rows))

    def drawing(ax, theme):
        _draw_points(ax, theme, rows)
        ax.set_yticks([at - 0.55 for at in range(len(rows))], [])  # a line above each name
        ax.tick_params(axis="y", length=0)
        for at, row in enumerate(rows):
            ax.text(0.01, at - 0.37, row["case"], transform=ax.get_yaxis_transform(), fontsize=9, va="center")
        ax.set_ylim(len(rows) - 0.6, -0.6)
        ax.set_xlabel("time / time of Tigon; right of the line Tigon is faster", fontsize=9)
        ax.legend(fontsize=9, loc="upper center", bbox_to_anchor=(0.5, -0.6 / (0.5 * len(rows))), ncol=2)

    return folder.draw(name, alt_of(rows), drawing, size=(4.6, 0.7 + 0.5 * len(rows) + 0.2 * ((shown + 1) // 2)))


def _draw_points(ax, theme, rows):
    from . import figures

    for impl in _shown(rows):
        mine = [(at + _side(row, point), point) for at, row in enumerate(rows) for point in row["points"] if point["impl"] == impl]
        ends = [[abs(point["ratio"] - (point[end] or point["ratio"])) for _, point in mine] for end in ("low", "high")]
        ax.errorbar([point["ratio"] for _, point in mine], [at for at, _ in mine], xerr=ends,
                    fmt=figures.MARKERS.get(impl, "v"), markersize=6, linewidth=1.2, color=figures.colour(theme, impl),
                    label=NAMES.get(impl, impl))
    ax.axvline(1, color=theme["limit"], linewidth=1.4)
    ax.set_xscale("log", base=2)
    ax.xaxis.set_major_formatter(figures.FuncFormatter(lambda value, _: f"{value:g}"))


def _side(row, point):
    """How far from the middle of its row a point stands."""
    return 0.4 * (row["points"].index(point) / max(len(row["points"]) - 1, 1) - 0.5)


def alt_of(rows):
    return f"Time over that of Tigon in {len(rows)} cases: {', '.join(NAMES.get(impl, impl) for impl in _shown(rows))}"


def _shown(rows):
    """The implementations, in the order of NAMES; others behind them."""
    have = {point["impl"] for row in rows for point in row["points"]}
    return [impl for impl in NAMES if impl in have] + sorted(have - set(NAMES))


def markup(stem, alt):
    """The chart in a page, where `stem` is its path from the page's folder."""
    light, dark = files(stem)
    return (f'<picture><source media="(prefers-color-scheme: dark)" srcset="{dark.as_posix()}">\n'
            f'<img alt="{alt}" src="{light.as_posix()}"></picture>\n')
