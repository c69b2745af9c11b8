"""What an op's header says about its launchers, and the code that finds them in somebody's file."""
import dataclasses
import pathlib
import re

POLICIES = {"f32": "F32", "bf16": "BF16", "f16": "F16"}
_LAUNCHER = re.compile(r"^Status (\w+)\(const (\w+)<P>& args, Stream stream\);", re.M)
_WORKSPACE = re.compile(r"^size_t workspace\(const (\w+)<P>& args\);", re.M)
_TUNE = re.compile(r"^Status tune\(const (\w+)<P>& args\);", re.M)


@dataclasses.dataclass(frozen=True)
class Signature:
    op: str
    launchers: dict  # pass -> the struct of its arguments
    workspaces: tuple  # structs
    tunes: tuple

    @property
    def header(self):
        return f"kernels/{self.op}/{self.op}.h"

    def declaration(self, name):
        return f"template <class P> Status {name}(const {self.launchers[name]}<P>& args, Stream stream)"


def ops(root):
    return sorted(path.parent.name for path in pathlib.Path(root).glob("kernels/*/*.h") if path.stem == path.parent.name and
                  _LAUNCHER.search(path.read_text()))


def of_op(root, op):
    text = (pathlib.Path(root) / f"kernels/{op}/{op}.h").read_text()
    return Signature(op, dict(_LAUNCHER.findall(text)), tuple(_WORKSPACE.findall(text)), tuple(_TUNE.findall(text)))


def included_op(text):
    """The op whose signature a file includes, or None."""
    found = re.search(r'^\s*#\s*include\s*[<"]kernels/(\w+)/(\w+)\.h[>"]', text, re.M)
    return found[1] if found and found[1] == found[2] else None


def _weak(signature):
    """The op's launchers, null instead of a link error where nobody defines them."""
    lines = [f"namespace tigon::{signature.op} {{"]
    for name, args in signature.launchers.items():
        lines.append(f"template <class P> __attribute__((weak)) Status {name}(const {args}<P>&, Stream);")
    lines += [f"template <class P> __attribute__((weak)) size_t workspace(const {args}<P>&);" for args in signature.workspaces]
    lines += [f"template <class P> __attribute__((weak)) Status tune(const {args}<P>&);" for args in signature.tunes]
    return lines + ["}"]


def before(signature):
    """Put before somebody's file."""
    return "\n".join(['#include "harness/try/cuda_runtime_host.h"', f'#include "{signature.header}"', *_weak(signature), ""])


def _functions(signature, name, dtype):
    """[(what, expression)] of a pass in a dtype."""
    args, p = signature.launchers[name], POLICIES[dtype]
    found = [("run", f"{signature.op}::{name}<{p}>", f"{signature.op}::{args}<{p}>")]
    if args in signature.workspaces:
        found.append(("workspace", f"{signature.op}::workspace<{p}>", f"{signature.op}::{args}<{p}>"))
    if args in signature.tunes:
        found.append(("tune", f"{signature.op}::tune<{p}>", f"{signature.op}::{args}<{p}>"))
    return found


def behind(signature, name, passes, dtypes):
    """Put behind the file: its launchers come to be, and the library has a name."""
    lines = ["", f'extern "C" const char tigon_try_name[] = "{name}";', "namespace {", "using namespace tigon;"]
    for one in passes:
        for dtype in dtypes:
            for what, function, args in _functions(signature, one, dtype):
                of = f"tried::{'Run' if what == 'run' else 'Workspace' if what == 'workspace' else 'Tune'}<{args}>"
                lines.append(f"[[gnu::used]] {of} {one}_{dtype}_{what} = &{function};")
    return "\n".join(lines + ["}", ""])


def plugin(signature):
    """The plug-in of all launchers of the op, whoever defines them: a translation unit of its own."""
    op = signature.op
    lines = ['#include "harness/try/launchers.h"', f'#include "{signature.header}"', *_weak(signature),
             "const tigon_plugin* tigon_plugin_get(uint32_t abi) {", "  using namespace tigon;",
             "  static tried::Library library;", "  if (library.empty()) {"]
    for one, args in signature.launchers.items():
        for dtype in POLICIES:
            lines += [f"    tried::Launcher<{of}>::{what} = &{function};" for what, function, of in _functions(signature, one, dtype)]
        lines.append(f'    library.add<{op}::{args}>("{op}", "{one}");')
    lines += ["  }", "  return library.get(abi);", "}", "#if !TIGON_GPU",
              'extern "C" TIGON_PLUGIN_EXPORT void tigon_try_traffic(double* figures) { tigon::tried::take_traffic(figures); }', "#endif", ""]
    return "\n".join(lines)
