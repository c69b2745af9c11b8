# SPDX-License-Identifier: Apache-2.0
"""tigon compare: two runs, or two sets of runs, case by case, the worst first."""
import math
import pathlib

from . import comparison, units
from .command import Parser, say
from .errors import InfrastructureError, UsageError

TEMPLATES = pathlib.Path(__file__).parent / "templates"
ENDS = """exit codes: 0; with --fail-above X the lowest of 1 (a result became wrong), 3 (a time or peak memory more than
X % worse), 4 (cases are missing), 5 (out of memory, time-out or crash where there was none); without it 2 and 4 only
for runs that cannot be compared.
The interval covers the noise within the runs, or between them where each side has enough runs to tell (4 and more);
./tigon gate decides from interleaved pairs."""
FIXED = {"bench": "bench", "memory": "bench", "check": "check"}


def ratio_text(row):
    return "–" if row.ratio is None else f"{row.ratio:.3f}"


def interval_text(row):
    """'1.010 .. 1.030'; memory is counted, so its interval is the ratio."""
    if row.low is None or row.kind == "memory":
        return "exact" if row.kind == "memory" else ""
    if not (math.isfinite(row.low) and math.isfinite(row.high)):
        return "unknown"
    return f"{row.low:.3f} .. {row.high:.3f}"


def value_text(row, value):
    if value is None:
        return "–"
    return units.binary_bytes(value) if row.kind == "memory" else units.seconds(value)


def repro_text(row):
    return f"./tigon {FIXED[row.kind]} --case '{row.case_id}'"


def summary(result):
    """One line of counts."""
    counts = [(len(result.missing), "missing"), (len(result.wrong), "got worse verdicts"),
              (result.count("slower"), "slower"),
              (result.count("larger"), "larger"), (result.count("unclear"), "unclear"), (result.count("same"), "same"),
              (result.count("faster"), "faster"), (result.count("smaller"), "smaller"), (len(result.fixed), "fixed"),
              (len(result.new), "new")]
    parts = [f"{count} {name}" for count, name in counts if count or name in ("slower", "faster", "missing")]
    return ", ".join(parts + ([f"{result.agreed} checks with the same verdict"] if result.agreed else []))


def side_text(side):
    count = len(side.headers)
    simulated = "SIMULATED, " if True in side.facts()["simulated"] else ""
    driver = side.of("device", "driver")
    return (f"{simulated}{side.of('device', 'name')}{'' if driver == 'unknown' else ', driver ' + driver}, commit "
            f"{', '.join(commit[:12] for commit in side.of('tool', 'commit').split(', '))}"
            + (f", {count} runs" if count > 1 else f", run {next(iter(side.headers))}"))


def terminal(result, most):
    """The lines for a terminal; `most` rows of each part."""
    lines = [f"A  {side_text(result.a)}", f"B  {side_text(result.b)}"]
    lines += [f"NOTE  {label}" for label in result.labels]
    for title, rows in (("missing in B", result.missing), ("verdict got worse", result.wrong), ("fixed", result.fixed)):
        if rows:
            lines += ["", f"{title} ({len(rows)})"]
            lines += [f"  {row.outcome:<30} {row.what:<8} {row.case_id}" + (f": {row.note}" if row.note else "")
                      for row in rows[:most]] + _more(rows, most)
    for title, rows in (("time", result.speed), ("peak memory", [r for r in result.memory if r.outcome != "same"])):
        if rows:
            confidence = f"{100 * result.confidence:g}% interval"
            head = f"  {'B/A':>7}  {confidence:<18} {'A':>11}  {'B':>11}  {'outcome':<8} {'basis':<6} case"
            lines += ["", title, head]
            lines += [f"  {ratio_text(r):>7}  {interval_text(r):<18} {value_text(r, r.a):>11}  "
                      f"{value_text(r, r.b):>11}  {r.outcome:<8} {r.what:<6} {r.case_id}" for r in rows[:most]]
            lines += _more(rows, most)
    lines.append("")
    lines += [f"geometric mean of B / A, {basis}: {mean:.4f} over {count} cells"
              for basis, mean, count in result.geometric_means()]
    return "\n".join([*lines, summary(result)]) + "\n"


def _more(rows, most):
    return [f"  ... and {len(rows) - most} more; --top 0 shows all"] if len(rows) > most else []


def render(result, template):
    """Markdown or HTML of the whole comparison."""
    try:
        import jinja2
    except ImportError as error:
        raise InfrastructureError("--md and --html need jinja2: sudo apt-get install python3-jinja2") from error
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(TEMPLATES), trim_blocks=True, lstrip_blocks=True,
                                     autoescape=template.endswith(".html.j2"), undefined=jinja2.StrictUndefined)
    environment.filters.update(ratio=ratio_text, interval=interval_text, repro=repro_text,
                               cell=lambda text: str(text).replace("|", "\\|").replace("\n", " "))
    return environment.get_template(template).render(
        c=result, a=side_text(result.a), b=side_text(result.b), summary=summary(result), value=value_text,
        changed=[row for row in result.memory if row.outcome != "same"])


def _percent(text):
    value = float(text)
    if not 0 <= value < math.inf:
        raise ValueError
    return value


_percent.__name__ = "percentage"


def _confidence(text):
    value = float(text)
    if not 0.5 <= value < 1:
        raise ValueError
    return value


_confidence.__name__ = "confidence from 0.5 to less than 1"


def main(argv):
    parser = Parser("compare", "Compare two runs, or two sets of runs, case by case: B against A, the worst first.",
                    ["results/A results/B", "main.jsonl branch.jsonl --op rms_norm --fail-above 3 --html out.html"])
    parser.epilog += f"\n\n{ENDS}"
    parser.add_argument("a", metavar="A", help="the base: a results folder, a folder of them, or a records file")
    parser.add_argument("b", metavar="B", help="what is compared with it")
    parser.add_argument("--op", action="append", default=[], help="ops, separated by commas (default: all)")
    parser.add_argument("--basis", action="append", default=[], help="timing bases: cold, graph, ... (default: all)")
    parser.add_argument("--filter", default="", help="regex searched in the case id; a leading - negates")
    parser.add_argument("--confidence", type=_confidence, default=0.99, help="of each interval (default: 0.99)")
    parser.add_argument("--fail-above", type=_percent, metavar="X",
                        help="exit code 3 when something is more than X %% worse")
    parser.add_argument("--top", type=int, default=20, help="rows of each part in the terminal; 0: all (default: 20)")
    parser.add_argument("--md", metavar="FILE", help="also write Markdown; - instead of the text")
    parser.add_argument("--html", metavar="FILE", help="also write a page")
    parser.add_argument("--allow-different-machines", action="store_true",
                        help="compare times of different GPUs, drivers or processors; the output says so")
    arguments = parser.parse_args(argv)
    if arguments.top < 0:
        raise UsageError(f"--top {arguments.top}: a number of rows, 0 for all")
    chosen = comparison.Filter(_words(arguments.op), arguments.filter, _words(arguments.basis))
    notice = lambda text: say("compare", text)  # noqa: E731
    (a, ops), (b, others) = (comparison.load(name, path, chosen, notice)
                             for name, path in (("A", arguments.a), ("B", arguments.b)))
    unknown = sorted(chosen.ops - ops - others)
    if unknown:
        raise UsageError(f"--op {unknown[0]}: in neither; there are {', '.join(sorted(ops | others))}")
    labels = comparison.require_comparable(a, b, arguments.allow_different_machines)
    result = comparison.compare(a, b, arguments.confidence, labels)
    if arguments.html:
        pathlib.Path(arguments.html).write_text(render(result, "compare.html.j2"), encoding="utf-8")
    if arguments.md and arguments.md != "-":
        pathlib.Path(arguments.md).write_text(render(result, "compare.md.j2"), encoding="utf-8")
    print(render(result, "compare.md.j2") if arguments.md == "-" else terminal(result, arguments.top or 10**9), end="")
    return 0 if arguments.fail_above is None else comparison.exit_code(result, arguments.fail_above)


def _words(values):
    return [word for value in values for word in value.split(",") if word]
