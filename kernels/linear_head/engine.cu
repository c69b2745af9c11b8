// SPDX-License-Identifier: Apache-2.0
// The engine of engine.h: enqueues products, passes and sums of gradients, chunk by chunk.
//
// At best the three products take all the time: 6*T*H*V flop.
#include "kernels/linear_head/engine.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "kernels/linear_head/bias_gradient.h"
#include "kernels/linear_head/products.h"
#include "kernels/linear_head/round_rows.h"

namespace tigon::linear_head {
namespace {

// What the products of all chunks need at most.
struct ProductScratch {
  size_t gemm_bytes = 0;
  int64_t bias_sums = 0;
};
template <class T>
ProductScratch product_scratch(const Head<T>& a, const Plan<T>& p) {
  ProductScratch need;
  const auto widen = [&](const Gemm& g) {
    need.gemm_bytes = std::max(need.gemm_bytes, gemm_workspace(g));
    return Status{};
  };
  for_chunks(a, p, [&](Chunk<T> c) {
    widen(logits_gemm(a, c));
    const int64_t groups = bias_groups<T>(c.rows, c.columns);
    need.bias_sums = std::max(need.bias_sums, groups * c.columns);
    return for_gradient_gemms(a, p, c, widen);
  });
  return need;
}

// The gradients that are summed over chunks and then rounded.
template <class T>
void take_sums(const Head<T>& a, bool by_columns, ScratchParts* parts, Plan<T>* p) {
  const int64_t rows = a.x.shape[0];
  const bool cut = rows > 0 && p->chunk < (by_columns ? a.w.shape[0] : rows);
  const bool sums = cut && !std::is_same_v<T, float>;
  p->sums_dw = sums && a.dw && !by_columns;
  p->sums_dx = sums && a.dx && by_columns;
  if (p->sums_dw) p->dw_sum = parts->take<float>(a.w.shape[0] * a.x.shape[1]);
  if (p->sums_dx) p->dx_sum = parts->take<float>(rows * a.x.shape[1]);
}

// dbias, dx and dw from a chunk's dlogits.
template <class T>
Status use_gradient(const Head<T>& a, const Plan<T>& p, const Pass<T>& pass, Chunk<T> c,
                    Stream stream) {
  if (a.dbias) {
    const bool adds = c.row != 0;
    const Status s = add_bias_gradient(c.logits, c.rows, c.columns, c.stride, adds, p.bias_sums,
                                       a.dbias.data + c.column, stream);
    if (!s.ok()) return s;
  }
  const Status s =
      for_gradient_gemms(a, p, c, [&](const Gemm& g) { return gemm(g, p.gemm, stream); });
  return s.ok() ? pass.used(c, stream) : s;
}

template <class T>
Status run_rows(const Head<T>& a, const Plan<T>& p, const Pass<T>& pass, Stream stream) {
  for (int64_t i = 0; i < p.chunks; ++i) {
    const Chunk<T> c = rows_at(a, p, i);
    if (const Status s = compute_logits(a, p, c, stream); !s.ok()) return s;
    if (const Status s = pass.rows(c, stream); !s.ok()) return s;
    if (const Status s = use_gradient(a, p, pass, c, stream); !s.ok()) return s;
  }
  return {};
}

// First the statistics of all columns, then their gradients from the right to the left. The first
// pass takes the rightmost round last: its logits are still in memory when the second pass starts.
// Those of the other rounds are computed again.
template <class T>
Status run_columns(const Head<T>& a, const Plan<T>& p, const Pass<T>& pass, Stream stream) {
  const Round last = round_before(a.w.shape[0], p.room);
  bool is_first = true;
  const auto add = [&](Chunk<T> c) {
    if (const Status s = compute_logits(a, p, c, stream); !s.ok()) return s;
    return pass.add(c, std::exchange(is_first, false), stream);
  };
  const auto add_round = [&](const Round& round) { return for_columns(a, p, round, add); };
  if (const Status s = for_rounds(last.first, p.room, add_round); !s.ok()) return s;
  if (const Status s = add_round(last); !s.ok()) return s;
  if (const Status s = pass.finish(stream); !s.ok()) return s;
  if (!a.has_gradients()) return {};
  const auto compute = [&](Chunk<T> c) { return compute_logits(a, p, c, stream); };
  const auto gradient = [&](Chunk<T> c) {
    if (const Status s = pass.gradient(c, stream); !s.ok()) return s;
    return use_gradient(a, p, pass, c, stream);
  };
  if (const Status s = for_columns(a, p, last, gradient); !s.ok()) return s;
  return for_rounds(last.first, p.room, [&](const Round& round) {
    if (const Status s = for_columns(a, p, round, compute); !s.ok()) return s;
    return for_columns(a, p, round, gradient);
  });
}

// The gradient of each chunk as soon as its logits are computed.
template <class T>
Status run_known(const Head<T>& a, const Plan<T>& p, const Pass<T>& pass, Stream stream) {
  return for_chunks(a, p, [&](Chunk<T> c) {
    if (const Status s = compute_logits(a, p, c, stream); !s.ok()) return s;
    if (const Status s = pass.gradient(c, stream); !s.ok()) return s;
    return use_gradient(a, p, pass, c, stream);
  });
}

template <class T>
Status run_chunks(const Head<T>& a, const Plan<T>& p, const Pass<T>& pass, Stream stream) {
  if (a.x.shape[0] == 0) return {};
  if (a.knows_rows) return run_known(a, p, pass, stream);
  return a.split == Split::kRows ? run_rows(a, p, pass, stream) : run_columns(a, p, pass, stream);
}

// After all chunks: rounds the sums, or writes zeros where there was no row.
template <class T>
Status write_gradients(const Head<T>& a, const Plan<T>& p, Stream stream) {
  const bool none = a.x.shape[0] == 0;
  if (p.sums_dx) {
    if (const Status s = round_rows(p.dx_sum, a.dx, stream); !s.ok()) return s;
  }
  if (a.dw && (p.sums_dw || none)) {
    if (const Status s = round_rows(p.dw_sum, a.dw, stream); !s.ok()) return s;
  }
  if (a.dbias && none) {
    const Status s =
        add_bias_gradient(p.logits, 0, a.w.shape[0], 0, false, p.bias_sums, a.dbias.data, stream);
    if (!s.ok()) return s;
  }
  return a.dw_fp32 && none ? round_rows(nullptr, a.dw_fp32, stream) : Status{};
}

}  // namespace

template <class T>
Plan<T> plan(const Head<T>& a, ScratchParts* parts) {
  const int64_t rows = a.x.shape[0];
  Plan<T> p;
  const bool by_columns = a.split == Split::kVocabulary;
  p.room = logits_room(a);
  p.chunk = by_columns ? p.room.scratch_columns : chunk_rows(a);
  p.chunks = ceil_div(rows, p.chunk);
  p.segments = first_segment<T>(spare_memory(a).data);
  if (rows > 0)
    p.logits = parts->take<T>(by_columns ? rows * round_up(p.chunk, kPadding)
                                         : p.chunk * round_up(a.w.shape[0], kPadding));
  take_sums(a, by_columns, parts, &p);
  const ProductScratch need = product_scratch(a, p);
  if (a.dbias) p.bias_sums = parts->take<float>(need.bias_sums);
  p.gemm.bytes = need.gemm_bytes;
  p.gemm.data = parts->take<char>(static_cast<int64_t>(need.gemm_bytes));
  return p;
}

template <class T>
Status run(const Head<T>& a, const Plan<T>& p, const Pass<T>& pass, Stream stream) {
  if (const Status s = run_chunks(a, p, pass, stream); !s.ok()) return s;
  return write_gradients(a, p, stream);
}

template <class T>
Status compute_logits(const Head<T>& a, const Plan<T>& p, const Chunk<T>& c, Stream stream) {
  return gemm(logits_gemm(a, c), p.gemm, stream);
}

template <class T>
Status tune(const Head<T>& a, const Plan<T>& p) {
  return for_chunks(a, p, [&](Chunk<T> c) {
    if (const Status s = gemm_tune(logits_gemm(a, c)); !s.ok()) return s;
    return for_gradient_gemms(a, p, c, gemm_tune);
  });
}

template Plan<float> plan<float>(const Head<float>&, ScratchParts*);
template Plan<bf16> plan<bf16>(const Head<bf16>&, ScratchParts*);
template Plan<f16> plan<f16>(const Head<f16>&, ScratchParts*);
template Status run<float>(const Head<float>&, const Plan<float>&, const Pass<float>&, Stream);
template Status run<bf16>(const Head<bf16>&, const Plan<bf16>&, const Pass<bf16>&, Stream);
template Status run<f16>(const Head<f16>&, const Plan<f16>&, const Pass<f16>&, Stream);
template Status compute_logits<float>(const Head<float>&, const Plan<float>&, const Chunk<float>&,
                                      Stream);
template Status compute_logits<bf16>(const Head<bf16>&, const Plan<bf16>&, const Chunk<bf16>&,
                                     Stream);
template Status compute_logits<f16>(const Head<f16>&, const Plan<f16>&, const Chunk<f16>&, Stream);
template Status tune<float>(const Head<float>&, const Plan<float>&);
template Status tune<bf16>(const Head<bf16>&, const Plan<bf16>&);
template Status tune<f16>(const Head<f16>&, const Plan<f16>&);

}  // namespace tigon::linear_head
