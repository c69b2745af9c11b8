// SPDX-License-Identifier: Apache-2.0
// What a pass is timed beside.
#include "harness/measure/yardstick.h"

#include <algorithm>
#include <memory>

#include "harness/measure/device_data.h"
#include "harness/measure/require.h"
#include "harness/measure/stream_kernels.h"
#include "harness/run/check.h"
#include "kernels/device/gemm.h"
#include "kernels/device/integer.h"

namespace tigon {
namespace {

constexpr int64_t kPiece = 16;  // bytes that a thread of the copy moves
constexpr int64_t kLineBytes = 128;

// Random, so that nothing can be compressed and products need the power that they need in use.
DeviceBuffer random_buffer(int64_t elements, DType dtype) {
  DeviceBuffer buffer(static_cast<size_t>(elements) * size_of(dtype));
  require(fill_normal(buffer.data(), dtype, elements, 17, 0, 1, nullptr));
  return buffer;
}

Implementation implementation(const char* name, std::function<Status(Stream)> run) {
  Implementation made{.name = name, .policies = {}, .workspace = {}, .run = {}};
  made.run = [run](DType, const Bound&, Stream stream) { return run(stream); };
  return made;
}

// Half of the bytes are read and half written, each set elsewhere.
std::optional<Yardstick> copy(int64_t bytes, size_t sets, size_t memory_bytes) {
  const int64_t pieces = std::max<int64_t>(1, (bytes + 2 * kPiece - 1) / (2 * kPiece));
  const auto all = static_cast<int64_t>(sets) * pieces * kPiece;
  if (2 * static_cast<size_t>(all) > memory_bytes) return std::nullopt;
  struct State {
    DeviceBuffer from, to;
    size_t next = 0;
  };
  const auto state = std::make_shared<State>(
      State{random_buffer(all / 4, DType::kF32), DeviceBuffer(static_cast<size_t>(all))});
  return Yardstick{implementation(kCopyYardstick, [=](Stream stream) {
    const auto at = static_cast<int64_t>(state->next++ % sets) * pieces * kPiece;
    return stream_copy(static_cast<char*>(state->to.data()) + at,
                       static_cast<const char*>(state->from.data()) + at, pieces, stream);
  })};
}

struct Operands {
  Gemm gemm;
  DeviceBuffer a, b, c, scratch;
};

int64_t elements_of_a(const Gemm& g) { return (g.transpose_a ? g.k : g.m) * g.lda; }
int64_t elements_of_b(const Gemm& g) { return (g.transpose_b ? g.n : g.k) * g.ldb; }

Operands operands_of(Gemm gemm) {
  Operands o{.gemm = gemm,
             .a = random_buffer(elements_of_a(gemm), gemm.in_type),
             .b = random_buffer(elements_of_b(gemm), gemm.in_type),
             .c = DeviceBuffer(static_cast<size_t>(gemm.m * gemm.ldc) * size_of(gemm.out_type)),
             .scratch = {}};
  o.gemm.a = o.a.data();
  o.gemm.b = o.b.data();
  o.gemm.c = o.c.data();
  require(gemm_tune(o.gemm));
  o.scratch = DeviceBuffer(gemm_workspace(o.gemm));
  return o;
}

int64_t padded(int64_t elements, DType dtype) {
  return round_up(elements, kLineBytes / static_cast<int64_t>(size_of(dtype)));
}

// Row-major operands, all of the case's type. Rows begin at cache lines, as those of kernels do:
// cuBLASLt's fast kernels take no rows that begin anywhere.
Gemm gemm_of(const ProductSize& p, DType dtype) {
  return {.m = p.m,
          .n = p.n,
          .k = p.k,
          .in_type = dtype,
          .out_type = dtype,
          .lda = padded(p.transpose_a ? p.m : p.k, dtype),
          .ldb = padded(p.transpose_b ? p.k : p.n, dtype),
          .ldc = padded(p.n, dtype),
          .transpose_a = p.transpose_a,
          .transpose_b = p.transpose_b};
}

std::optional<Yardstick> products(const std::vector<ProductSize>& sizes, DType dtype,
                                  size_t memory_bytes) {
  int64_t elements = 0;
  for (const ProductSize& p : sizes) {
    const Gemm g = gemm_of(p, dtype);
    elements += elements_of_a(g) + elements_of_b(g) + g.m * g.ldc;
  }
  if (static_cast<size_t>(elements) * size_of(dtype) > memory_bytes) return std::nullopt;
  const auto all = std::make_shared<std::vector<Operands>>();
  for (const ProductSize& p : sizes) all->push_back(operands_of(gemm_of(p, dtype)));
  return Yardstick{implementation(kProductsYardstick, [=](Stream stream) {
    for (const Operands& o : *all)
      if (const Status s = gemm(o.gemm, {o.scratch.data(), o.scratch.bytes()}, stream); !s.ok())
        return s;
    return Status{};
  })};
}

}  // namespace

std::optional<Yardstick> Yardstick::of(const Case& c, size_t sets, size_t memory_bytes) {
  const std::vector<ProductSize> sizes = products_of(c);
  if (!sizes.empty()) return products(sizes, c.dtype, memory_bytes);
  return copy(static_cast<int64_t>(minimum_bytes(c)), sets, memory_bytes);
}

}  // namespace tigon
