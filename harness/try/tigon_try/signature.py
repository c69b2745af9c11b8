# SPDX-License-Identifier: Apache-2.0
"""What the built program says about an op, and the code that finds an op's launchers in somebody's file."""
import dataclasses
import json
import re
import subprocess

POLICIES = {"f32": "F32", "bf16": "BF16", "f16": "F16"}


@dataclasses.dataclass(frozen=True)
class Signature:
    op: str
    passes: dict  # name -> its part of `tigon describe --all --json`: tensors and options in the order of a call

    @property
    def header(self):
        return f"kernels/{self.op}/{self.op}.h"

    def arguments(self, name, policy="P"):
        """The struct of a pass' arguments; the compiler says if it is not named like the pass."""
        return f"{self.op}::{name.title().replace('_', '')}<{policy}>"

    def declaration(self, name):
        return f"template <class P> Status {name}(const {self.arguments(name).split('::')[1]}& args, Stream stream)"


def all_of(program):
    """{op: its signature}; without those that several ranks have a part of: their contract is that of all ranks together."""
    text = subprocess.run([program, "describe", "--all", "--json"], capture_output=True, text=True, check=True).stdout
    return {op["name"]: Signature(op["name"], {one["name"]: one for one in op["passes"]}) for op in json.loads(text)["ops"]
            if not any(option["name"] == "ranks" for one in op["passes"] for option in one["options"])}


def models_of(program):
    """The names that --model takes."""
    text = subprocess.run([program, "list", "models", "--json"], capture_output=True, text=True, check=True).stdout
    return [model["name"] for model in json.loads(text)["models"]]


def included_op(text):
    """The op whose signature a file includes, or None."""
    found = re.search(r'^\s*#\s*include\s*[<"]kernels/(\w+)/(\w+)\.h[>"]', text, re.M)
    return found[1] if found and found[1] == found[2] else None


def _weak(signature):
    """What a file may define, null instead of a link error where it does not."""
    lines = [f"namespace tigon::{signature.op} {{"]
    for name in signature.passes:
        args = signature.arguments(name).split("::")[1]
        lines += [f"template <class P> __attribute__((weak)) Status {name}(const {args}&, Stream);",
                  f"template <class P> __attribute__((weak)) size_t workspace(const {args}&);",
                  f"template <class P> __attribute__((weak)) Status tune(const {args}&);"]
    return lines + ["}"]


def before(signature):
    """Put before somebody's file."""
    return "\n".join(['#include "harness/try/cuda_runtime_host.h"', f'#include "{signature.header}"', *_weak(signature), ""])


def _launchers(signature, name, dtype):
    """(type, value) of the launchers of a pass in a dtype."""
    functions = ", ".join(f"&{signature.op}::{function}<{POLICIES[dtype]}>" for function in (name, "workspace", "tune"))
    return f"tried::Launchers<{signature.arguments(name, POLICIES[dtype])}>", f"{{{functions}}}"


def behind(signature, passes, dtypes):
    """Put behind the file: its launchers come to be."""
    lines = ["", "namespace {", "using namespace tigon;"]
    for one in passes:
        for dtype in dtypes:
            of, value = _launchers(signature, one, dtype)
            lines.append(f"[[gnu::used]] {of} {one}_{dtype} = {value};")
    return "\n".join(lines + ["}", ""])


def named(name, checked=False):
    """The name of the library; whether it checks the accesses of its kernels."""
    lines = [f'extern "C" const char tigon_try_name[] = "{name}";']
    if checked:
        lines += ["namespace tigon::simt {", "void set_checked();", "}", "[[gnu::constructor]] static void begin() { tigon::simt::set_checked(); }"]
    return "\n".join([*lines, ""])


def plugin(signature):
    """The plug-in of all launchers of the op, whoever defines them: a translation unit of its own."""
    lines = ['#include "harness/try/tried_op.h"', f'#include "{signature.header}"', *_weak(signature),
             "const tigon_op* tigon_find(const char* name, int32_t dtype) {", "  using namespace tigon;",
             "  static const std::vector<tigon_op> ops = [] {", "    std::vector<tigon_op> all;"]
    for one in signature.passes:
        for dtype in POLICIES:
            of, value = _launchers(signature, one, dtype)
            lines.append(f"    tried::add({of}{value}, &all);")
    return "\n".join([*lines, "    return all;", "  }();", "  return call::find(ops, name, dtype);", "}", "#if !TIGON_GPU",
                      'extern "C" TIGON_API void tigon_try_traffic(double* figures) { tigon::tried::take_traffic(figures); }', "#endif", ""])
