# SPDX-License-Identifier: Apache-2.0
"""A kernel source as the operators read it: what is code on this device, what brackets, statements and expressions it has."""
import bisect
import re

OPEN, CLOSE = "([{<", ")]}>"
# Behind these no value is computed while the kernel runs, or no ?: can stand.
CONSTANT = re.compile(r"\b(constexpr|consteval|constinit|static_assert|template|using|typedef|enum|requires|concept|alignas|case|sizeof|decltype|"
                      r"TIGON_SHARED|TIGON_DYNAMIC_SHARED|TIGON_KERNEL|__attribute__|asm|keep_packed|keep_computed|leave_unset|issue_loads|prefetch_bulk)\b")
# These calls, too, move no value: they tell the compiler what to do when, and memory what will be asked for.
HINTS = ("keep_packed", "keep_computed", "leave_unset", "issue_loads", "prefetch_bulk")
ONE_BRACKET = (*HINTS, "sizeof", "decltype", "case", "template", "alignas", "TIGON_KERNEL", "__attribute__", "asm")  # all that is constant
ENDS_EXPRESSION = {";", ",", "{", "}", "=", "+=", "-=", "*=", "/=", "%=", "|=", "&=", "^=", "<<=", ">>=", "?", ":", "return", "else", "throw"}
TOKEN = re.compile(r"0x\w+|\d[\d.']*(?:[eE][+-]?\d+)?\w*|[A-Za-z_]\w*|<<=|>>=|->|::|\+\+|--|&&|\|\||[-+*/%|&^<>=!]=|<<|>>|[^\s\w]")


def masked(text, gpu):
    """The text with blanks for comments, the contents of strings, directives, what another device compiles and what is the host executor's."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match[0])

    text = re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])+\'', blank, text, flags=re.S)
    lines, branches = text.split("\n"), []
    for number, line in enumerate(lines):
        directive = re.match(r"\s*#\s*(\w+)\s*(.*)", line)
        if directive:
            word, condition = directive.groups()
            asks_gpu = re.search(r"TIGON_GPU|CUDA", condition) is not None
            negated = condition.startswith("!") or word == "ifndef"
            if word in ("if", "ifdef", "ifndef"):
                branches.append(not negated if asks_gpu else None)  # is it a GPU's
            elif word in ("else", "elif") and branches:
                branches[-1] = None if branches[-1] is None else not branches[-1]
            elif word == "endif" and branches:
                branches.pop()
        if directive or (number and lines[number - 1].endswith("\\")) or False in branches or (True in branches and not gpu):
            lines[number] = " " * len(line)
    return "\n".join(lines)


class Token:
    def __init__(self, text, begin):
        self.text, self.begin, self.end = text, begin, begin + len(text)
        self.partner = None  # index of the bracket that this one opens or closes
        self.around = None  # index of the innermost bracket that is open here


class Source:
    def __init__(self, path, text, gpu):
        self.path, self.text, self.code = path, text, masked(text, gpu)
        self.tokens = [Token(m[0], m.start()) for m in TOKEN.finditer(self.code)]
        self.line_starts = [0] + [m.end() for m in re.finditer("\n", text)]
        self._split_shifts()
        self._match_brackets()
        self.constant = self._constant_tokens()

    def _split_shifts(self):
        """>> that closes two template argument lists: clang-format puts blanks around a shift."""
        tokens = []
        for token in self.tokens:
            if token.text == ">>" and not self.is_spaced(token):
                tokens += [Token(">", token.begin), Token(">", token.begin + 1)]
            else:
                tokens.append(token)
        self.tokens = tokens

    def is_spaced(self, token):
        """Whether blanks stand on both sides, as around every binary operator."""
        return self.code[token.begin - 1:token.begin].isspace() and self.code[token.end:token.end + 1].isspace()

    def is_bracket(self, token):
        return len(token.text) == 1 and token.text in OPEN + CLOSE and not (token.text in "<>" and self.is_spaced(token))

    def _match_brackets(self):
        stack = []
        for i, token in enumerate(self.tokens):
            token.around = stack[-1] if stack else None
            if not self.is_bracket(token):
                continue
            if token.text in OPEN:
                stack.append(i)
                continue
            kind = OPEN[CLOSE.index(token.text)]
            while stack and self.tokens[stack[-1]].text != kind and self.tokens[stack[-1]].text == "<":
                stack.pop()
            if stack and self.tokens[stack[-1]].text == kind:
                token.partner = stack.pop()
                self.tokens[token.partner].partner = i
                token.around = stack[-1] if stack else None

    def _constant_tokens(self):
        """Indices of tokens of declarations that are constant, and of everything in template arguments."""
        found = set()
        for i, token in enumerate(self.tokens):
            if token.text == "<" and token.partner:
                found.update(range(i, token.partner + 1))
            if not CONSTANT.fullmatch(token.text) or i in found:
                continue
            if self.text_of(i - 1) == "if" or token.text in ONE_BRACKET:
                last = self.skip(i + 1)
            else:
                last = self.end_of_declaration(i)
            found.update(range(i, last + 1))
        return found

    def text_of(self, i):
        return self.tokens[i].text if 0 <= i < len(self.tokens) else ""

    def skip(self, i):
        """The index of the bracket that ends what begins at i, else i."""
        return self.tokens[i].partner if i < len(self.tokens) and self.tokens[i].partner and self.tokens[i].text in OPEN else i

    def end_of_declaration(self, i):
        while i < len(self.tokens):
            if self.tokens[i].text == ";":
                return i
            if self.tokens[i].text in CLOSE and self.is_bracket(self.tokens[i]):
                return i - 1
            at = self.skip(i)
            if self.tokens[i].text == "{" and self.text_of(at + 1) not in (";", ",", "(", ")"):
                return at
            i = at + 1
        return i - 1

    def function_lines(self, position):
        """First and last line of the outermost function around a place; of the class where it is in none, of the place where in neither."""
        i = bisect.bisect_right([token.begin for token in self.tokens], position) - 1
        around, found = self.tokens[i].around, None
        while around is not None:
            if self.tokens[around].text == "{" and self.tokens[around].partner is not None:
                is_function = self.text_of(around - 1) in (")", "const", "noexcept", ">")
                if is_function or found is None:
                    found = around
            around = self.tokens[around].around
        if found is None:
            return self.line(position), self.line(position)
        return self.line(self.tokens[found].begin), self.line(self.tokens[self.tokens[found].partner].begin)

    def line(self, position):
        return bisect.bisect_right(self.line_starts, position)

    def expression(self, i, inner=()):
        """(first, last) token of the expression around token i: up to a bracket, a separator or one of `inner`."""
        ends = ENDS_EXPRESSION | set(inner)
        first = last = i
        while first > 0:
            token = self.tokens[first - 1]
            if token.text in CLOSE and self.is_bracket(token) and token.partner is not None and token.text != "}":
                first = token.partner
            elif token.text == "}" and token.partner is not None and re.fullmatch(r"\w+|>", self.text_of(token.partner - 1)):
                first = token.partner
            elif token.text in ends or self.is_bracket(token):
                break
            else:
                first -= 1
        while last + 1 < len(self.tokens):
            token = self.tokens[last + 1]
            if token.text in OPEN and self.is_bracket(token) and token.partner is not None:
                if token.text == "{" and not re.fullmatch(r"\w+|>", self.text_of(last)):
                    break
                last = token.partner
            elif token.text in ends or self.is_bracket(token):
                break
            else:
                last += 1
        return first, last

    def span(self, first, last):
        return self.tokens[first].begin, self.tokens[last].end
