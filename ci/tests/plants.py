"""Changes that the gates must find, made to a copy of the sources: python3 ci/tests/plants.py NAME TREE."""
import pathlib
import sys

# name -> (file, what it does, [(text that is there once, its replacement)])
PLANTS = {
    "slow_swiglu": ("kernels/swiglu/swiglu.cu", "3 % of the blocks of swiglu forward do work that others do, too", [
        ("  const int64_t first = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * kWidth;\n",
         "  unsigned block = blockIdx.x;\n"
         "  if constexpr (requires { args.y; })\n"
         "    block %= static_cast<unsigned>((columns + kThreads * kWidth - 1) / (kThreads * kWidth));\n"
         "  const int64_t first = (static_cast<int64_t>(block) * kThreads + threadIdx.x) * kWidth;\n"),
        ("    const dim3 grid(static_cast<unsigned>((columns + per_block - 1) / per_block),\n",
         "    const int64_t blocks = (columns + per_block - 1) / per_block;\n"
         "    const dim3 grid(static_cast<unsigned>(blocks + (sizeof...(Views) == 3 ? blocks * 3 / 100 : 0)),\n")]),
    "traffic": ("kernels/swiglu/swiglu.cu", "swiglu forward reads its second input twice", [
        ("  store_piece(args.y.data + row * stride + column, a);\n",
         "  unpack_piece(load_piece_stream<kWidth>(args.b.data + row * args.b.stride[0] + column), b);\n"
         "  store_piece(args.y.data + row * stride + column, a);\n")]),
    "spill": ("kernels/swiglu/swiglu.cu", "blocks of swiglu that may use too few registers", [
        ("TIGON_KERNEL(kThreads, kBlocksPerSm<Args>)", "TIGON_KERNEL(kThreads * 4, 2)"),
        ("  float a[kWidth], b[kWidth], dy[kWidth];\n",
         "  float a[kWidth], b[kWidth], dy[kWidth], much[24];\n"
         "  for (int j = 0; j < 24; ++j) much[j] = to_float(load(args.a.data + (row + j) % 2 + column * j % 3));\n"
         "  for (int i = 0; i < 24; ++i)\n"
         "    for (int j = 0; j < 24; ++j) much[j] += much[i] * much[(i * j) % 24];\n")]),
    "lost_wide_load": ("kernels/device/vec_cuda.h", "sixteen-byte loads by memcpy from memory: sixteen loads of one byte", [
        ("  const uint4 raw = *reinterpret_cast<const uint4*>(p);\n  return raw_cast<Vec<T>>(raw);\n",
         "  return raw_cast<Vec<T>>(*reinterpret_cast<const uint4*>(p));\n")]),
    "lost_wide_store": ("kernels/device/vec_cuda.h", "sixteen-byte stores that nvcc splits", [
        ("  __stwb(reinterpret_cast<uint4*>(p), raw_cast<uint4>(v));\n",
         "  *reinterpret_cast<uint4*>(p) = raw_cast<uint4>(v);\n")]),
}


def plant(name, tree):
    """Makes the change; RuntimeError when the source is no longer what it is made for."""
    file, _, replacements = PLANTS[name]
    path = pathlib.Path(tree) / file
    text = path.read_text()
    for old, new in replacements:
        if text.count(old) != 1:
            raise RuntimeError(f"{name}: {file} has {text.count(old)} times: {old.strip()[:80]}")
        text = text.replace(old, new)
    path.write_text(text)


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in PLANTS:
        sys.exit("usage: plants.py NAME TREE; names: " + ", ".join(f"{n} ({p[1]})" for n, p in PLANTS.items()))
    plant(*sys.argv[1:])
