# SPDX-License-Identifier: Apache-2.0
"""A .cu file as the host executor compiles it: <<<...>>> and __shared__ become calls, line by line; the rest stays."""
import re

# What of CUDA the host executor does not run, and what would.
NOT_ON_HOST = (
    (r"\basm\b", "inline PTX"),
    (r"\b__nv_bfloat16\w*|\b__half2?\b|\bcuda_(?:bf|fp)16\.h", "CUDA's 16-bit types; tigon::bf16 and tigon::f16 convert with static_cast<float>"),
    (r"\bcooperative_groups\b", "cooperative groups; __syncthreads(), __syncwarp() and shuffles run"),
    (r"\b(?:nvcuda::)?wmma::|\bmma\.h\b", "tensor-core instructions"),
    (r"\bcu(?:te|tlass)\b", "CUTLASS"),
    (r"\b(?:cub|thrust)\b", "CUB and Thrust"),
    (r"\bcuda::\w+", "libcu++"),
    (r"\b__(?:constant|managed)__", "__constant__ and __managed__ memory"),
    (r"\b(?:tex[123]D\w*|cudaTextureObject_t)\b", "textures"),
    (r"\b__(?:ld(?:cg|cs|lu|cv)|st(?:wb|cg|cs|wt))\b", "cache hints; kernels/device/vec.h has load16_stream and the like"),
    (r"\b__nanosleep\b|\bclock(?:64)?\s*\(\s*\)", "device clocks"),
    (r"\bcuda(?:Malloc|Free|Memcpy|Memset|LaunchKernel|LaunchCooperative|Func|Occupancy|Graph|Event)\w*",
     "this part of the CUDA runtime; scratch memory comes from size_t workspace(args)"),
)
_NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', re.S)


class NotCuda(Exception):
    """Source that cannot be read: what, and the line."""

    def __init__(self, line, what):
        super().__init__(what)
        self.line = line


def masked(text):
    """The text with comments and strings as blanks; #include "..." stays readable."""
    def blank(found):
        return re.sub(r"[^\n]", " ", found[0])
    return _NOISE.sub(blank, text)


def not_on_host(text):
    """[(line, what)] of CUDA that the host executor does not run."""
    found = []
    for number, line in enumerate(masked(text).split("\n"), 1):
        for pattern, what in NOT_ON_HOST:
            if re.search(pattern, line):
                found.append((number, what))
    return found


def for_host(text):
    """The file's text for a host compiler, with the same lines."""
    text = re.sub(r"\b__noinline__\b", "__attribute__((noinline))", text)
    text = _replaced(text, re.compile(r"(?:extern\s+)?__shared__\b"), _shared)
    return _replaced(text, re.compile(r"<<<"), _launch)


def _replaced(text, pattern, rewrite):
    at = 0
    while found := pattern.search(masked(text), at):
        begin, end, new = rewrite(text, masked(text), found.start(), found.end())
        new += "\n" * (text.count("\n", begin, end) - new.count("\n"))
        text = text[:begin] + new + text[end:]
        at = begin + len(new)
    return text


def _line(text, at):
    return text.count("\n", 0, at) + 1


def _shared(text, mask, begin, end):
    """`__shared__ float a[32], b;` and `extern __shared__ float a[];`"""
    stop = mask.find(";", end)
    if stop < 0:
        raise NotCuda(_line(text, begin), "a __shared__ declaration without an end")
    body = re.sub(r"(?:__align__|alignas)\s*\([^()]*(?:\([^()]*\))?[^()]*\)", "", text[end:stop])
    parts = _split(body)
    first = re.fullmatch(r"\s*(.+?[\s*&>])\s*(\w+)\s*((?:\[[^\]]*\]\s*)*)", parts[0], re.S)
    rest = [re.fullmatch(r"\s*(\w+)\s*((?:\[[^\]]*\]\s*)*)", part, re.S) for part in parts[1:]]
    if not first or None in rest:
        raise NotCuda(_line(text, begin), "this __shared__ declaration; write __shared__ TYPE NAME[SIZE];")
    of = first[1].strip()
    if text.startswith("extern", begin):
        return begin, stop, f"{of}* {first[2]} = static_cast<{of}*>(::tigon::simt::dynamic_shared())"
    return begin, stop, "; ".join(
        f"static thread_local constinit ::tigon::simt::SharedSite {name}_site; "
        f"auto& {name} = ::tigon::tried::shared<{of} {size}>({name}_site)"
        for name, size in [(first[2], first[3])] + [(part[1], part[2]) for part in rest])


def _launch(text, mask, begin, end):
    """`kernel<T><<<grid, block, bytes, stream>>>(` becomes `configured(...).of(kernel<T>)(`."""
    callee = _callee(mask, begin)
    close = mask.find(">>>", end)
    if callee is None or close < 0:
        raise NotCuda(_line(text, begin), "a launch that cannot be read; write kernel<<<grid, block, bytes, stream>>>(...)")
    new = f"::tigon::tried::configured({text[end:close]}).of({text[callee:begin].strip()})"
    return callee, close + 3, new


def _callee(mask, end):
    """Where the name of the kernel before <<< begins."""
    at = len(mask[:end].rstrip())
    if mask[at - 1] == ">":
        depth = inside = 0  # of <>, of ()
        while at > 0:
            at -= 1
            inside += (mask[at] == ")") - (mask[at] == "(")
            if inside == 0:
                depth += (mask[at] == ">") - (mask[at] == "<")
                if depth == 0:
                    break
    found = re.search(r"[\w:]+\s*$", mask[:at])
    return found.start() if found else None


def _split(text):
    """At commas outside of brackets."""
    parts, depth, begin = [], 0, 0
    for k, letter in enumerate(text):
        depth += (letter in "([{<") - (letter in ")]}>")
        if letter == "," and depth == 0:
            parts.append(text[begin:k])
            begin = k + 1
    return parts + [text[begin:]]
