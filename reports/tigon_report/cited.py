# SPDX-License-Identifier: Apache-2.0
"""tigon figures: the measured figures of the pages, each from a record. README.md of reports/ has the rules."""
import os
import pathlib
import re
import shlex
import textwrap

from . import cited_chart, collective_costs, first_use, load, training_chart
from .cited_tables import TABLES, table
from .command import EXIT_NOTHING, EXIT_OK, EXIT_WRONG, Parser, say
from .errors import DataError, UsageError
from .kernel_age import Kernels

ROOT = pathlib.Path(__file__).resolve().parents[2]
BEGIN, END = "<!-- figures: ", "<!-- end figures -->"
BLOCK = re.compile(rf"^{BEGIN}(?P<words>[^>]+?) -->\n(?P<text>.*?)^{END}$", re.M | re.S)
CHARTS = {"chart": cited_chart, "training_chart": training_chart}
UNRECORDED = "<!-- no record -->"
CODE = re.compile(r"^```.*?^```|^ {4}[^\n]*|`[^`\n]*`|<!--.*?-->", re.M | re.S)
UNITS = r"ns|us|µs|ms|s|seconds?|min|minutes?|h|hours?|times|[KMGT]i?B|[KMGT]B/s|TFLOP/s"
COUNTED = r"(?:[a-z]+ )?(?:cases|checks|tests|faults|mutants)"
FIGURE = re.compile(rf"(?<![\w.])\d[\d.,]*\s?(?:(?:{UNITS}|{COUNTED})\b|%)|\b\d[\d,]* of \d[\d,]*\b")
# Pages whose figures have another keeper: what runs wrote, what `describe` writes, what a test compares with `try`.
KEPT_ELSEWHERE = ("reports/recorded/", "reference/OPS.md", "harness/try/examples/")


def name_of(words):
    return textwrap.shorten(words, 90, placeholder=" ...")


class Block:
    """A block of a page: what it must say, and whether its chart is that of the records."""

    def __init__(self, kernels, page, words):
        self.words, self.records, texts = [], [], []
        for word in shlex.split(words):
            (self.records if ".jsonl" in word else texts if word.endswith(".txt") else self.words).append(word)
        self.folder = page.parent
        self.kernels = kernels
        self.chart, self.changed = None, []
        self.must_be_fresh = self.words[:1] == ["fresh"]
        if self.must_be_fresh:
            del self.words[0]
        if self.words[:1] == ["first_use"]:
            self.text = self._first_use(texts)
            return
        if self.words[:1] == ["collective_costs"]:
            self.text = self._collective_costs(*self.words[1:])
            return
        self.runs = [(path, run) for path in self.records for run in self._load(path)]
        runs = [run for _, run in self.runs]
        if not runs:
            raise ValueError("names no record")
        generator = self.words[0] if self.words else ""
        if generator in CHARTS:
            chart = CHARTS[generator]
            self.chart = (kernels.root / self.words[1], chart.data_of(runs), chart.figure)
            body = cited_chart.markup(self._from_page(self.words[1]), chart.alt_of(self.chart[1]))
        elif generator == "collectives":
            body = self._collectives(runs, *self.words[1:])
        elif generator in TABLES:
            body = TABLES[generator](runs, self.words[1:])
        else:
            there_are = dict.fromkeys(["chart", "collective_costs", "collectives", "first_use", *TABLES, *CHARTS])
            raise ValueError(f"no generator of that name; there are {', '.join(there_are)}")
        self.text = f"{body}\n{self._source()}\n"

    def _first_use(self, paths):
        """Of text records, which no kernel ages: the table, and where and when it was measured."""
        if not paths:
            raise ValueError("names no record")
        measured = {path: first_use.read(self.kernels.root / path) for path in paths}
        days = {}  # {date: {path: {commit}}}, in their order
        for path, ones in measured.items():
            for one in ones:
                days.setdefault(one.date, {}).setdefault(path, {})[self._commit_of(one)] = None
        sources = [f"Measured {date}: {'; '.join(self._place(path, commits) for path, commits in paths.items())}.\n" for date, paths in days.items()]
        return f"{table(*first_use.table([one for ones in measured.values() for one in ones]))}\n{''.join(sources)}"

    def _collective_costs(self, links="", models="", *names):
        """Of a table of links and one of models, which no record has measured."""
        if not names:
            raise ValueError("names no table of links, table of models and models in it")
        of_links = collective_costs.read_links(self.kernels.root / links)
        chosen = [collective_costs.read_model(self.kernels.root / models, name) for name in names]
        heads = [f"{gpus:,} GPUs:" for gpus in collective_costs.GPUS]
        singles = table([f"of {chosen[0].name}", "bytes:", *heads], collective_costs.single(of_links, chosen[0]))
        steps = table(["model", "GPUs:", "fsdp2 or zero3:", "tp in a node, fsdp2 over nodes:", "waits less", "even at tokens of a GPU:"],
                      [row for model in chosen for row in collective_costs.steps(of_links, model)])
        return f"{singles}\n{steps}\nModelled, not measured, from [link rates]({self._from_page(links).as_posix()}).\n"

    def _collectives(self, runs, links="", models=""):
        """What records have measured, beside what is modelled."""
        records = [record for run in runs for kind in ("head_loss", "training") for record in run.of(kind)]
        rows = collective_costs.measured(collective_costs.read_links(self.kernels.root / links), self.kernels.root / models, records)
        return table(["in collectives", "measured:", "of it hidden:", "modelled:", "measured over modelled:"], rows)

    def _commit_of(self, one):
        if one.commit == first_use.NOT_NOTED:
            return one.commit
        self.kernels.changed_since(one.commit)  # which fails where it is not in this history
        return one.commit[:7]

    def _place(self, path, commits):
        return f"commit {' or '.join(commits)}, [record]({self._from_page(path).as_posix()})"

    def _load(self, path):
        file, _, run_id = path.partition(":")
        return load.load_runs(self.kernels.root / file, run_id or None)

    def _from_page(self, path):
        return pathlib.Path(os.path.relpath(self.kernels.root / path, self.folder))

    def _source(self):
        """Where and when this was measured, of what commit, and which kernels have changed since."""
        sources, changed, spoken_of = {}, set(), set()  # sources: an ordered set for each device
        for path, run in self.runs:
            tool = run.header["tool"]
            commit = f"{tool['commit'][:7]}{' with changes' if tool.get('dirty') else ''}"
            link = f"[record]({self._from_page(path.partition(':')[0]).as_posix()})"
            sources.setdefault(run.device, {})[f"{run.date}, commit {commit}, {link}"] = None
            since = self.kernels.changed_since(tool["commit"])  # which fails where it is not in this history
            ops = self._ops_of(run)
            spoken_of |= ops
            changed |= ops & since
        self.changed = [op for op in self.kernels.ops if op in changed]
        if not changed:
            age = "These kernels have not changed since."
        elif changed == spoken_of:
            age = "The kernels' sources have changed since."
        else:
            age = f"Sources that have changed since: {', '.join(self.changed)}."
        measured = [f"Measured on {device}: {'; '.join(places)}." for device, places in sources.items()]
        return "\n".join([*measured, age])

    def _ops_of(self, run):
        """Whose kernels the block shows a run of: a chart has no others than those of its rows."""
        drawn = {row["case"].split()[0] for row in self.chart[1]} if self.chart else set()
        named = {record["op"] for kind in run.records.values() for record in kind if record.get("op")}
        return named & drawn or named or set(self.kernels.ops_of(run.header["tool"]["commit"]))

    def is_in(self, text):
        drawn = self.chart is None or all(cited_chart.data_in(file) == self.chart[1] for file in cited_chart.files(self.chart[0]))
        return drawn and text == self.text


def blocks_of(kernels, page, problems):
    """[(match, Block)] of a page; what is wrong with one is added to `problems` as (exit code, line)."""
    text, found = page.read_text(encoding="utf-8"), []
    for match in BLOCK.finditer(text):
        where = f"{page.relative_to(kernels.root)}: block '{name_of(match['words'])}'"
        try:
            block = Block(kernels, page, match["words"])
            found.append((match, block))
            if block.must_be_fresh and block.changed:
                older = ", ".join(block.changed)
                problems.append((EXIT_WRONG, f"{where}: must be fresh, and its record is older than the kernels of {older}: measure them again"))
        except ValueError as error:
            problems.append((EXIT_WRONG, f"{where}: {error}"))
        except DataError as error:
            problems.append((EXIT_NOTHING, f"{where}: {error}"))
    if not len(BLOCK.findall(text)) == len(re.findall(f"^{BEGIN}", text, re.M)) == len(re.findall(f"^{END}", text, re.M)):
        problems.append((EXIT_WRONG, f"{page.relative_to(kernels.root)}: a block is not closed by a line '{END}'"))
    return found


def stray_figures(page, name):
    """'file:line: ...' for every number with a unit that stands outside of blocks and of code and is not marked."""
    if name.startswith(KEPT_ELSEWHERE):
        return []
    text = page.read_text(encoding="utf-8")
    marked = {number for number, line in enumerate(text.split("\n"), 1) if UNRECORDED in line}
    for hidden in (BLOCK, CODE):
        text = hidden.sub(lambda match: "\n" * match[0].count("\n"), text)
    return [f"{name}:{number}: '{found[0]}' comes from no record: put it into a block, or mark the line with {UNRECORDED}"
            for number, line in enumerate(text.split("\n"), 1) if number not in marked for found in FIGURE.finditer(line)]


def check(kernels, pages):
    """(exit code, line) for everything that is wrong with the figures of the pages."""
    problems = []
    for page in pages:
        name = page.relative_to(kernels.root).as_posix()
        for match, block in blocks_of(kernels, page, problems):
            if not block.is_in(match["text"]):
                problems.append((EXIT_WRONG, f"{name}: block '{name_of(match['words'])}' is not what its records and kernels say; run ./tigon figures"))
        problems += [(EXIT_WRONG, line) for line in stray_figures(page, name)]
    return problems


def write(kernels, pages):
    """Writes the blocks and charts that differ; the names of what was written, and the problems of the others."""
    problems, written = [], []
    for page in pages:
        text = page.read_text(encoding="utf-8")
        for match, block in blocks_of(kernels, page, problems):
            if block.is_in(match["text"]):
                continue
            if block.chart:
                cited_chart.draw(*block.chart)
            text = text.replace(match[0], f"{BEGIN}{match['words']} -->\n{block.text}{END}")
            written.append(f"{page.relative_to(kernels.root)}: block '{name_of(match['words'])}'")
        page.write_text(text, encoding="utf-8")
    return written, problems


def main(argv):
    p = Parser("figures", "Writes the measured figures of the tree's pages from records; --check only compares.\n"
               "Exit codes: 0 all are those of their records, 1 one is not, 4 a record is missing, 5 no git history.",
               ["             after a change of a record, a kernel or a page", "--check     what CI runs", "--check README.md"])
    p.add_argument("pages", nargs="*", help="Markdown files, as paths from the root (default: all of the tree)")
    p.add_argument("--check", action="store_true", help="change nothing")
    p.add_argument("--root", type=pathlib.Path, default=ROOT, help="another tree")
    args = p.parse_args(argv)
    kernels = Kernels(args.root.resolve())
    names = args.pages or kernels.git("ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate", "*.md").splitlines()
    pages = [kernels.root / name for name in names]
    for page in pages:
        if not page.is_file() or kernels.root not in page.resolve().parents:
            raise UsageError(f"{page}: no page of {kernels.root}")
    if args.check:
        problems = check(kernels, pages)
    else:
        written, problems = write(kernels, pages)
        print("\n".join(f"wrote {name}" for name in written) or "every figure was that of its record")
    for _, text in problems:
        say("figures", text)
    if args.check and not problems:
        print("figures: every figure is that of its record")
    return min((code for code, _ in problems), default=EXIT_OK)
