# SPDX-License-Identifier: Apache-2.0
"""Two sets of runs, case by case: what is missing, what became wrong, slower or larger, with intervals."""
import collections
import dataclasses
import math
import re

from . import rank_statistics, records, schema, statistics
from .records import BROKEN, SKIPPED, peak_bytes
from .errors import DataError, UsageError

MARGIN, SMALL_MARGIN, SMALL_S = 0.01, 0.03, 20e-6  # a change within the margin is none; short kernels are noisier
ALIGNMENT_BYTES = 256  # memory is exact but for one unit of alignment
HOST_TIMES = "times of the host executor are its wall times, not kernel speed"
ORDER = {"slower": 0, "larger": 0, "unclear": 1, "same": 2, "faster": 3, "smaller": 3}


@dataclasses.dataclass
class Side:
    """The records of one side that the filters leave, by what is compared; several runs are repetitions."""

    name: str
    headers: dict
    bench: dict  # the identity of a record, (case key, executor, basis) -> [record of each run]
    memory: dict  # (case key,) -> [record]
    check: dict  # (case key, executor) -> [record]

    def facts(self):
        """What must be the same on both sides for times to be comparable: fact -> the values found."""
        found = collections.defaultdict(set)
        for header in self.headers.values():
            device, host = header["device"], header.get("host") or {}
            on_gpu = device.get("kind") == "cuda"
            found["device"].add(device.get("name") or device.get("kind"))
            found["driver"].add(device.get("driver") if on_gpu else None)
            found["cpu"].add(None if on_gpu else f"{host.get('cpu')}, {host.get('cores')} cores")
            found["simulated"].add("simulated" in (header.get("tags") or {}))
        return found

    def of(self, *path):
        """The different values of a field of the run records, as text."""
        values = []
        for header in self.headers.values():
            for key in path:
                header = (header or {}).get(key)
            values.append(str(header if header is not None else "unknown"))
        return ", ".join(dict.fromkeys(values))


@dataclasses.dataclass
class Row:
    """One case of both sides. `ratio` is B over A; above 1 is damage."""

    case_id: str
    what: str  # basis of a time; "memory"; executor of a check
    kind: str  # bench, memory, check
    outcome: str
    a: float = None
    b: float = None
    ratio: float = None
    low: float = None
    high: float = None
    note: str = ""


@dataclasses.dataclass
class Comparison:
    """`missing` are in A only, `new` in B only, `wrong` passed in A and not in B, `fixed` the other way round."""

    a: Side
    b: Side
    missing: list
    wrong: list
    fixed: list
    speed: list
    memory: list
    new: list
    labels: list
    confidence: float
    agreed: int = 0  # checks whose verdict did not change

    def count(self, outcome):
        return sum(row.outcome == outcome for row in self.speed + self.memory)

    def geometric_means(self):
        """(basis, geometric mean of B over A, cells) over the cells that passed in both."""
        groups = collections.defaultdict(list)
        for row in self.speed:
            groups[row.what].append(row.ratio)
        return [(basis, statistics.geometric_mean(ratios), len(ratios)) for basis, ratios in sorted(groups.items())]


class Filter:
    """--op and --filter: a regex searched in the case id, negated by a leading -."""

    def __init__(self, ops=(), pattern="", bases=()):
        self.ops, self.bases, self.negated = set(ops), set(bases), pattern.startswith("-")
        try:
            self.regex = re.compile(pattern.removeprefix("-"))
        except re.error as error:
            raise UsageError(f"--filter '{pattern}' is not a regular expression: {error}") from error

    def __call__(self, record):
        if self.ops and record.get("op") not in self.ops:
            return False
        if self.bases and record["record"] == "bench" and record["basis"] not in self.bases:
            return False
        return bool(self.regex.search(record["case_id"])) != self.negated


def load(name, path, chosen, notice):
    """The Side of the runs in `path`, and the ops in it before the filters. Raises DataError."""
    lines = records.latest(records.read([path], notice))
    side = Side(name, records.headers(lines), *(collections.defaultdict(list) for _ in range(3)))
    ops = set()
    for record in (line.record for line in lines):
        if record["record"] not in ("bench", "memory", "check"):
            continue
        ops.add(record["op"])
        if chosen(record):
            table = getattr(side, record["record"])
            table[tuple(record[key] for key in schema.identity(record["record"]))].append(record)
    return side, ops


def require_comparable(a, b, allow_machines):
    """Raises UsageError when times of the two sides must not be compared; returns labels of what was allowed."""
    if not any(r["median_s"] for rs in a.bench.values() for r in rs) or not b.bench:
        return []
    _require_same_basis(a, b)
    executors = {executor for side in (a, b) for _, executor, _ in side.bench}
    labels = [HOST_TIMES] if executors & set(records.HOST_EXECUTORS) else []
    texts = []
    for side in (a, b):
        texts += [f"{side.name} mixes {fact}s {' and '.join(sorted(map(str, values)))}"
                  for fact, values in side.facts().items() if len(values) > 1]
    theirs = b.facts()
    for fact, values in a.facts().items():
        if values != theirs[fact] and not texts:
            ours, other = (" and ".join(sorted(map(str, v))) for v in (values, theirs[fact]))
            texts.append(f"{fact} {ours} in A, {other} in B" if fact != "simulated" else "one side is simulated")
    if texts and not allow_machines:
        raise UsageError(f"times of different machines are not compared: {'; '.join(texts)}; "
                         "--allow-different-machines does it all the same, and says so")
    found = [{h["device"].get("uuid") for h in side.headers.values()} - {None} for side in (a, b)]
    if not texts and all(found) and len(found[0] | found[1]) > 1:
        labels.append("different GPUs of one model, which may differ by some percent: "
                      + ", ".join(f"{' and '.join(sorted(uuids))} in {side.name}" for side, uuids in zip((a, b), found)))
    return labels + [f"different machines: {text}" for text in texts]


def _require_same_basis(a, b):
    bases = [collections.defaultdict(set), collections.defaultdict(set)]
    for side, found in zip((a, b), bases):
        for (key, executor, basis), rows in side.bench.items():
            found[(key, executor)].add((basis, rows[0]["case_id"]))
    for cell in bases[0].keys() & bases[1].keys():
        ours, theirs = ({basis for basis, _ in found[cell]} for found in bases)
        if not ours & theirs:
            raise UsageError(f"timing bases are not mixed: {next(iter(bases[0][cell]))[1]} has "
                             f"{', '.join(sorted(ours))} in A and {', '.join(sorted(theirs))} in B; "
                             "measure both the same way")


def _verdict(rows):
    """The verdict of repetitions: the first that did not pass."""
    return next((r.get("verdict", "passed") for r in rows if r.get("verdict", "passed") != "passed"), "passed")


def _reason(rows):
    return next((r.get("reason") or "" for r in rows if r.get("verdict", "passed") != "passed"), "")


def median_interval(record, confidence):
    """The interval of one run's median: from its samples where they are kept, else from its quartiles."""
    samples = [s for s in record.get("samples_s") or [] if s]
    if len(samples) > 1:
        return statistics.median_interval(samples, confidence)
    if record.get("q1_s") is not None and record.get("q3_s") is not None and record.get("n"):
        return statistics.median_interval_of_quartiles(record["median_s"], record["q1_s"], record["q3_s"], record["n"],
                                                       confidence)
    return statistics.Interval(-math.inf, math.inf)


def ratio_interval(a, b, confidence):
    """(ratio, Interval) of B over A. Repeated runs are the replicates where there are enough of them (rank sums of log
    medians); else the intervals of the runs' own medians, which know nothing of the noise between runs."""
    logs = [[math.log(r["median_s"]) for r in rows] for rows in (a, b)]
    between = rank_statistics.sample_shift_interval(*logs, confidence)
    if math.isfinite(between.low):
        return math.exp(rank_statistics.sample_shift(*logs)), between.exp()
    each = 1 - (1 - confidence) / 2
    hulls = []
    for rows in (a, b):
        intervals = [median_interval(r, each) for r in rows]
        hulls.append((max(0.0, min(i.low for i in intervals)), max(i.high for i in intervals)))
    (a_low, a_high), (b_low, b_high) = hulls
    ratio = math.exp(statistics.median(logs[1]) - statistics.median(logs[0]))
    return ratio, statistics.Interval(b_low / a_high, b_high / a_low if a_low > 0 else math.inf)


def outcome(low, high, seconds):
    """slower, faster, same, or unclear when the interval is wider than the margin."""
    margin = SMALL_MARGIN if seconds < SMALL_S else MARGIN
    if low > 1 + margin:
        return "slower"
    if high < 1 / (1 + margin):
        return "faster"
    return "same" if low >= 1 / (1 + margin) and high <= 1 + margin else "unclear"


def _speed_row(basis, a, b, confidence):
    if a == b:  # a run and itself, or a copy: no noise lies between them
        seconds = math.exp(statistics.median([math.log(r["median_s"]) for r in a]))
        return Row(a[0]["case_id"], basis, "bench", "same", seconds, seconds, 1.0, 1.0, 1.0)
    ratio, interval = ratio_interval(a, b, confidence)
    seconds = [math.exp(statistics.median([math.log(r["median_s"]) for r in rows])) for rows in (a, b)]
    return Row(a[0]["case_id"], basis, "bench", outcome(*interval, min(seconds)), *seconds, ratio, *interval)


def _memory_row(a, b):
    peaks = [max((p for r in rows if (p := peak_bytes(r)) is not None), default=None) for rows in (a, b)]
    if None in peaks:
        return None
    change = peaks[1] - peaks[0]
    name = "larger" if change > ALIGNMENT_BYTES else "smaller" if change < -ALIGNMENT_BYTES else "same"
    ratio = peaks[1] / peaks[0] if peaks[0] else (1.0 if not change else math.inf)
    return Row(a[0]["case_id"], "memory", "memory", name, *peaks, ratio, ratio, ratio)


def _damage(row):
    return ORDER[row.outcome], -row.ratio, row.case_id, row.what


def compare(a, b, confidence, labels):
    """The Comparison of two Sides. Raises DataError when they have no case in common."""
    if a.headers == b.headers:
        labels = [*labels, "A and B are the same: one run, or copies of it"]
    result = Comparison(a, b, [], [], [], [], [], [], labels, confidence)
    common = 0
    for kind in ("check", "bench", "memory"):
        ours, theirs = getattr(a, kind), getattr(b, kind)
        for key in ours.keys() | theirs.keys():
            what = {"check": key[-1], "bench": key[-1], "memory": "memory"}[kind]
            if key not in theirs or key not in ours:
                rows = ours.get(key) or theirs.get(key)
                target = result.missing if key in ours else result.new
                target.append(Row(rows[0]["case_id"], what, kind, "missing" if key in ours else "new",
                                  note=f"{_verdict(rows)} in {'A' if key in ours else 'B'}"))
                continue
            common += 1
            _add(result, kind, what, ours[key], theirs[key], confidence)
    if not common:
        raise DataError("no case is in both; see the case ids with ./tigon export RUN --format csv")
    for rows in (result.missing, result.new, result.wrong, result.fixed):
        rows.sort(key=lambda row: (row.kind, row.case_id, row.what))
    result.speed.sort(key=_damage)
    result.memory.sort(key=_damage)
    return result


def _add(result, kind, what, a, b, confidence):
    before, after = _verdict(a), _verdict(b)
    if before != after and "passed" in (before, after):
        row = Row(a[0]["case_id"], what, kind, f"{before} → {after}", note=_reason(b if before == "passed" else a))
        (result.wrong if before == "passed" else result.fixed).append(row)
    elif kind == "check":
        result.agreed += before == after
    elif kind == "bench" and before == after == "passed":
        result.speed.append(_speed_row(what, a, b, confidence))
    elif kind == "memory" and (row := _memory_row(a, b)):
        result.memory.append(row)


def exit_code(result, percent):
    """The lowest of: 1 a result became wrong, 3 something is more than `percent` slower or larger, 4 cases are missing,
    5 a case ran out of memory or time, or crashed; 0 when none of it."""
    codes = []
    for row in result.wrong:
        verdict = row.outcome.split(" → ")[1]
        codes.append(4 if verdict in SKIPPED else 5 if verdict in BROKEN else 1)
    limit = 1 + percent / 100
    if any(not row.ratio <= limit for row in result.speed + [row for row in result.memory if row.outcome == "larger"]):
        codes.append(3)
    if result.missing:
        codes.append(4)
    return min(codes, default=0)
