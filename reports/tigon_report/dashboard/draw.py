# SPDX-License-Identifier: Apache-2.0
"""Figures of the dashboard: matplotlib draws each once; its colours become CSS variables, so the page's theme rules.

The SVG is put into the page itself: links in it work without a script, and light and dark need one drawing.
"""

import itertools
import re

import matplotlib

matplotlib.use("Agg")
from matplotlib.figure import Figure  # noqa: E402

from .. import figures as report  # noqa: E402

# Stand-in colours, replaced by CSS variables of the same name when a figure is written.
_NAMES = [
    "text",
    "line",
    "bad",
    "good",
    "dim",
    "fill",
    "c-fused",
    "c-naive",
    "c-cudnn",
    "c-torch",
    "c-compile",
    "c-liger",
    "c-other",
    *(f"h{level}" for level in range(9)),
]
_STAND_IN = {name: f"#0a0b{number + 16:02x}" for number, name in enumerate(_NAMES)}
_VARIABLE = {colour: f"var(--{name})" for name, colour in _STAND_IN.items()}
_COLOUR = re.compile("|".join(_VARIABLE))
_ID = re.compile(r'\b(id="|href="#|url\(#)([^")]+)')
STYLE = {
    **report.TRANSPARENT,
    "svg.hashsalt": "tigon",
    "svg.fonttype": "none",
    "font.size": 10,
    "font.family": "sans-serif",
    "text.color": _STAND_IN["text"],
    "axes.labelcolor": _STAND_IN["text"],
    "xtick.color": _STAND_IN["text"],
    "ytick.color": _STAND_IN["text"],
    "axes.edgecolor": _STAND_IN["line"],
    "grid.color": _STAND_IN["line"],
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "axes.facecolor": "none",
    "path.simplify": True,
}
THEME = {
    "text": _STAND_IN["text"],
    "grid": _STAND_IN["line"],
    "limit": _STAND_IN["bad"],
    "colours": {name[2:]: _STAND_IN[name] for name in _NAMES if name.startswith("c-")},
}
LINK = "tigon-row:"  # a link to a row of the same page: told apart from references between parts of the drawing


def colour(name):
    return _STAND_IN[name]


def row_link(row):
    return LINK + row


class Inline:
    """Draws figures for one page. Has the interface of the report's Figures, and returns {svg, alt, light: ''}."""

    def __init__(self):
        self._numbers = itertools.count(1)

    def draw(self, name, alt, drawing, size=(7.2, 3.6), panels=1, layout="constrained"):
        with matplotlib.rc_context(STYLE):
            figure = Figure(figsize=size, layout=layout)
            axes = figure.subplots(1, panels, squeeze=False)[0]
            drawing(axes if panels > 1 else axes[0], THEME)
            return {"svg": self._markup(figure, alt), "alt": alt, "name": name}

    def bare(self, name, alt, drawing, size):
        """As draw, but drawing(figure) places its own axes: cheaper by half for hundreds of figures."""
        with matplotlib.rc_context(STYLE):
            figure = Figure(figsize=size)
            drawing(figure)
            return {"svg": self._markup(figure, alt), "alt": alt, "name": name}

    def _markup(self, figure, alt):
        svg = report.svg_of(figure, {"Date": None, "Creator": None})
        svg = svg[svg.index("<svg") :]
        svg = re.sub(r"\s*<metadata>.*?</metadata>", "", svg, flags=re.S)
        svg = re.sub(r'<svg [^>]*?viewBox="([^"]+)"[^>]*>', self._head(figure, alt), svg, count=1, flags=re.S)
        prefix = f"f{next(self._numbers)}-"
        svg = _ID.sub(lambda match: match[1] + prefix + match[2], svg)
        svg = re.sub(r"(font: [^';]*)'DejaVu Sans'[^;\"]*", r"\1sans-serif", re.sub(r"\n\s*", " ", svg)).replace(
            "> <", "><"
        )
        svg = _COLOUR.sub(lambda match: _VARIABLE[match[0]], svg).replace("xlink:href", "href")
        return svg.replace(f'href="{LINK}', 'href="#').replace(' target="_blank"', "")

    @staticmethod
    def _head(figure, alt):
        width, height = figure.get_size_inches() * 96
        label = alt.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
        shape = f'width="{width:.0f}" style="aspect-ratio:{width:.0f}/{height:.0f}"'
        return f'<svg viewBox="\\1" {shape} role="img" aria-label="{label}">'


def course(series, width=96, height=18, most=48):
    """The history in the size of a word: an SVG path of at most `most` medians, and the newest noise band."""
    import numpy

    if len(series.ratio) < 2:
        return ""
    values = numpy.array([numpy.median(part) for part in numpy.array_split(series.ratio, min(most, len(series.ratio)))])
    centre, half = float(series.centre[-1]), float(series.half[-1])
    low, high = min(values.min(), centre - half), max(values.max(), centre + half)
    scale = (height - 2) / (high - low or 1.0)
    x = numpy.linspace(1, width - 1, len(values))
    path = "L".join(f"{a:.0f} {1 + (high - b) * scale:.1f}" for a, b in zip(x, values))
    return (
        f'<svg class="course" width="{width}" height="{height}" aria-hidden="true">'
        f'<rect y="{1 + (high - centre - half) * scale:.1f}" width="{width}" height="{2 * half * scale:.1f}"/>'
        f'<path d="M{path}"/></svg>'
    )


def date_ticks(axes, runs):
    """About seven dates under an axis of run numbers; runs are equally far apart, whatever the calendar says."""
    count = len(runs)
    places = sorted({round(i * (count - 1) / 6) for i in range(7)}) if count > 1 else [0]
    axes.set_xticks(places, [runs[place].started[:10] for place in places])
    axes.set_xlim(-0.5 - 0.01 * count, count - 0.5 + 0.01 * count)


def heat_map(inline, cells, name, alt, level, text):
    """Op and sizes by T: a cell's colour is level(value), 0 to 8, its text text(value); it links to its history.

    `cells` is (rows, columns, {(row, column): value}, {(row, column): link}).
    """
    from matplotlib.patches import Rectangle

    rows, columns, values, links = cells

    def drawing(figure):
        width, height = figure.get_size_inches()
        left, top = _label_inches(rows) / width, 0.35 / height
        axes = figure.add_axes((left, 0.02, 1 - left - 0.01, 0.98 - top))
        axes.grid(False)
        for (row, column), value in values.items():
            box = Rectangle((column, row), 0.96, 0.92, color=colour(f"h{level(value)}"), linewidth=0)
            box.set_url(links[row, column])
            axes.add_patch(box)
            shown = axes.text(column + 0.48, row + 0.5, text(value), ha="center", va="center", fontsize=7)
            shown.set_url(links[row, column])
        axes.set_xlim(0, max(1, len(columns)))
        axes.set_ylim(len(rows), 0)
        axes.set_yticks([i + 0.46 for i in range(len(rows))], rows, fontsize=8)
        axes.set_xticks([i + 0.48 for i in range(len(columns))], columns, fontsize=7)
        axes.xaxis.tick_top()
        axes.tick_params(length=0)
        for side in axes.spines.values():
            side.set_visible(False)

    return inline.bare(name, alt, drawing, (_label_inches(rows) + 0.05 + 0.62 * len(columns), 0.4 + 0.25 * len(rows)))


def _label_inches(rows):
    """Room for the longest row name at 8 points: the browser's font is not known, so a generous width per letter."""
    return 0.15 + 0.073 * max(map(len, rows))


def share_level(share):
    """Share of the ceiling as a level: 0 (full blue) above 90 %, one paler for each ten less, 4 from 60 % down."""
    return max(0, min(4, int((1 - share) * 10)))


def heat_level(change):
    """0 (faster by 5 % and more) to 8 (slower by 5 % and more), 4 within 1 %."""
    limits = (-0.05, -0.03, -0.02, -0.01, 0.01, 0.02, 0.03, 0.05)
    return sum(change > limit for limit in limits)


def ceilings_figure(inline, runs, events):
    """The environment's timeline: what the machine could do in every run, and what changed when.

    `events` maps a run's id to the kinds of what changed with it.
    """
    import statistics

    names = sorted({name for run in runs for name in run.ceilings})
    if len(runs) < 2 or not names:
        return None

    def drawing(axes, theme):
        shades = ["fused", "naive", "cudnn", "torch", "compile", "liger"]
        for name, shade in zip(names, itertools.cycle(shades)):
            have = [(index, run.ceilings[name]) for index, run in enumerate(runs) if name in run.ceilings]
            middle = statistics.median(value for _, value in have)
            axes.plot(
                [index for index, _ in have],
                [100 * value / middle for _, value in have],
                linewidth=0.8,
                label=name,
                color=theme["colours"][shade],
            )
        for index, run in enumerate(runs):
            if run.id in events:
                axes.axvline(index - 0.5, color=colour("dim"), linewidth=1, linestyle="--")
                axes.annotate(
                    ", ".join(events[run.id]),
                    (index - 0.5, 1.02),
                    fontsize=8,
                    color=colour("dim"),
                    xycoords=("data", "axes fraction"),
                    ha="center",
                    va="bottom",
                )
        date_ticks(axes, runs)
        axes.set_ylabel("% of the median")
        axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))

    return inline.draw(
        "ceilings",
        "Measured ceilings of every run, as a share of their median, and what changed when",
        drawing,
        size=(12.4, 3.4),
    )


__all__ = ["Inline", "heat_map", "course", "ceilings_figure", "colour", "row_link", "report"]
