# SPDX-License-Identifier: Apache-2.0
"""Figures with matplotlib, as SVG in a light and a dark version of the same size."""
import collections
import io
import itertools
import pathlib
import re

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.backends.backend_svg import FigureCanvasSVG  # noqa: E402
from matplotlib.lines import Line2D  # noqa: E402
from matplotlib.ticker import FuncFormatter, LogFormatter  # noqa: E402

from . import tables, units  # noqa: E402

# Okabe and Ito's palette: told apart with any colour vision. One colour per implementation everywhere.
COLOURS = {"fused": "#0072B2", "naive": "#E69F00", "cudnn": "#009E73", "torch": "#CC79A7", "compile": "#56B4E9",
           "liger": "#D55E00", "liger_cutedsl": "#A34700", "liger_hopper": "#6E3000", "quack": "#8C8C00", "quack_base": "#B5B500",
           "cce": "#6A51A3"}
DARK_COLOURS = {"fused": "#56B4E9", "naive": "#E69F00", "cudnn": "#2FBF95", "torch": "#E58FC0", "compile": "#9AD3F5",
                "liger": "#FF7F2A", "liger_cutedsl": "#FFA666", "liger_hopper": "#FFCBA4", "quack": "#E0E040",
                "quack_base": "#F0F09A", "cce": "#B8A6E8"}
MARKERS = {"fused": "o", "naive": "s", "cudnn": "^", "torch": "D", "compile": "P", "liger": "v", "liger_cutedsl": "<", "liger_hopper": ">", "quack": "X",
           "quack_base": "x", "cce": "*"}
DASHES = ("-", "--", ":", "-.", (0, (10, 2)), (0, (1, 4)), (0, (6, 2, 1, 2, 1, 2)), (0, (3, 5)))
THEMES = {
    "light": {"text": "#1f2328", "grid": "#d8dee4", "colours": COLOURS, "limit": "#B00020"},
    "dark": {"text": "#e6edf3", "grid": "#30363d", "colours": DARK_COLOURS, "limit": "#ff6b6b"},
}


def _dark_of_light():
    """{colour of the light theme: that of the dark one}, as SVG spells them."""
    light, dark = THEMES["light"], THEMES["dark"]
    pairs = [(light[key], dark[key]) for key in light if key != "colours"]
    pairs += [(light["colours"][impl], dark["colours"][impl]) for impl in light["colours"]]
    return {one.lower(): other.lower() for one, other in pairs}


TRANSPARENT = {"figure.facecolor": "none", "axes.facecolor": "none"}


def svg_of(figure, metadata):
    """A figure as SVG. What its savefig does, but for a first drawing of everything that nobody sees."""
    text, canvas = io.StringIO(), FigureCanvasSVG(figure)
    if engine := figure.get_layout_engine():
        engine.execute(figure)
        figure.set_layout_engine("none")
    canvas.print_svg(text, metadata=metadata)
    return text.getvalue()


class Figures:
    """Draws into a folder and hands out {light, dark, alt} for the page. A drawing takes (axes, theme).

    Drawn once, in the light theme: laying a figure out takes 0.2 s, exchanging its colours nothing.
    """

    def __init__(self, folder, prefix=""):
        self.folder, self.prefix = pathlib.Path(folder), prefix
        self.folder.mkdir(parents=True, exist_ok=True)

    def draw(self, name, alt, drawing, size=(7.2, 3.6), panels=1):
        name = units.file_name(name)
        light = self._svg(drawing, size, panels)
        swap = _dark_of_light()
        dark = re.sub("|".join(swap), lambda found: swap[found[0]], light)
        names = {}
        for theme, text in (("light", light), ("dark", dark)):
            file = self.folder / f"{self.prefix}{name}-{theme}.svg"
            file.write_text(text, encoding="utf-8")
            names[theme] = f"{self.folder.name}/{file.name}"
        return {**names, "alt": alt}

    @staticmethod
    def _svg(drawing, size, panels):
        theme = THEMES["light"]
        style = {"svg.hashsalt": "tigon", "svg.fonttype": "none", "font.size": 10, "font.family": "sans-serif",
                 "text.color": theme["text"], "axes.labelcolor": theme["text"], "xtick.color": theme["text"],
                 "ytick.color": theme["text"], "axes.edgecolor": theme["grid"], "grid.color": theme["grid"],
                 **TRANSPARENT, "axes.grid": True, "axes.axisbelow": True, "axes.spines.top": False, "axes.spines.right": False,
                 "legend.frameon": False}
        with plt.rc_context(style):
            figure, axes = plt.subplots(1, panels, figsize=size, layout="constrained", squeeze=False)
            drawing(axes[0] if panels > 1 else axes[0][0], theme)
            text = svg_of(figure, {"Date": None})
            plt.close(figure)
        return text


def colour(theme, impl):
    return theme["colours"].get(impl.split(":")[0], "#888888")


def series(records, axis):
    """Lines over `axis`: [(fixed axes, impl, dtype, basis), [records sorted by axis]] with at least two points."""
    groups = collections.defaultdict(list)
    for record in records:
        fixed = tuple((key, value) for key, value in record["axes"].items() if key != axis)
        groups[(fixed, record["impl"], record["dtype"], record.get("basis", ""))].append(record)
    lines = [(key, sorted(group, key=lambda r: r["axes"][axis])) for key, group in groups.items()]
    return [(key, group) for key, group in lines if len({r["axes"][axis] for r in group}) > 1]


def sweep_axes(records):
    """The axes over which these records form lines, longest sweeps first."""
    axes = list(dict.fromkeys(axis for record in records for axis in record["axes"]))
    ranked = [(max((len(group) for _, group in series(records, axis)), default=0), axis) for axis in axes]
    return [axis for count, axis in sorted(ranked, key=lambda pair: -pair[0]) if count > 1]


# Of records that were written before they said it themselves.
AXES = {"T": "tokens", "H": "hidden size", "G": "hidden size of the teacher", "F": "intermediate size", "V": "vocabulary size",
        "Q": "query heads", "K": "key heads", "D": "head size"}


def axis_label(axis, records):
    """An axis with what the contract of the records' op calls it."""
    meaning = next((record["axis_meanings"] for record in records if "axis_meanings" in record), AXES).get(axis)
    return f"{axis} ({meaning})" if meaning else axis


def log_axis(ax, axis, records):
    """Labels the sizes that were measured, without those that would run into the one before."""
    values = sorted({record["axes"][axis] for record in records})
    least = (values[-1] / values[0]) ** 0.12
    ticks = [values[0]]
    for value in values[1:]:
        if value / ticks[-1] >= least:
            ticks.append(value)
    if ticks[-1] != values[-1]:
        ticks[-1 if len(ticks) > 1 else len(ticks):] = [values[-1]]
    ax.set_xscale("log", base=2)
    ax.set_xticks(ticks)
    ax.minorticks_off()
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    ax.set_xlabel(axis_label(axis, records))


def preferred(records):
    """One dtype and one basis to draw: bf16 and cold where they were measured; the table has the rest."""
    for key, order in (("dtype", ("bf16", "f32", "f16")), ("basis", ("cold", "graph", "warm", "wall"))):
        have = {record.get(key) for record in records}
        for choice in order:
            if choice in have:
                records = [record for record in records if record.get(key) == choice]
                break
    return records


def _styles(lines):
    """{fixed axes: how its lines are drawn}, in the order of the axes' values."""
    fixed = sorted({key[0] for key, _ in lines})
    return dict(zip(fixed, itertools.cycle(DASHES)))


def draw_lines(ax, theme, lines, axis, value, low=None, high=None):
    """One line per implementation (colour, marker) and set of fixed axes (dashes)."""
    styles = _styles(lines)
    for key, group in lines:
        x = [record["axes"][axis] for record in group]
        ax.plot(x, [value(record) for record in group], color=colour(theme, key[1]), linestyle=styles[key[0]],
                marker=MARKERS.get(key[1], "v"), markersize=5, linewidth=1.4)
        if low and high:
            ax.fill_between(x, [low(r) for r in group], [high(r) for r in group], color=colour(theme, key[1]),
                            alpha=0.2, linewidth=0)
    log_axis(ax, axis, [record for _, group in lines for record in group])


def key_beside(ax, theme, lines):
    """Says right of `ax` what colours and dashes mean: one entry each, not one per pair."""
    styles = _styles(lines)
    handles = [Line2D([], [], color=colour(theme, impl), marker=MARKERS.get(impl, "v"), markersize=5, label=impl)
               for impl in dict.fromkeys(key[1] for key, _ in lines)]
    if len(styles) > 1:
        handles += [Line2D([], [], color=theme["text"], linestyle=style, linewidth=1.4,
                           label=units.axes_text(dict(fixed))) for fixed, style in styles.items()]
    ax.legend(handles=handles, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0), handlelength=3.2)


def speed_figure(figures, op, pass_name, records, axis, gpu):
    """Time over one axis with quartiles; beside it the share of the ceiling when the ceilings were measured."""
    drawn = [record for record in preferred(records) if record.get("median_s")]
    lines = series(drawn, axis)
    if not lines:
        return None
    share = "share_of_gemm" if drawn[0].get("bound") == "compute" else "share_of_copy"
    with_share = gpu and all(record.get(share) is not None for record in drawn)

    def drawing(panels, theme):
        time = panels[0] if with_share else panels
        draw_lines(time, theme, lines, axis, lambda r: r["median_s"] * 1e6, lambda r: r["q1_s"] * 1e6,
                   lambda r: r["q3_s"] * 1e6)
        time.set_yscale("log")
        time.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.4g}"))
        time.yaxis.set_minor_formatter(LogFormatter())
        time.set_ylabel("µs" if gpu else "µs, wall time of the host executor")
        if with_share:
            draw_lines(panels[1], theme, lines, axis, lambda r: 100 * r[share])
            panels[1].axhline(100, color=theme["limit"], linewidth=1)
            panels[1].set_ylabel("% of measured " + ("GEMM rate" if share == "share_of_gemm" else "copy bandwidth"))
            panels[1].set_ylim(0, max(105, 104 * max(r[share] for _, group in lines for r in group)))
        key_beside(panels[1] if with_share else time, theme, lines)

    what = f"{drawn[0]['dtype']}, {drawn[0].get('basis', '')}"
    return figures.draw(f"speed-{op}-{pass_name}-{axis}", f"{op} {pass_name} time over {axis} ({what})", drawing,
                        size=(12.4, 3.6) if with_share else (8.4, 3.6), panels=2 if with_share else 1)


def memory_figure(figures, op, pass_name, records, axis):
    """Extra bytes beyond inputs and outputs: bars would hide the slope, so lines over one axis."""
    drawn = preferred([record for record in records if record.get("arena_bytes") is not None])
    lines = series(drawn, axis)
    if not lines:
        return None

    def drawing(ax, theme):
        draw_lines(ax, theme, lines, axis, lambda r: (r["tensors_bytes"] + r["arena_bytes"]) / 2**20)
        ax.set_yscale("log", base=2)
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: units.binary_bytes(value * 2**20)))
        ax.set_ylabel("peak memory")
        key_beside(ax, theme, lines)

    return figures.draw(f"memory-{op}-{pass_name}-{axis}", f"{op} {pass_name} peak memory over {axis}", drawing,
                        size=(8.4, 3.6))


def headroom_figure(figures, rows):
    """Worst error over budget per op, pass and dtype of the fused kernels; 1 is the limit."""
    rows = [row for row in rows if row["impl"].startswith("fused") and row["worst"] is not None]
    if not rows:
        return None
    names = list(dict.fromkeys(f"{row['op']}.{row['pass']}" for row in rows))
    dtypes = list(dict.fromkeys(row["dtype"] for row in rows))

    def drawing(ax, theme):
        height = 0.8 / len(dtypes)
        shades = dict(zip(dtypes, ("fused", "naive", "cudnn", "torch")))
        for index, dtype in enumerate(dtypes):
            mine = [(f"{row['op']}.{row['pass']}", row["worst"]) for row in rows if row["dtype"] == dtype]
            worst = [max((value for name, value in mine if name == wanted), default=0) for wanted in names]
            ax.barh([i + index * height for i in range(len(names))], worst, height, label=dtype,
                    color=colour(theme, shades[dtype]))
        ax.set_yticks([i + 0.4 - height / 2 for i in range(len(names))], names)
        ax.invert_yaxis()
        ax.axvline(1, color=theme["limit"], linewidth=1.5)
        ax.set_xlim(0, max(1.05, *(row["worst"] for row in rows)) * 1.02)
        ax.set_xlabel("worst error / budget (1 is the limit)")
        ax.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))

    return figures.draw("headroom", "Worst error over budget of every fused kernel", drawing,
                        size=(8.4, 1.2 + 0.42 * len(names)))


def roofline_figure(figures, run):
    """Every measured cell of a run of one op as arithmetic intensity against achieved rate, under the ceilings of the same run."""
    ceilings = {record["name"]: record["value"] for record in tables.ceilings(run)}
    cells = [record for record in run.of("bench")
             if record.get("median_s") and record.get("flop") and record.get("bytes_min_bytes")
             and record["executor"] == "cuda" and record.get("basis") in ("cold", "graph")]
    if not cells or "copy" not in ceilings:
        return None
    dtypes = [d for d in ("bf16", "f16", "f32") if f"gemm_{d}" in ceilings and any(r["dtype"] == d for r in cells)]

    def drawing(ax, theme):
        low = min(r["flop"] / r["bytes_min_bytes"] for r in cells) / 2
        high = max(max(r["flop"] / r["bytes_min_bytes"] for r in cells) * 2, 1000)
        edge = max((ceilings[f"gemm_{d}"] for d in dtypes), default=ceilings["copy"] * high) / ceilings["copy"]
        ax.plot([low, edge], [ceilings["copy"] * x / 1e12 for x in (low, edge)], color=theme["text"], linewidth=1.5,
                label=f"copy {units.rate(ceilings['copy'], 'bytes_per_s')}")
        for dtype, style in zip(dtypes, ("-", "--", ":")):
            rate = ceilings[f"gemm_{dtype}"]
            ax.plot([rate / ceilings["copy"], high], [rate / 1e12] * 2, style, color=theme["text"], linewidth=1.5,
                    label=f"GEMM {dtype} {units.rate(rate, 'flop_per_s')}")
        for impl in dict.fromkeys(record["impl"] for record in cells):
            group = [record for record in cells if record["impl"] == impl]
            ax.scatter([r["flop"] / r["bytes_min_bytes"] for r in group],
                       [r["flop"] / r["median_s"] / 1e12 for r in group], s=16, color=colour(theme, impl),
                       marker=MARKERS.get(impl, "v"), label=impl, alpha=0.8)
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xlabel("floating-point operations per byte that must move")
        ax.set_ylabel("TFLOP/s")
        ax.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))

    op = cells[0]["op"]
    return figures.draw(f"roofline-{op}", f"Roofline of every measured cell of {op}", drawing, size=(10, 5))


def convergence_figure(figures, config, dtype, entry):
    """Loss curves of both runs, and their difference against its budget."""
    runs, verdict = entry["runs"], entry["verdict"]
    if not any(run.get("loss") for run in runs.values()):
        return None

    def drawing(panels, theme):
        for index, twin in enumerate(entry["twins"]):
            panels[0].plot(range(1, len(twin["loss"]) + 1), twin["loss"], color=colour(theme, "noise"), linestyle=":",
                           linewidth=1, label=None if index else f"{len(entry['twins'])} runs of other pairs or moved weights")
        for impl, run in runs.items():
            panels[0].plot(range(1, len(run["loss"]) + 1), run["loss"], color=colour(theme, impl), label=impl,
                           linestyle="--" if impl == "naive" else "-", linewidth=2 if impl == "fused" else 1.4)
        panels[0].set_xlabel("step")
        panels[0].set_ylabel("loss")
        panels[0].legend(fontsize=8)
        if verdict and verdict.get("differences"):
            away = [abs(d) if d else float("nan") for d in verdict["differences"]]
            panels[1].plot(range(1, len(away) + 1), away, color=colour(theme, "fused"), marker=".", markersize=4,
                           label="fused against naive" + (" (a gap: equal)" if 0 in verdict["differences"] else ""))
            if verdict.get("budgets"):
                panels[1].plot(range(1, len(verdict["budgets"]) + 1), verdict["budgets"], color=theme["limit"],
                               label="budget")
            panels[1].set_yscale("log")
            panels[1].set_xlabel("step")
            panels[1].set_ylabel("difference of the loss")
            panels[1].legend(fontsize=8)

    return figures.draw(f"converge-{config}-{dtype}", f"Loss of {config} in {dtype}, naive and fused", drawing,
                        size=(10, 3.4), panels=2)


def claims_figure(figures, claims):
    """What was measured of each claim, as a share of what is claimed; those that the number does not decide are in the
    table only."""
    rows = [record for record in claims if record["value"] is not None and record.get("number")
            and record.get("quantity") != "points" and record["verdict"] != "other data"]
    if not rows:
        return None

    def drawing(ax, theme):
        names = [f"{record['claim']}: {record['measured']} of {record['paper']}" for record in rows]
        ax.barh(names, [record["value"] / record["number"] for record in rows], color=colour(theme, "fused"), height=0.5)
        ax.axvline(1, color=theme["limit"], linewidth=1.4)
        ax.invert_yaxis()
        ax.set_xlabel("measured / claimed; right of the line a claim holds")

    return figures.draw("claims", "Measured over claimed, per claim", drawing, size=(8.5, 1.0 + 0.35 * len(rows)))
