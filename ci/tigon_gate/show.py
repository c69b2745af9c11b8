# SPDX-License-Identifier: Apache-2.0
"""What a gate prints."""
from .decide import Outcome

_ORDER = [Outcome.SLOWER, Outcome.INCONCLUSIVE, Outcome.FASTER, Outcome.SAME]


def seconds(value):
    for factor, unit in ((1e6, "us"), (1e3, "ms")):
        if value * factor < 1000:
            return f"{value * factor:.4g} {unit}"
    return f"{value:.4g} s"


def percent(change):
    return f"{100 * change:+.2f}%"


def table(cells, judged, margins, base_s, head_s):
    """One line per cell, worst first."""
    width = max(len(cell.name) for cell in cells)
    order = sorted(range(len(cells)), key=lambda i: (_ORDER.index(judged[i].outcome), -judged[i].change))
    lines = [f"{'':<12} {'cell':<{width}} {'base':>9} {'head':>9} {'change':>8} {'95% interval':>19} {'margin':>7} pairs"]
    for i in order:
        one = judged[i]
        lines.append(f"{one.outcome.value:<12} {cells[i].name:<{width}} {seconds(base_s[i]):>9} {seconds(head_s[i]):>9} "
                     f"{percent(one.change):>8} {percent(one.lower):>8} .. {percent(one.upper):>7} "
                     f"{100 * margins[i]:6.2f}% {len(one.log_ratios):>5}")
    return "\n".join(lines)


def sources(cells, margins):
    """Where the margins come from, one line per source."""
    by_source = {}
    for cell, margin in zip(cells, margins):
        by_source.setdefault(margin.source, []).append(cell)
    return "\n".join(f"margin: {source} ({len(of)} cells)" for source, of in by_source.items())


def reasons(cells, judged):
    """A sentence for each cell that is not simply the same."""
    lines = []
    for cell, one in zip(cells, judged):
        if one.outcome == Outcome.SLOWER:
            how = "found again by fresh pairs" if one.first == Outcome.SLOWER else "at the second look, with all pairs"
            lines.append(f"slower: {cell.op} {cell.pass_name} by {percent(one.change)} "
                         f"({percent(one.lower)} .. {percent(one.upper)}), {how}: {cell.name}")
        elif one.outcome == Outcome.INCONCLUSIVE:
            if not one.remeasured:
                why = "no time was left for fresh pairs"
            elif one.first in (Outcome.SLOWER, Outcome.FASTER):
                why = f"looked {one.first.value} at first, fresh pairs did not confirm it"
            else:
                why = "its interval reaches beyond the margin, but no change is sure"
            lines.append(f"inconclusive: {cell.op} {cell.pass_name} {percent(one.change)}: {why}: {cell.name}")
    return "\n".join(lines)


def last_line(judged):
    passed = sum(one.outcome in (Outcome.SAME, Outcome.FASTER) for one in judged)
    failed = sum(one.outcome == Outcome.SLOWER for one in judged)
    return passed, failed, len(judged) - passed - failed
