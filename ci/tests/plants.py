# SPDX-License-Identifier: Apache-2.0
"""Changes that the gates must find: python3 ci/tests/plants.py NAME TREE makes one in a copy of the sources;
python3 ci/tests/plants.py NAME --build BUILD OUT links BUILD's tigon with it, in a minute instead of a second build.
"""
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]

SWIGLU = "kernels/swiglu/swiglu.cu"
STORE_Y = r"store_piece\(args\.y\.data .*;\n"
STORE_DA = r"store_piece\(args\.da\.data .*;\n"

# name -> (file, what it does, [(pattern of a line that is there once, its replacement)])
PLANTS = {
    # One stretch of 8 reads a piece that has left the caches, after its store so that nothing waits for it; little
    # enough arithmetic for the 32 registers that the kernel has.
    "slow_swiglu": (SWIGLU, "swiglu forward takes 3 % longer", [
        (STORE_Y,
         "\\g<0>    if (static_cast<uint32_t>(column) / (256 * kWidth) % 8 == 0) {\n"
         "      unpack_piece(load_piece_stream<kWidth>(args.a.data + (column / 2 & ~int64_t{15})), b);\n"
         # Its value must be used, or the read would not be made.
         "      if (b[0] == 1.2345e30f) args.y.data[offset] = from_float<typename P::Elem>(b[0]);\n"
         "    }\n")]),
    "traffic": (SWIGLU, "swiglu forward reads its second input twice, the second time elsewhere", [
        (STORE_Y,
         "const int64_t half = args.a.shape[0] * args.a.shape[1] / 2 & ~int64_t{15};\n"
         "    unpack_piece(load_piece_stream<kWidth>(args.b.data + (column < half ? column + half : column - half)), b);\n"
         "    for (int j = 0; j < kWidth; ++j)\n"
         "      if (b[j] != b[j]) a[j] = b[j];\n"
         "    \\g<0>")]),
    "spill": (SWIGLU, "swiglu backward keeps 64 values that its registers cannot hold", [
        (r"float a\[kWidth\], b\[kWidth\], dy\[kWidth\];\n",
         "float a[kWidth], b[kWidth], dy[kWidth], much[64], sum = 0;\n"
         "    TIGON_UNROLL\n"
         "    for (int j = 0; j < 64; ++j)\n"
         "      much[j] = to_float(load_stream(args.a.data + (column + j) % args.a.shape[1]));\n"
         "    TIGON_UNROLL\n"
         "    for (int j = 0; j < 64; ++j) sum = sum * much[63 - j] + much[j];\n"),
        (STORE_DA, "a[0] += 1e-30f * sum;\n    \\g<0>")]),
    "lost_wide_load": ("kernels/device/vec_cuda.h", "sixteen-byte loads by memcpy from memory: sixteen loads of one byte", [
        (r"  const uint4 raw = \*reinterpret_cast<const uint4\*>\(p\);\n  return raw_cast<Vec<T>>\(raw\);\n",
         "  return raw_cast<Vec<T>>(*reinterpret_cast<const uint4*>(p));\n")]),
    "lost_wide_store": ("kernels/device/vec_cuda.h", "sixteen-byte stores that nvcc splits", [
        (r"  __stwb\(reinterpret_cast<uint4\*>\(p\), raw_cast<uint4>\(v\)\);\n",
         "  *reinterpret_cast<uint4*>(p) = raw_cast<uint4>(v);\n")]),
}


def plant(name, tree):
    """Makes the change; RuntimeError when the source is no longer what it is made for."""
    file, _, replacements = PLANTS[name]
    path = pathlib.Path(tree) / file
    text = path.read_text()
    for pattern, new in replacements:
        text, count = re.subn(pattern, new, text)
        if count != 1:
            raise RuntimeError(f"{name}: {file} has {count} lines like {pattern.strip()}")
    path.write_text(text)


def planted_program(name, build, out):
    """Links the program of a build, host or cuda, with one kernel planted, as `out`.

    The planted source is compiled by the build's own command. Its object is linked before the archive of kernels, so
    the linker does not take the archive's own.
    """
    build, out = pathlib.Path(build).resolve(), pathlib.Path(out).resolve()
    file = SWIGLU  # of which every plant is to be seen
    listed = subprocess.run(["ninja", "-C", str(build), "-t", "commands", "tigon"], capture_output=True, text=True, check=True)
    commands = listed.stdout.splitlines()
    link = commands[-1]
    archive = re.search(r"\S+/libtigon_kernels_\w+\.a", link)[0]
    packed = next(line for line in commands if f" qc {archive} " in line)
    ours = re.search(rf"\S+/{re.escape(pathlib.Path(file).name)}(\.cpp)?\.o", packed)[0]
    words = shlex.split(next(line for line in commands if f"-o {ours}" in line and " -c " in line))
    with tempfile.TemporaryDirectory() as name_of_folder:
        folder = pathlib.Path(name_of_folder)
        shutil.copytree(ROOT / "kernels", folder / "kernels")
        plant(name, folder)
        wrapper = folder / "planted.cu.cpp"
        wrapper.write_text(f'#include "{folder / file}"\n')
        own = next(k for k, word in enumerate(words) if word.startswith("-I"))  # the planted headers come before them
        flags = [*words[:own], f"-I{folder}", *words[own:words.index("-MD")]]
        language = ["-x", "cu"] if "cu" in words[words.index("-MD"):] else []
        subprocess.run([*flags, *language, "-o", str(folder / "planted.o"), "-c", str(wrapper)], cwd=build, check=True)
        link = link.replace("-o bin/tigon", f"{shlex.quote(str(folder / 'planted.o'))} -o {shlex.quote(str(out))}")
        subprocess.run(link, shell=True, cwd=build, check=True)


if __name__ == "__main__":
    if len(sys.argv) == 5 and sys.argv[1] in PLANTS and sys.argv[2] == "--build":
        planted_program(sys.argv[1], sys.argv[3], sys.argv[4])
    elif len(sys.argv) == 3 and sys.argv[1] in PLANTS:
        plant(*sys.argv[1:])
    else:
        sys.exit("usage: plants.py NAME TREE, or plants.py NAME --build BUILD OUT; names: "
                 + ", ".join(f"{n} ({p[1]})" for n, p in PLANTS.items()))
