# SPDX-License-Identifier: Apache-2.0
"""Writes the pages of a report: index.html, one of each op, training.html, trust.html, and summary.md."""
import concurrent.futures
import functools
import multiprocessing
import pathlib
import shutil

import jinja2

from . import addresses, landing, next_action, op, summary, targets, training, trust, units

TEMPLATES = pathlib.Path(__file__).parent / "templates"


def write(run, recorded, folder, host_times=False, progress=lambda text: None, jobs=1):
    """Writes the pages, summary.md and figures/ of `run` into `folder`; what is `recorded` stands beside it, named so.

    Wall times of the host executor are shown only when they are asked for. Returns the path of index.html. Raises OSError
    when a file cannot be written. `progress` is told how many pages are made, by `jobs` processes.
    """
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    figures, reached, ops = folder / "figures", targets.of([run, *recorded.measured], run), op.names(run, recorded)
    pages = [(addresses.LANDING, "landing", lambda: landing.page(run, recorded, reached, ops, figures))]
    pages += [(addresses.of_op(name), "op", functools.partial(op.page, name, run, recorded, reached, figures, host_times)) for name in ops]
    pages.append((addresses.TRAINING, "training", lambda: training.page(run, recorded, figures, host_times)))
    pages.append((addresses.TRUST, "trust", lambda: trust.page(run, recorded, figures)))
    environment = _environment(recorded, set(ops))
    shared = {"run": run, "links": [(addresses.of_op(name), name) for name in ops] + [(addresses.TRAINING, "training"), (addresses.TRUST, "trust")]}

    def make(number):
        name, template, context = pages[number]
        text = environment.get_template(f"{template}.html.j2").render(**shared, **context(), here=name)
        (folder / name).write_text(text, encoding="utf-8")

    for number, _ in enumerate(_each(make, len(pages), jobs), 1):
        progress(f"page {number} of {len(pages)}")
    (folder / "summary.md").write_text(summary_text(run, recorded), encoding="utf-8")
    shutil.copyfile(TEMPLATES / "style.css", folder / "style.css")
    return folder / addresses.LANDING


def _each(make, count, jobs):
    """Results of make(0) to make(count - 1) in order, in `jobs` forked processes: drawing keeps one processor busy."""
    if jobs == 1:
        yield from map(make, range(count))
        return
    # What is forked needs no pickling, which a local function does not allow.
    with concurrent.futures.ProcessPoolExecutor(jobs, multiprocessing.get_context("fork"), _keep, (make,)) as pool:
        yield from pool.map(_make, range(count))


def _keep(make):
    _make.of = make


def _make(number):
    return _make.of(number)


def summary_text(run, recorded):
    environment = _environment(recorded)
    environment.autoescape = False  # Markdown is not HTML
    return summary.short(environment.get_template("summary.md.j2").render(summary.of(run, recorded)))


def _environment(recorded, linked=()):
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(TEMPLATES), trim_blocks=True, lstrip_blocks=True,
                                     autoescape=jinja2.select_autoescape(["html", "j2"]), undefined=jinja2.StrictUndefined)
    environment.filters.update(seconds=units.seconds, bytes=units.binary_bytes, percent=units.percent, number=units.number,
                               share=next_action.share, points=next_action.points, page=addresses.of_op)
    environment.globals.update(rate=units.rate, file_of=recorded.file_of, linked=linked)
    return environment
