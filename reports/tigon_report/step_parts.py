# SPDX-License-Identifier: Apache-2.0
"""A training step by part: its time, its memory, and the longest sequence that fits, as tables and figures."""
import collections
import itertools

from . import figures as draw
from . import units

# In the order in which bars are stacked. Okabe and Ito's palette, and greys for what is no op.
PARTS = {"norms": "#E69F00", "rotary": "#56B4E9", "activation": "#009E73", "attention": "#F0E442", "linear": "#0072B2",
         "loss": "#D55E00", "optimizer": "#CC79A7", "weights": "#9aa0a6", "gradients": "#6b7177", "other": "#c9cdd2",
         "unused": "none"}
# Of single kernels switched on; naive and fused have theirs.
ALONE = (("#009E73", "^"), ("#CC79A7", "D"), ("#D55E00", "v"), ("#56B4E9", "P"), ("#999933", "X"), ("#882255", "*"))
MEASURED, MISSING = "measured", "out of memory"
SEQUENCE, VOCABULARY = "T", "V"  # the sizes of a training, as its records name them


def tables(run):
    """One entry per configuration, dtype, batch, vocabulary and options: its records by length, naive first, each with `parts` by name."""
    groups = collections.OrderedDict()
    for record in run.of("converge_parts"):
        key = (record["config"], record["dtype"], record["batch"], record["axes"][VOCABULARY], tuple(record["options"].items()))
        groups.setdefault(key, []).append(_derived({**record, "part": {part["part"]: part for part in record["parts"]}}))
    return [_entry(key, records) for key, records in groups.items()]


def _derived(record):
    return {**record, "sequence": record["axes"][SEQUENCE], "linear_rate": linear_rate(record), "linear_share": linear_share(record)}


def _entry(key, records):
    config, dtype, batch, vocabulary, options = key
    title = f"{config} in {dtype}, batch {batch}, {VOCABULARY}={vocabulary:,} {units.axes_text(dict(options))}".rstrip()
    records.sort(key=lambda record: record["sequence"])  # stable: the order of the run within a length
    timed = [name for name in PARTS if any(_seconds(record, name) for record in records)]
    held = [name for name in PARTS if any(_bytes(record, name) for record in records)]
    return {"title": title, "options": options, "config": config, "dtype": dtype, "batch": batch, "vocabulary": vocabulary, "rows": records, "timed": timed,
            "attention": _attention(records), "held": held, "impls": list(dict.fromkeys(record["impl"] for record in records)), "longest": _longest(records)}


def _attention(records):
    """Which attention ran, by length where that differs; nothing in records of older runs."""
    by_length = {record["sequence"]: record["attention"] for record in records if record.get("attention")}
    if len(set(by_length.values())) < 2:
        return next(iter(by_length.values()), "")
    lengths = {name: [f"{length:,}" for length in by_length if by_length[length] == name] for name in by_length.values()}
    return "; ".join(f"{name} for {SEQUENCE}={', '.join(lengths[name])}" for name in lengths)


def linear_rate(record):
    """Flop/s of the linear layers' matrix products within the step; None where nothing was measured."""
    flop, seconds = record.get("linear_flop"), _seconds(record, "linear")
    return flop / seconds if flop and seconds else None


def linear_share(record):
    """The time of the same products alone over theirs within the step."""
    alone, seconds = record.get("linear_alone_s"), _seconds(record, "linear")
    return alone / seconds if alone and seconds else None


def _seconds(record, name):
    return (record["part"].get(name) or {}).get("seconds_s") or 0


def _bytes(record, name):
    return record["unused_bytes"] if name == "unused" else (record["part"].get(name) or {}).get("bytes") or 0


def _longest(records):
    """Per implementation: the longest sequence that fits, the shortest that does not, and whether runs say so."""
    rows = []
    for impl in dict.fromkeys(record["impl"] for record in records):
        own = [record for record in records if record["impl"] == impl]
        fits = [record for record in own if record["outcome"] != MISSING]
        fails = [record for record in own if record["outcome"] == MISSING]
        rows.append({"impl": impl, "fits": fits[-1] if fits else None, "fails": fails[0] if fails else None})
    return rows


def section(figures, run, times):
    """What the template shows: the tables of `run`, each with its figures; those of time where `times` are shown."""
    entries = tables(run)
    for entry in entries:
        timed = (_time(figures, entry, run.on_gpu), _throughput(figures, entry, run.on_gpu)) if times else ()
        entry["figures"] = [figure for figure in (*timed, _memory(figures, entry), _frontier(figures, entry)) if figure]
    return entries


def _name(kind, entry):
    options = [f"{key}-{value}".lower() for key, value in entry["options"]]
    return "-".join(["parts", kind, *(str(entry[key]) for key in ("config", "dtype", "batch", "vocabulary")), *options])


def _title(what, entry):
    return f"{what} of {entry['title']}"


def _stacked(ax, theme, rows, names, value, label):
    left = [0.0] * len(rows)
    labels = [f"{SEQUENCE}={record['sequence']:,} {record['impl']}" for record in rows]
    for name in names:
        widths = [value(record, name) for record in rows]
        outline = {"edgecolor": theme["text"], "linewidth": 0.6} if name == "unused" else {}
        ax.barh(labels, widths, 0.72, left=left, color=PARTS[name], label=name, **outline)
        left = [a + b for a, b in zip(left, widths)]
    ax.invert_yaxis()
    ax.set_xlabel(label)
    ax.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))


def _size(rows):
    return 9.4, 1.3 + 0.27 * len(rows)


def _time(figures, entry, gpu):
    """Time by part per thousand tokens, so that steps of any length stand side by side."""
    rows = [record for record in entry["rows"] if record["outcome"] == MEASURED]
    if not rows:
        return None

    def value(record, name):
        return _seconds(record, name) * 1e6 / (record["sequence"] * entry["batch"])

    def drawing(ax, theme):
        _stacked(ax, theme, rows, entry["timed"], value,
                 "µs per token" + ("" if gpu else ", on the host executor: not the speed of a kernel"))

    return figures.draw(_name("time", entry), _title("Step time by part", entry), drawing, size=_size(rows))


def _memory(figures, entry):
    """Memory by part at the peak; planned where nothing was measured."""
    rows = [record for record in entry["rows"] if record["outcome"] != MISSING]
    if not rows:
        return None

    scale, unit = _unit(max(_peak(record) for record in rows))

    def drawing(ax, theme):
        _stacked(ax, theme, rows, entry["held"], lambda record, name: _bytes(record, name) / scale,
                 f"{unit} at the step's peak" + ("" if all(r["outcome"] == MEASURED for r in rows) else ", planned where not run"))

    return figures.draw(_name("memory", entry), _title("Peak memory by part", entry), drawing, size=_size(rows))


def _peak(record):
    return record["peak_bytes"] or record["planned_bytes"]


def _unit(most):
    return (2**30, "GiB") if most >= 2**30 else (2**20, "MiB")


def _styles(theme, entry):
    """Colour and marker of each implementation: naive and fused as everywhere."""
    others = itertools.cycle(ALONE)
    return {impl: (draw.colour(theme, impl), draw.MARKERS[impl]) if impl in draw.MARKERS else next(others)
            for impl in entry["impls"]}


def _over_lengths(ax, entry, label):
    draw.log_axis(ax, SEQUENCE, entry["rows"])
    ax.set_xlabel(f"{SEQUENCE}, tokens of a sequence")
    ax.set_ylabel(label)
    ax.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))


def _lengths(entry):
    return len({record["sequence"] for record in entry["rows"]})


def _throughput(figures, entry, gpu):
    rows = [record for record in entry["rows"] if record["outcome"] == MEASURED]
    if _lengths({"rows": rows}) < 2:
        return None

    def drawing(ax, theme):
        for impl, (colour, marker) in _styles(theme, entry).items():
            own = [record for record in rows if record["impl"] == impl]
            ax.plot([r["sequence"] for r in own], [r["tokens_per_s"] for r in own], color=colour, marker=marker,
                    markersize=5, label=impl)
        ax.set_ylim(bottom=0)
        _over_lengths(ax, entry, "tokens/s" if gpu else "tokens/s of the host executor")

    return figures.draw(_name("tokens", entry), _title("Tokens per second", entry), drawing, size=(8.4, 3.6))


def _frontier(figures, entry):
    """Memory over the length: planned lines, measured points, and where memory ran out."""
    if _lengths(entry) < 2:
        return None
    rows = entry["rows"]
    limits = {record["limit_bytes"] for record in rows if record["outcome"] == MISSING}
    least, most = min(_peak(record) for record in rows), max(_peak(record) for record in rows)
    scale, unit = _unit(most)

    def drawing(ax, theme):
        for impl, (colour, dot) in _styles(theme, entry).items():
            own = [record for record in rows if record["impl"] == impl]
            ax.plot([r["sequence"] for r in own], [r["planned_bytes"] / scale for r in own], color=colour, linewidth=1.2,
                    linestyle="--", label=f"{impl}, planned")
            for marker, what, chosen in ((dot, "measured", [r for r in own if r["outcome"] == MEASURED]),
                                         ("x", "out of memory", [r for r in own if r["outcome"] == MISSING])):
                if chosen:
                    ax.plot([r["sequence"] for r in chosen], [_peak(r) / scale for r in chosen], marker, color=colour,
                            markersize=6, label=f"{impl}, {what}")
        if len(limits) == 1:
            ax.axhline(next(iter(limits)) / scale, color=theme["limit"], linewidth=1, label="limit")
        if most > 8 * least:
            ax.set_yscale("log", base=2)
            ax.yaxis.set_major_formatter(draw.FuncFormatter(lambda value, _: f"{value:g}"))
        else:
            ax.set_ylim(bottom=0)
        _over_lengths(ax, entry, f"peak memory of a step, {unit}")

    return figures.draw(_name("frontier", entry), _title("Memory over the length of a sequence", entry), drawing,
                        size=(9.4, 4.2))
