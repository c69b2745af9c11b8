# SPDX-License-Identifier: Apache-2.0
"""Writes the site: a page per question, one per case, CSV files, style sheet and script. Equal records, equal bytes."""

import concurrent.futures
import csv
import multiprocessing
import pathlib
import re

import jinja2
import markupsafe
import numpy

from .. import units
from ..errors import UsageError
from . import case_figure, compare, downloads, draw, history, landing, scan, sizes, views

TEMPLATES = pathlib.Path(__file__).parent / "templates"
REPORT_STYLE = TEMPLATES.parent.parent / "templates" / "style.css"
PAGES = [
    ("index.html", "landing"),
    ("history.html", "history"),
    ("compare.html", "compare"),
    ("speed.html", "speed"),
    ("memory.html", "memory"),
    ("roofline.html", "roofline"),
    ("accuracy.html", "error"),
    ("convergence.html", "convergence"),
    ("kernels.html", "kernels"),
    ("trust.html", "trust"),
    ("environment.html", "environment"),
]
SHOWN_NEWEST, SHOWN_STRETCHES = 20, 8  # points of a case page: the newest one by one, the rest in stretches
LATEST_STEPS = 10  # on the landing page after quiet days
# Colours that figures use: light, dark. The implementations' come from the report.
FIGURE_COLOURS = {
    "fill": ("#ddebf7", "#1d2b3f"),
    "c-other": ("#888888", "#999999"),
    **{f"c-{impl}": (draw.report.COLOURS[impl], draw.report.DARK_COLOURS[impl]) for impl in draw.report.COLOURS},
    **{
        f"h{level}": pair
        for level, pair in enumerate(
            [
                ("#4393c3", "#2f6f9f"),
                ("#7fb6d6", "#2a587c"),
                ("#b5d5e8", "#22445f"),
                ("#d9e9f2", "#1c3245"),
                ("#f0f0f0", "#21262d"),
                ("#fbe3d4", "#4a2d1f"),
                ("#f6b999", "#6e3a20"),
                ("#e58368", "#96431f"),
                ("#d6604d", "#c04a22"),
            ]
        )
    },
}


OWN_STYLE = (TEMPLATES / "dashboard.css").read_text(encoding="utf-8")


def require_own(folder):
    """Raises UsageError unless `folder` is new, empty but for hidden files, or a site that this program wrote."""
    folder = pathlib.Path(folder)
    if folder.is_dir():
        style = folder / "dashboard.css"
        mark = OWN_STYLE.splitlines()[0]  # says that it is of the dashboard
        is_own = style.is_file() and mark.encode() in style.read_bytes()
        is_free = all(path.name.startswith(".") for path in folder.iterdir())
    else:
        is_own, is_free = False, not folder.exists()
    if not (is_own or is_free):
        raise UsageError(f"--out {folder}: holds what tigon dashboard did not write; name a new folder")


def style_sheet():
    """The report's style with the theme button's rules added: the same variables by system setting and by choice."""
    text = REPORT_STYLE.read_text(encoding="utf-8")
    light = re.search(r":root \{([^}]*)\}", text)[1]
    dark = re.search(r"prefers-color-scheme: dark\) \{\s*:root \{([^}]*)\}", text)[1]
    colours = [" ".join(f"--{name}: {pair[side]};" for name, pair in FIGURE_COLOURS.items()) for side in (0, 1)]
    rules = (
        f":root {{{light}{colours[0]} }}\n@media (prefers-color-scheme: dark) {{ :root {{{dark}{colours[1]} }} }}\n"
        f":root[data-theme=light] {{{light}{colours[0]} color-scheme: light; }}\n"
        f":root[data-theme=dark] {{{dark}{colours[1]} color-scheme: dark; }}\n"
    )
    return text + rules + OWN_STYLE


def _absent_is_none(shown):
    """Old and slimmed records lack fields; a filter shows them as it shows nothing."""
    return lambda value, *arguments: shown(None if jinja2.is_undefined(value) else value, *arguments)


def environment():
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=jinja2.select_autoescape(["html", "j2"]),
        undefined=jinja2.ChainableUndefined,
    )
    for name, shown in (
        ("seconds", units.seconds),
        ("bytes", units.binary_bytes),
        ("percent", units.percent),
        ("number", units.number),
    ):
        made.filters[name] = _absent_is_none(shown)
    made.globals.update(rate=units.rate, where=where)
    return made


def origins_text(runs):
    """What must be said of runs that this project did not just measure."""
    counts = {kind: sum(run.origin == kind for run in runs) for kind in ("simulated", "recorded")}
    total = len(runs)
    parts = [
        f"every run is {kind}" if count == total else f"{count} of {total} runs {'is' if count == 1 else 'are'} {kind}"
        for kind, count in counts.items()
        if count
    ]
    if not parts:
        return ""
    return (
        "Not all of this was measured here: "
        + ", ".join(parts)
        + (". Simulated numbers are made up; no kernel ran." if counts["simulated"] else ".")
    )


def shown_points(series):
    """Indices of the points of a case page: the newest, those around steps, and low, middle, high of stretches."""
    count = len(series.ratio)
    keep = set(range(max(0, count - SHOWN_NEWEST), count))
    for change in series.changes:
        keep.update(range(max(0, change.index - 2), min(count, change.index + 3)))
    for part in numpy.array_split(numpy.arange(max(0, count - SHOWN_NEWEST)), SHOWN_STRETCHES):
        if len(part):
            order = part[numpy.argsort(series.ratio[part], kind="stable")]
            keep.update(int(order[place]) for place in (0, len(order) // 2, -1))
    return sorted(keep)


def where(file):
    """A records file as it is named on pages: its folder and its name."""
    return "/".join(file.parts[-2:])


class Site:
    """The folder of a site under construction and what every page needs."""

    def __init__(self, folder, store, commit_url):
        self.folder, self.store = pathlib.Path(folder), store
        self.jinja = environment()
        self.common = {
            "store": store,
            "pages": PAGES,
            "commit_url": commit_url,
            "origins": origins_text(store.runs),
            "days": history.RECENT_DAYS,
        }
        for name in ("case", "data"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)

    def page(self, name, template, **context):
        root = "../" * name.count("/")
        text = self.jinja.get_template(template).render(**self.common, root=root, current=name, **context)
        self.text(name, text)

    def text(self, name, text):
        (self.folder / name).write_text(text, encoding="utf-8")

    def csv(self, name, header, rows):
        with open(self.folder / name, "w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(header)
            writer.writerows(rows)


def case_page(site, series, shown, raw):
    """One case: its figure, its steps, its points with where their records stand, and the newest record."""
    steps = list(zip([series] * len(series.changes), series.changes, series.labels))[::-1]
    away = numpy.expm1(series.ratio - series.centre)
    rows = [
        {
            "run": series.runs[index],
            "point": series.points[index],
            "away": float(away[index]),
            "where": f"{where(series.runs[index].file)}:{series.points[index].line}",
        }
        for index in reversed(shown)
    ]
    site.page(
        f"case/{series.slug}.html",
        "case.html.j2",
        s=series,
        rows=rows,
        steps=steps,
        drawn=case_figure.case_figure(series, shown) if len(shown) > 1 else None,
        raw=raw[series.last.file, series.last.line],
        repro=landing.repro(series.cell.record),
    )


_shared = {}  # what the processes that write case pages inherit by fork: nothing is copied or pickled


def _write_cases(numbers):
    site, every, shown = _shared["site"], _shared["every"], _shared["shown"]
    wanted = [(every[n].last.file, every[n].last.line) for n in numbers]
    raw = scan.raw_lines(_shared["files"], wanted)
    for n in numbers:
        case_page(site, every[n], shown[n], raw)
    return len(numbers)


def write_cases(site, every, files, processes):
    """The pages of all cases, spread over processes."""
    _shared.update(site=site, every=every, files=files, shown=[shown_points(series) for series in every])
    if not every:
        return 0
    parts = [
        list(part) for part in numpy.array_split(numpy.arange(len(every)), min(len(every), processes)) if len(part)
    ]
    if len(parts) <= 1:
        return sum(map(_write_cases, parts))
    with concurrent.futures.ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("fork")) as pool:
        return sum(pool.map(_write_cases, parts))


def write(folder, store, files, every, commit_url):
    """Writes the whole site and returns the path of its landing page."""
    site = Site(folder, store, commit_url)
    site.text("dashboard.css", style_sheet())
    site.text("dashboard.js", (TEMPLATES / "dashboard.js").read_text(encoding="utf-8"))
    failed = landing.failures(store, every)
    worse, moved = landing.steps(every, history.RECENT_DAYS)
    site.page(
        "index.html",
        "landing.html.j2",
        failures=failed,
        worse=worse,
        moved=moved,
        watch=landing.watch(every),
        summary=landing.summary(store, every, failed, worse),
        aa=views.aa_sentence(store),
        newest=landing.newest_runs(store),
        checked=landing.newest_checked(store),
        latest=[] if worse or moved else landing.latest_steps(every, LATEST_STEPS),
        maps=landing.maps(draw.Inline(), every, history.RECENT_DAYS),
    )
    site.page(
        "history.html", "history.html.j2", every=every, course=lambda series: markupsafe.Markup(draw.course(series))
    )
    pair = compare.newest_pair(store, every)
    site.page("compare.html", "compare.html.j2", pair=pair)
    if pair:
        site.text("data/compare.js", compare.script(store, every, pair))
    sizes.speed(site, every)
    sizes.memory(site, every)
    views.write(site, every)
    downloads.write(site, every, failed)
    write_cases(site, every, files, history.workers())
    return site.folder / "index.html"
