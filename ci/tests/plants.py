"""Changes that the gates must find, made to a copy of the sources: python3 ci/tests/plants.py NAME TREE."""
import pathlib
import re
import sys

SWIGLU = "kernels/swiglu/swiglu.cu"
STORE_Y = r"store_piece\(args\.y\.data .*;\n"
STORE_DA = r"store_piece\(args\.da\.data .*;\n"

# name -> (file, what it does, [(pattern of a line that is there once, its replacement)])
PLANTS = {
    # One block of eleven reads a piece that is in no cache: 1/33 of the three tensors' bytes.
    "slow_swiglu": (SWIGLU, "swiglu forward moves 3 % more bytes", [
        (STORE_Y,
         "if (blockIdx.x % 11 == 0) {\n"
         "      const int64_t half = args.a.shape[0] * args.a.shape[1] / 2 & ~int64_t{15};\n"
         "      load_piece_stream<kWidth>(args.a.data + (column < half ? column + half : column - half));\n"
         "    }\n    \\g<0>")]),
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


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in PLANTS:
        sys.exit("usage: plants.py NAME TREE; names: " + ", ".join(f"{n} ({p[1]})" for n, p in PLANTS.items()))
    plant(*sys.argv[1:])
