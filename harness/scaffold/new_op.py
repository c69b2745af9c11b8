#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tigon new-op: the four files of a new op and its line in CMakeLists.txt.

They compile; its checks fail with "oracle not written" until reference/NAME.h has one.
"""

import argparse
import pathlib
import re
import shutil
import string
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEMPLATES = pathlib.Path(__file__).resolve().parent / "templates"
FILES = {
    "kernels/{0}/{0}.h": "signature.h.in",
    "kernels/{0}/{0}.cu": "kernel.cu.in",
    "reference/{0}.h": "oracle.h.in",
    "harness/ops/{0}.cpp": "contract.cpp.in",
}
MEANINGS = {
    "T": "tokens",
    "H": "hidden size",
    "F": "intermediate size",
    "V": "vocabulary size",
    "Q": "query heads",
    "K": "key heads",
    "D": "head size",
}
ROWS = ("{1, 3}", "{0, 1, 2, 31, 33, 129, 257}", "{1024, 4096, 16384}", "{16, 64, 256}", "{525000}")
COLUMNS = ("{1, 8, 33}", "{1, 2, 7, 8, 9, 127, 1023, 4099}", "{2048, 4096, 8192}", "{512, 2048}", "{4096}")
MOST_AXES = 3  # of a tensor
NAMED_FOLDERS = ("kernels", "reference", "harness/ops")
KEYWORDS = set(
    """alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class compl
    concept const consteval constexpr constinit const_cast continue co_await co_return co_yield decltype default delete do
    double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable namespace
    new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires return
    short signed sizeof static static_assert static_cast struct switch template this thread_local throw true try typedef
    typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq""".split()
)
# Names of the C and C++ libraries that the files of an op use.
LIBRARY = {"std", "main", "sqrt", "sqrtf", "exp", "expf", "log", "logf", "abs", "fabsf", "min", "max", "pow", "powf", "half"}
# Macros of the C and C++ libraries, which stand for something else wherever they are written.
MACROS = set(
    """alloca assert errno linux major makedev math_errhandling minor offsetof setjmp sigsetjmp stderr stdin stdout
    strdupa strndupa unix va_arg va_copy va_end va_start""".split()
)


class UsageError(Exception):
    """What is wrong with the command line, in one line."""


def tensor(text, axes):
    """'x:T,H' as ('x', ['T', 'H'])."""
    match = re.fullmatch(r"([a-z][a-z0-9_]*):([A-Z](?:,[A-Z])*)", text)
    if not match:
        raise UsageError(f"'{text}' is not a tensor; write its name and axes, e.g. x:T,H")
    name, shape = match[1], match[2].split(",")
    if name in KEYWORDS | MACROS:
        raise UsageError(f"{text}: '{name}' is a word of C++; take another name for the tensor")
    unknown = [axis for axis in shape if axis not in axes]
    if unknown:
        raise UsageError(f"{text}: axis {unknown[0]} is not in --axes {','.join(axes)}")
    if len(shape) > MOST_AXES:
        raise UsageError(f"{text}: a tensor has at most {MOST_AXES} axes")
    return name, shape


def checked(arguments):
    """(axes, inputs, outputs) of the command line."""
    if arguments.axes is None:
        raise UsageError("--axes is needed: capital letters, rows first, e.g. --axes T,H")
    axes = arguments.axes.split(",")
    if not all(re.fullmatch("[A-Z]", axis) for axis in axes) or len(set(axes)) != len(axes):
        raise UsageError("--axes takes different capital letters, rows first, e.g. --axes T,H")
    inputs = [tensor(text, axes) for text in arguments.inputs]
    outputs = [tensor(text, axes) for text in arguments.outputs]
    names = [name for name, _ in inputs + outputs]
    if not inputs or not outputs:
        raise UsageError("an op has --inputs and --outputs, e.g. --inputs x:T,H w:H --outputs y:T,H")
    if len(set(names)) != len(names):
        raise UsageError("two tensors have the same name")
    unused = [axis for axis in axes if not any(axis in shape for _, shape in inputs)]
    if unused:
        raise UsageError(f"axis {unused[0]} is of no input, so that its size would not be known")
    rows = axes[0]
    if inputs[0][1][0] != rows:
        raise UsageError(f"the first input is that whose rows are counted: write it as {inputs[0][0]}:{rows},...")
    return axes, inputs, outputs


def check_name(name):
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise UsageError(f"'{name}' is not a name of an op: small letters, digits and _, a letter first")


def declared(root):
    """{name: file or folder} of what this tree has given a name: types, functions, namespaces and folders."""
    found = {path.name: path for folder in NAMED_FOLDERS for path in (root / folder).iterdir() if path.is_dir()}
    pattern = re.compile(
        r"^(?:template <[^>]*>\s*)?(?:namespace (?:tigon::)?(?:reference::)?|(?:struct|class|enum class|enum|using) )(\w+)"
        r"|^(?:inline |constexpr |static |__device__ |__host__ |__forceinline__ |[\w:]+[&*]? )+(\w+)\(",
        re.M,
    )
    for file in (path for folder in ("kernels", "reference", "harness") for path in sorted((root / folder).rglob("*.h"))):
        for match in pattern.finditer(file.read_text()):
            found.setdefault(match[1] or match[2], file)
    return found


def check_free(root, name):
    """Raises UsageError for a name that C++ or this tree has given to something else."""
    if name in KEYWORDS | LIBRARY | MACROS or name.endswith("_t") or "__" in name:
        raise UsageError(f"'{name}' is a word of C++; take another name, e.g. my_{name.replace('__', '_').removesuffix('_t')}")
    where = declared(root).get(name)
    if where:
        raise UsageError(f"'{name}' is used already in {where.relative_to(root)}; take another name, e.g. my_{name}")


def store_loop(name, shape, rows):
    """Statements that write the row of one output."""
    at = f"args.{name}.data"
    if shape[0] != rows:
        at_row, lengths, guard = at, shape, "row == 0"
    else:
        at_row, lengths, guard = f"{at} + row * args.{name}.stride[0]", shape[1:], ""
    first = len(shape) - len(lengths)
    todo = f"// TODO: {name}; inputs are read as to_float(load(args.x.data + offset))"
    if not lengths:
        return (
            f"  if (threadIdx.x == 0) {{\n    {todo}\n    const float value = 0.0f;\n"
            f"    store({at} + row, from_float<Elem>(value));\n  }}\n"
        )
    count = " * ".join(f"args.{name}.shape[{first + i}]" for i in range(len(lengths)))
    offset = f"{at_row} + i"
    if len(lengths) == 2:
        size, stride = f"args.{name}.shape[{first + 1}]", f"args.{name}.stride[{first}]"
        offset = f"{at_row} + i / {size} * {stride} + i % {size}"
    elif len(lengths) == 3:  # not by rows: contiguous
        offset = f"{at_row} + i"
    condition = f"{guard} && i < {count}" if guard else f"i < {count}"
    return (
        f"  for (int64_t i = threadIdx.x; {condition}; i += kThreads) {{\n    {todo}\n"
        f"    const float value = 0.0f;\n    store({offset}, from_float<Elem>(value));\n  }}\n"
    )


def absolute(name, shape):
    """A statement of the oracle that makes an output positive."""
    if len(shape) < 3:
        return f"  array(args.{name}) = array(args.{name}).abs();"
    return (
        f"  for (int64_t i = 0; i < args.{name}.shape[0]; ++i)\n"
        f"    slice(args.{name}, i) = slice(args.{name}, i).abs();"
    )


def members(tensors, const):
    """Declarations of the views, those of the same rank in one line."""
    by_rank = {}
    for name, shape in tensors:
        by_rank.setdefault(len(shape), []).append(name)
    elem = "const Elem" if const else "Elem"
    return [f"  View<{elem}, {rank}> {', '.join(names)};" for rank, names in by_rank.items()]


def values(name, axes, inputs, outputs):
    """What stands for the $names of the templates."""
    rows = axes[0]
    tensors = inputs + outputs
    size = {}  # axis -> expression over args
    for tensor_name, shape in inputs:
        for i, axis in enumerate(shape):
            size.setdefault(axis, f"args.{tensor_name}.shape[{i}]")
    by_rows = [n for n, shape in tensors if shape[0] == rows and len(shape) > 1]

    def field(role, tensor, shape):
        text = f'{role}(&Forward::{tensor}, "{tensor}", {{{", ".join(shape)}}})'
        return f"strided({text})" if tensor in by_rows else text

    fields = [field("in", *tensor) for tensor in inputs] + [field("out", *tensor) for tensor in outputs]
    shape_text = ", ".join(f"{n} [{', '.join(s)}]" for n, s in tensors)
    largest = max((shape for _, shape in tensors), key=len)
    row_wise = all(shape[0] == rows for _, shape in outputs)
    plans = []
    for axis in axes:
        tiny, check, sweep, host, huge = ROWS if axis == rows else COLUMNS
        plans.append(
            f"{{.axis = {axis}, .tiny = {tiny}, .check = {check}, .sweep = {sweep},"
            f" .host_sweep = {host}, .huge = {huge}, .refused = {{-1}}}}"
        )
    return {
        "name": name,
        "axes": ", ".join(f'{a}{{"{a}", "{MEANINGS.get(a, "size " + a)}"}}' for a in axes),
        "members": "\n".join(members(inputs, True) + members(outputs, False)),
        "fields": "\n".join(f"    f({field});" for field in fields),
        "first": inputs[0][0],
        "input": inputs[0][0],
        "output": outputs[0][0],
        "body": "".join(store_loop(n, s, rows) for n, s in outputs),
        "sizes": "  const int64_t " + ", ".join(f"{a.lower()} = {size[a]}" for a in axes) + ";",
        "negative": " || ".join(f"{a.lower()} < 0" for a in axes),
        "wrong_shape": " || ".join(
            f"!has_shape(args.{n}, {', '.join(a.lower() for a in s)})" for n, s in tensors
        ),
        "missing": " || ".join(f"is_missing(args.{n})" for n, _ in tensors),
        "shape_text": f"tensors are {shape_text}, with unit stride along the last axis",
        "absolute": "\n".join(absolute(n, s) for n, s in outputs),
        "plans": ", ".join(plans),
        "budget": ", ".join(f'{{"{n}", {{.reduction = {largest[-1]}}}}}' for n, _ in outputs),
        "flops": " * ".join(f"Expr({axis})" for axis in largest),
        "properties": (f'row_independence("{rows}"), ' if row_wise else "") + "dtype_twin()",
    }


def formatted(path):
    """Formats a file where clang-format is there; it is the same program either way."""
    if shutil.which("clang-format-14"):
        subprocess.run(["clang-format-14", "-i", str(path)], check=True)


def write(root, name, arguments):
    paths = {root / pattern.format(name): template for pattern, template in FILES.items()}
    there = [path for path in paths if path.exists()]
    if there:
        raise UsageError(f"{there[0].relative_to(root)} is there already; remove it with --remove or take another name")
    check_free(root, name)
    axes, inputs, outputs = checked(arguments)
    cmake = root / "CMakeLists.txt"
    text = cmake.read_text()
    changed = re.sub(r"(set\(TIGON_OPS\n(?:  \w+\n)*)\)", rf"\g<1>  {name}\n)", text)
    if changed == text:
        raise UsageError("CMakeLists.txt has no list TIGON_OPS")
    substitutes = values(name, axes, inputs, outputs)
    for path, template in paths.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(string.Template((TEMPLATES / template).read_text()).substitute(substitutes))
        formatted(path)
        print(f"wrote {path.relative_to(root)}")
    cmake.write_text(changed)
    print(f"added {name} to TIGON_OPS in CMakeLists.txt")
    print(f"next: the oracle in reference/{name}.h, then the kernel; ./tigon check --op {name}")


def tracked(root, path):
    """Is this path in the last commit?"""
    where = str(path.relative_to(root))
    found = subprocess.run(["git", "-C", str(root), "cat-file", "-e", f"HEAD:{where}"], capture_output=True)
    return found.returncode == 0


def remove(root, name):
    paths = [root / pattern.format(name) for pattern in FILES]
    cmake = root / "CMakeLists.txt"
    text = cmake.read_text()
    line = re.search(rf"^  {name}\n", text, re.M)
    there = [path for path in paths if path.exists()]
    if not there and not line:
        raise UsageError(f"there is no op {name}")
    committed = [path for path in there if tracked(root, path)]
    if committed:
        raise UsageError(f"{committed[0].relative_to(root)} is committed; take it out with git revert or git rm")
    for path in there:
        path.unlink()
        print(f"removed {path.relative_to(root)}")
    folder = root / "kernels" / name
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
    if line:
        cmake.write_text(text[: line.start()] + text[line.end() :])
        print(f"took {name} out of TIGON_OPS in CMakeLists.txt")


def main(words=None, root=ROOT):
    parser = argparse.ArgumentParser(
        prog="./tigon new-op",
        description="Writes the files of a new op and its line in CMakeLists.txt.",
        epilog="examples:\n"
        "  ./tigon new-op my_norm --axes T,H --inputs x:T,H w:H --outputs y:T,H\n"
        "  ./tigon check --op my_norm          fails with 'oracle not written' until it is\n"
        "  ./tigon new-op my_norm --remove     while nothing of it is committed",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", help="small letters, digits and _")
    parser.add_argument("--axes", help="capital letters, rows first: T tokens, H hidden, F, V, Q, K, D or your own")
    parser.add_argument("--inputs", nargs="+", default=[], metavar="NAME:AXES", help="x:T,H w:H")
    parser.add_argument("--outputs", nargs="+", default=[], metavar="NAME:AXES", help="y:T,H")
    parser.add_argument("--remove", action="store_true", help="remove the files of an op that is not committed")
    arguments = parser.parse_args(words)
    try:
        check_name(arguments.name)
        if arguments.remove:
            remove(root, arguments.name)
        else:
            write(root, arguments.name, arguments)
    except UsageError as error:
        print(f"tigon: new-op: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"tigon: new-op: {error}", file=sys.stderr)
        return 5
    return 0


if __name__ == "__main__":
    sys.exit(main())
