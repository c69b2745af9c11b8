# SPDX-License-Identifier: Apache-2.0
"""Mutations as records of a fault file, and those that are proven to change nothing."""
import hashlib
import re
import typing


def words(text):
    """As tigon-mutate compares text: words and single characters."""
    return "\0" + "".join(token + "\0" for token in re.findall(r"\w+|\S", text))


def times(pattern, text):
    found, at = 0, text.find(pattern)
    while at >= 0:
        found, at = found + 1, text.find(pattern, at + 1)
    return found


class Fault:
    """A mutation of a source with its name, and with as much text around it as makes its place unique."""

    def __init__(self, source, mutation):
        self.source, self.mutation = source, mutation
        self.file = source.path
        self.first_line, self.last_line = source.line(mutation.begin), source.line(mutation.end - 1)
        self.function_lines = source.function_lines(mutation.begin)
        self.old, self.new = self._lines()
        key = "\n".join((self.file, self.old, self.new, str(mutation.begin)))
        stem = re.sub(r"\W", "_", self.file.split("/")[-1].split(".")[0])
        self.name = f"{stem}.{self.first_line}.{mutation.operator.replace(' ', '_')}.{hashlib.sha256(key.encode()).hexdigest()[:6]}"

    def _lines(self):
        """The lines that change, before and after, with single blanks: what an equivalent is recognised by."""
        text, m = self.source.text, self.mutation
        begin, end = self._bounds(0)
        return [" ".join(part.split()) for part in (text[begin:end], text[begin:m.begin] + m.replacement + text[m.end:end])]

    def _bounds(self, more):
        """[begin, end) of the changed lines and of `more` on both sides."""
        starts = self.source.line_starts
        first, last = max(self.first_line - 1 - more, 0), min(self.last_line + more, len(starts))
        return starts[first], starts[last] - 1 if last < len(starts) else len(self.source.text)

    def _context(self):
        text, every = self.source.text, words(self.source.text)
        more = 0
        while True:
            begin, end = self._bounds(more)
            if times(words(text[begin:end]), every) == 1:
                return text[begin:self.mutation.begin], text[self.mutation.end:end]
            more += 1

    @property
    def id(self):
        """What tells it from others in the compiled code: harness/mutants/fault_id.h."""
        value = 2166136261
        for byte in self.name.encode():
            value = (value ^ byte) * 16777619 & 0xffffffff
        return value.to_bytes(4, "little")

    def record(self, targets, also, proof, no_code_of=()):
        """Of this fault in these targets; also: {op: a target that shares its source}; proof: as read_equivalents() has it, or None;
        no_code_of: ops whose code does not have it."""
        def marked(mark, code):
            return [f"{mark} {line}" for line in code.split("\n")] if code.strip() else []

        m = self.mutation
        before, after = self._context()
        old, new = (" ".join(text.split()) for text in (self.source.text[m.begin:m.end], m.replacement))
        lines = [f"fault: {self.name}", f"what: {self.file}:{self.first_line}: {m.operator}: {old} -> {new or 'nothing'}", "group: sampled",
                 "on: " + ", ".join(targets), *(["also: " + ", ".join(also.values())] if also else [])]
        if proof:
            of = {target.split()[0] for target in targets}
            lines += [f"equivalent: {op}: {proof.text}" for op in proof.ops or ("all",) if op in of | {"all"}]
        lines += [f"equivalent: {op}: no object of the op has code of it" for op in no_code_of]
        lines += [f"file: {self.file}", f"{m.kind}:", *marked("=", before), *marked("-", self.source.text[m.begin:m.end]), *marked("+", m.replacement),
                  *marked("=", after)]
        return "\n".join(lines) + "\n"


class Proof(typing.NamedTuple):
    """That a mutation changes nothing promised; of these ops alone, if it names some."""
    text: str
    ops: tuple


def read_equivalents(paths):
    """{(file, old lines, new lines): Proof} of harness/ops/*.equivalent."""
    proofs = {}
    for path in paths:
        fields = {}
        for number, line in enumerate([*path.read_text().splitlines(), ""], 1):
            mark, _, value = line.partition(" ")
            if not line.strip():
                if fields:
                    missing = [mark for mark in ("file:", "-", "+", "proof:") if mark not in fields]
                    if missing and missing != ["+"]:
                        raise ValueError(f"{path}:{number}: the record before this line has no '{missing[0]}'")
                    old, new = (" ".join(fields.get(mark, "").split()) for mark in "-+")
                    proofs[fields["file:"], old, new] = Proof(fields["proof:"], tuple(fields.get("of:", "").split()))
                fields = {}
            elif line[0] == " " and "proof:" in fields:
                fields["proof:"] += " " + line.strip()
            elif mark in ("file:", "of:", "-", "+", "proof:"):
                fields[mark] = fields[mark] + " " + value if mark in fields else value
            elif mark[0] != "#":
                raise ValueError(f"{path}:{number}: a line begins with 'file: ', 'of: ', '- ', '+ ' or 'proof: '")
    return proofs
