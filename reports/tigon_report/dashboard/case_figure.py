# SPDX-License-Identifier: Apache-2.0
"""The history of one case as a drawing: hundreds of pages have one, so it is written by hand, in whole pixels."""

import itertools
import math
from xml.sax.saxutils import escape, quoteattr

import numpy

WIDTH, HEIGHT = 1190, 346
LEFT, RIGHT, TOP, BOTTOM = 84, 1150, 30, 300
MARKS = (  # within the limits, above, below
    '<circle id="in" r="3"/><path id="up" d="M-5 4H5L0-5z"/><path id="down" d="M-5-4H5L0 5z"/>'
)


def case_figure(series, shown):
    """The time of a case in µs, run by run, with its level, noise band and steps.

    Where runs have an anchor a time is what it would have been with the anchor of the newest run. `shown` holds the
    indices drawn as points, each a link to its row; the line runs through every run. Points far outside lie on the edge
    with their value beside them, so that one spike does not flatten the rest.
    """
    scale = 1e6 * series.last.median_s / math.exp(float(series.ratio[-1]))
    us, centre, low_band, high_band = (
        scale * numpy.exp(values)
        for values in (series.ratio, series.centre, series.centre - series.half, series.centre + series.half)
    )
    frame = _Frame(len(us), *_limits(us, centre, low_band, high_band))
    edges = sorted({0, len(us) - 1, *itertools.chain.from_iterable((c.index - 1, c.index) for c in series.changes)})
    parts = [
        *_axes(frame, series),
        f'<path fill="var(--fill)" d="{frame.path(edges, low_band)}L{frame.path(edges[::-1], high_band)[1:]}z"/>',
        f'<path fill="none" stroke="var(--c-fused)" stroke-opacity=".45" d="{frame.path(range(len(us)), us)}"/>',
        f'<path fill="none" stroke="var(--dim)" d="{frame.path(edges, centre)}"/>',
        *_steps(frame, series),
        *_points(frame, series, shown, us),
    ]
    what = f"time with {series.anchor} as in the newest run" if series.anchor else "time"
    alt = f"{series.name} {series.cell.basis}: {what} over runs, with noise band and steps"
    svg = (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" role="img" aria-label={quoteattr(alt)} fill="var(--text)" '
        f'font-size="13" font-family="sans-serif"><defs>{MARKS}</defs>{"".join(parts)}</svg>'
    )
    return {"svg": svg, "alt": alt, "name": series.slug}


class _Frame:
    """Where values lie on the drawing."""

    def __init__(self, count, low, high):
        self.count, self.low, self.high = count, low, high

    def x(self, index):
        return round(LEFT + (RIGHT - LEFT) * (index + 0.5) / self.count)

    def y(self, value):
        share = (min(self.high, max(self.low, float(value))) - self.low) / (self.high - self.low)
        return round(BOTTOM - (BOTTOM - TOP) * share)

    def path(self, indices, values):
        """An SVG path; of its points behind the first the distances, which are shorter to write."""
        points = [(self.x(index), self.y(values[index])) for index in indices]
        steps = (f"{x - before_x} {y - before_y}" for (before_x, before_y), (x, y) in itertools.pairwise(points))
        return f"M{points[0][0]} {points[0][1]}l" + " ".join(steps).replace(" -", "-")


def _limits(us, centre, low_band, high_band):
    """Ends of the axis that hold every level with its band, and the points that are not far outside of them."""
    low = float((centre - 1.5 * (centre - low_band)).min())
    high = float((centre + 1.5 * (high_band - centre)).max())
    room = max(high - low, 1e-3 * high)
    near = us[(us > low - room) & (us < high + room)]
    low, high = min(low, float(near.min(initial=low))), max(high, float(near.max(initial=high)))
    margin = 0.05 * (high - low) or 0.01 * high
    return low - margin, high + margin


def ticks(low, high, most=6):
    """Round numbers from low to high, at most so many."""
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    digits = max(0, -math.floor(math.log10(step)))
    first = math.ceil(low / step)
    return [(k * step, f"{k * step:,.{digits}f}") for k in range(first, math.floor(high / step) + 1)]


def _axes(frame, series):
    unit = "µs" + (f" ({series.anchor} as in the newest run)" if series.anchor else "")
    yield f'<text transform="translate(14 {(TOP + BOTTOM) // 2}) rotate(-90)" text-anchor="middle">{escape(unit)}</text>'
    for value, text in ticks(frame.low, frame.high):
        y = frame.y(value)
        yield f'<path stroke="var(--line)" d="M{LEFT} {y}H{RIGHT}"/><text x="{LEFT - 6}" y="{y + 4}" text-anchor="end">{text}</text>'
    last = frame.count - 1
    for index in sorted({round(k * last / 6) for k in range(7)}):
        yield f'<text x="{frame.x(index)}" y="{BOTTOM + 20}" text-anchor="middle">{series.runs[index].started[:10]}</text>'
    yield f'<text x="{(LEFT + RIGHT) // 2}" y="{BOTTOM + 40}" text-anchor="middle">day of the run</text>'


def _steps(frame, series):
    for change, label in zip(series.changes, series.labels):
        tone = "dim" if label.cause == "noise" else "bad" if change.change > 0 else "good"
        x = (frame.x(change.index - 1) + frame.x(change.index)) // 2
        yield (
            f'<path stroke="var(--{tone})" stroke-dasharray="5 3" d="M{x} {TOP}V{BOTTOM}"/><text x="{x}" y="{TOP - 6}" '
            f'text-anchor="middle" fill="var(--{tone})">{100 * change.change:+.1f} % {label.cause}</text>'
        )


def _points(frame, series, shown, us):
    yield '<g fill="var(--c-fused)">'
    for index in shown:
        value = float(us[index])
        mark = "up" if value > frame.high else "down" if value < frame.low else "in"
        at = f'x="{frame.x(index)}" y="{frame.y(value)}"'
        yield f'<a href="#{series.runs[index].id}"><use href="#{mark}" {at}/></a>'
        if mark != "in":
            yield f'<text x="{frame.x(index) + 8}" y="{frame.y(value) + 4}">{value:,.4g}</text>'
    yield "</g>"
