# SPDX-License-Identifier: Apache-2.0
"""The mutation operators: every small mistake that a source could have, as a change of one expression or statement."""
import dataclasses
import re

SWAPPED = {"+": ("-",), "-": ("+",), "*": ("/",), "/": ("*",), "%": ("/",), "<": ("<=", ">="), "<=": ("<",), ">": (">=", "<="), ">=": (">",),
           "==": ("!=",), "!=": ("==",), "&&": ("||",), "||": ("&&",), "<<": (">>",), ">>": ("<<",), "&": ("|",), "|": ("&",), "^": ("|",)}
ASSIGNED = {"+=": ("-=", "="), "-=": ("+=",), "*=": ("/=", "="), "/=": ("*=",)}
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=", "&&", "||")
BARRIER = re.compile(r"(__sync\w*|cluster_\w+|async_\w+|dependency_\w+|begin_exchange|\w*barrier\w*|\w+\.(sync|await|close)|close_request|await_request)\b")
OPPOSITE = {"fmaxf": "fminf", "fminf": "fmaxf", "max": "min", "min": "max"}
NARROWED = {"int64_t": "int32_t", "size_t": "uint32_t", "uint64_t": "uint32_t", "int": "int16_t", "uint32_t": "uint16_t", "unsigned": "uint16_t"}
# What a narrower type holds as well, as a block has at most 1024 threads and a grid fewer than 2^31 blocks.
SMALL = {"16": re.compile(r"-?\d{1,4}|(threadIdx|blockDim)\.[xyz]( [/%] \w+)?|sizeof[^*+]*"),
         "32": re.compile(r"-?\d{1,9}|(threadIdx|blockDim|blockIdx|gridDim)\.[xyz]( [/%] \w+)?|k[A-Z]\w*|sizeof[^*+]*")}
FINITE = re.compile(r"\d[\d.]*e\+3[0-9]f")  # the least or largest number: where a maximum or minimum starts
NO_STATEMENT = re.compile(r"(return|break|continue|goto|throw|else|do|using|case|default|delete|new|if|for|while|switch|struct|class|public|private|friend)\b")


@dataclasses.dataclass(frozen=True)
class Mutation:
    operator: str
    kind: str  # of the fault's change: expression or statement
    begin: int
    end: int
    replacement: str  # "": a statement goes


def number_mutations(text):
    """What may stand in place of a number."""
    if re.fullmatch(r"\d+[uUlL]*", text):
        value, suffix = re.fullmatch(r"(\d+)(\w*)", text).groups()
        return [f"{int(value) + 1}{suffix}"] + ([f"{int(value) - 1}{suffix}"] if int(value) > 0 else [])
    if re.fullmatch(r"(\d+\.\d*|\.\d+)([eE][+-]?\d+)?f?", text):
        if float(text.rstrip("f")) == 0:
            return ["1.0f"]
        return [f"({text} * 1.01f)", "0.0f"]
    return []


class Operators:
    def __init__(self, source):
        self.source, self.tokens = source, source.tokens

    def all(self):
        """Every mutation, in the order of the text."""
        found = []
        for i, token in enumerate(self.tokens):
            if i in self.source.constant or self.in_declarator(i):
                continue
            for rule in (self.operator, self.number, self.truth, self.index, self.cast, self.wide_offset, self.minimum, self.condition, self.infinity):
                found += rule(i, token)
        return found + self.statements()

    def in_declarator(self, i):
        """Whether the token lies in the size of an array that is declared."""
        around = i if self.tokens[i].text == "[" else self.tokens[i].around
        while around is not None:
            if self.tokens[around].text == "[" and self.declares(around):
                return True
            around = self.tokens[around].around
        return False

    def declares(self, bracket):
        before, type_ = self.source.text_of(bracket - 1), self.source.text_of(bracket - 2)
        if type_ == ",":  # float a[kWidth], b[kWidth]; or float a[kWidth] = {}, b[kWidth] = {};
            last = self.before_initializer(bracket - 3)
            return self.source.text_of(last) == "]" and self.declares(self.tokens[last].partner)
        return (before == ")" or re.fullmatch(r"\w+|>|\*|&", type_) is not None) and type_ != "return"

    def before_initializer(self, last):
        """The token in front of a `= {...}` that ends with this one; the token itself where there is none."""
        first = self.tokens[last].partner if self.source.text_of(last) == "}" else None
        return first - 2 if first is not None and self.source.text_of(first - 1) == "=" else last

    def changed(self, operator, first, last, begin, end, new):
        """The expression from token first to last with `new` in place of [begin, end)."""
        low, high = self.source.span(first, last)
        text = self.source.text
        return Mutation(operator, "expression", low, high, text[low:begin] + new + text[end:high])

    def operator(self, i, token):
        if token.text not in SWAPPED or not self.source.is_spaced(token):
            return []
        first, last = self.source.expression(i, () if token.text in ("&&", "||") else ("&&", "||"))
        name = "comparison" if token.text in COMPARISONS else "arithmetic"
        if self.in_loop_header(i):
            name = "loop bound"
        return [self.changed(name, first, last, token.begin, token.end, new) for new in SWAPPED[token.text]]

    def in_loop_header(self, i):
        around = self.tokens[i].around
        return around is not None and self.source.text_of(around - 1) in ("for", "while")

    def number(self, i, token):
        if FINITE.fullmatch(token.text):
            return []
        name = "constant"
        before = self.source.text_of(i - 1)
        if before == "=" and self.source.text_of(i + 1) in (";", ","):
            name = "initial value"
        if self.in_loop_header(i):
            name = "loop bound"
        return [Mutation(name, "expression", token.begin, token.end, new) for new in number_mutations(token.text)]

    def infinity(self, i, token):
        if token.text not in ("INFINITY", "INT_MAX", "NAN") and not FINITE.fullmatch(token.text):
            return []
        minus = self.source.text_of(i - 1) == "-"
        begin = self.tokens[i - 1].begin if minus else token.begin
        return [Mutation("initial value", "expression", begin, token.end, "0" if token.text == "INT_MAX" else "0.0f")]

    def truth(self, i, token):
        other = {"true": "false", "false": "true"}.get(token.text)
        return [Mutation("constant", "expression", token.begin, token.end, other)] if other else []

    def index(self, i, token):
        """Off by one in an index."""
        if token.text != "[" or token.partner is None or not re.fullmatch(r"\w+|\)|\]", self.source.text_of(i - 1)) or token.partner == i + 1:
            return []
        if i + 2 == token.partner and re.fullmatch(r"\d+", self.source.text_of(i + 1)):
            return []  # a constant
        return [self.changed("index", i + 1, token.partner - 1, self.tokens[i + 1].begin, self.tokens[token.partner - 1].end, f"({inside}) {sign} 1")
                for inside in [self.source.text[self.tokens[i + 1].begin:self.tokens[token.partner - 1].end]] for sign in "+-"]

    def cast(self, i, token):
        """Too few bits: int64_t{x} and static_cast<int64_t>(x)."""
        if token.text == "static_cast" and self.source.text_of(i + 2) in NARROWED and self.source.text_of(i + 3) == ">":
            first, type_ = i, self.source.text_of(i + 2)
            bracket = i + 4
        elif token.text in NARROWED and self.source.text_of(i + 1) == "{":
            first, type_ = i, token.text
            bracket = i + 1
        else:
            return []
        last = self.tokens[bracket].partner
        if last is None or last == bracket + 1:
            return []
        inside = self.source.text[self.tokens[bracket].end:self.tokens[last].begin]
        if SMALL[re.search(r"16|32", NARROWED[type_]).group()].fullmatch(inside.strip()):
            return []
        low, high = self.source.span(first, last)
        return [Mutation("cast", "expression", low, high, f"static_cast<{type_}>(static_cast<{NARROWED[type_]}>({inside}))")]

    def wide_offset(self, i, token):
        """A product with a stride in 32 bits."""
        if token.text != "*" or not self.source.is_spaced(token):
            return []
        first, last = self.source.expression(i, ("&&", "||", "+", "-"))
        text = self.source.text[slice(*self.source.span(first, last))]
        return [self.changed("32-bit offset", first, last, *self.source.span(first, last), f"static_cast<int32_t>({text})")] if "stride" in text else []

    def minimum(self, i, token):
        """min for max, and either argument alone."""
        if token.text not in OPPOSITE or self.source.text_of(i - 1) in (".", "->"):
            return []
        bracket = i + 1
        if self.source.text_of(bracket) == "<":
            bracket = (self.tokens[bracket].partner or i) + 1
        last = self.tokens[bracket].partner if self.source.text_of(bracket) == "(" else None
        if last is None:
            return []
        commas = [j for j in range(bracket, last) if self.tokens[j].text == "," and self.tokens[j].around == bracket]
        first = i - 2 if self.source.text_of(i - 1) == "::" else i
        if len(commas) != 1:
            return []
        arguments = [self.source.text[self.tokens[bracket].end:self.tokens[commas[0]].begin],
                     self.source.text[self.tokens[commas[0]].end:self.tokens[last].begin].strip()]
        return [self.changed("minimum", first, last, token.begin, token.end, OPPOSITE[token.text])] + [
            self.changed("minimum", first, last, *self.source.span(first, last), argument) for argument in arguments]

    def condition(self, i, token):
        """The opposite condition."""
        if token.text != "if" or self.source.text_of(i + 1) != "(":
            return []
        first, last = i + 2, self.tokens[i + 1].partner - 1
        if ";" in (self.tokens[j].text for j in range(first, last)) or first in self.source.constant:
            return []
        begin, end = self.source.span(first, last)
        return [Mutation("condition", "expression", begin, end, f"!({self.source.text[begin:end]})")]

    def statements(self):
        """Statements that go, and assignments that compute another thing."""
        found = []
        for i, token in enumerate(self.tokens):
            if token.text != ";" or i in self.source.constant:
                continue
            if token.around is not None and self.tokens[token.around].text != "{":
                continue
            first = self.first_of_statement(i, token.around)
            if first is None or first >= i or NO_STATEMENT.match(self.tokens[first].text) or first in self.source.constant:
                continue
            begin, end = self.tokens[first].begin, token.end
            text = self.source.text[begin:end]
            assignment = next((j for j in range(first, i) if self.tokens[j].around == token.around and self.tokens[j].text in ("=", *ASSIGNED)), None)
            if assignment is None and not self.is_call(first, i) or assignment is not None and not self.is_place(first, assignment):
                continue
            found.append(Mutation("barrier" if BARRIER.match(text) else "dropped statement", "statement", begin, end, ""))
            if assignment is not None:
                place = self.tokens[assignment]
                found += [Mutation("arithmetic", "statement", begin, end, text[:place.begin - begin] + new + text[place.end - begin:])
                          for new in ASSIGNED.get(place.text, ())]
        return found

    def first_of_statement(self, i, around):
        """The first token of the statement that ends at token i, behind conditions and loop headers; None in a class."""
        j = i - 1
        while j >= 0 and j != around:
            token = self.tokens[j]
            if token.text == "}" and token.partner is not None and re.fullmatch(r"\w+|>|=|,|\(", self.source.text_of(token.partner - 1)):
                j = token.partner - 1
            elif token.text in (";", "{", "}") or token.text in ("else", "do"):
                break
            elif token.text == ")" and token.partner is not None and self.source.text_of(token.partner - 1) in ("if", "for", "while", "constexpr"):
                break
            elif token.text in ")]" and token.partner is not None:
                j = token.partner - 1
            else:
                j -= 1
        return j + 1

    def is_place(self, first, assignment):
        """Whether `first ...` up to = is something that has a value already, and no declaration."""
        begin, end = self.tokens[first].begin, self.tokens[assignment].begin
        place = re.sub(r"\([^()]*\)|\[[^\][]*\]", "", self.source.code[begin:end].strip())
        return " " not in place and re.match(r"[\w*(]", place) is not None

    def is_call(self, first, end):
        """Whether a statement is f(...); or ++x;"""
        if self.tokens[first].text in ("++", "--"):
            return True
        last = self.tokens[end - 1]
        if last.text != ")" or last.partner is None or last.partner <= first:
            return False
        called = self.source.code[self.tokens[first].begin:self.tokens[last.partner].begin]
        return " " not in re.sub(r"<[^<>]*>|\([^()]*\)|\[[^\][]*\]", "", called)
