// SPDX-License-Identifier: Apache-2.0
// Graphs of one operation each, over the interleaved rows of q, k and v as they lie in memory.
// Alone in its file: the frontend's headers take longer to compile than all the rest.
#include "convergence/cudnn_attention.h"

#include <cudnn_frontend.h>
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <mutex>
#include <tuple>
#include <unordered_map>

#include "reference/naive/cudnn_pointwise.h"

namespace tigon::convergence {
namespace {

namespace fe = cudnn_frontend;
using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;

enum Id : int64_t { kQ = 1, kK, kV, kOut, kLse, kDout, kDq, kDk, kDv };

// Deterministic backward keeps a matrix of the scores' size on Ampere and Hopper.
constexpr int64_t kMostDeterministicBytes = int64_t{256} << 20;

constexpr int64_t kTile = 128;  // of sequences, at most

int64_t in_tiles(const AttentionShape& s) { return (s.sequence + kTile - 1) / kTile * kTile; }

int64_t score_matrix_bytes(const AttentionShape& s) {
  return int64_t{s.batch} * s.heads * in_tiles(s) * in_tiles(s) * 2;
}

bool is_deterministic(const AttentionShape& s) {
  return score_matrix_bytes(s) <= kMostDeterministicBytes;
}

// About the scratch of backward: dout * out, the sums of dq or the matrix of scores, and dk and dv
// by query heads.
double backward_size(const AttentionShape& s) {
  const int64_t tokens = s.batch * in_tiles(s), sums = tokens * s.q_size() * 4;
  const int64_t by_query_heads = s.heads == s.kv_heads ? 0 : sums;
  return static_cast<double>(tokens * s.heads * 4 + by_query_heads +
                             (is_deterministic(s) ? score_matrix_bytes(s) : sums));
}

// A sequence of the same heads whose backward is of the same kind.
AttentionShape representative(const AttentionShape& s) {
  return {1, is_deterministic(s) ? 256 : 16384, s.heads, s.kv_heads, s.head_size};
}

// In proportion to that sequence's, and a little more.
CudnnAttentionPlan scaled(const CudnnAttentionPlan& plan, const AttentionShape& of,
                          const AttentionShape& to) {
  constexpr double kMore = 1.01;
  const auto scale = [](size_t bytes, double ratio) {
    return static_cast<size_t>(kMore * ratio * static_cast<double>(bytes));
  };
  const double tokens = static_cast<double>(to.batch * in_tiles(to)) / in_tiles(of);
  return {{},
          plan.deterministic,
          scale(plan.forward_bytes, tokens),
          scale(plan.backward_bytes, backward_size(to) / backward_size(of))};
}

struct Graphs {
  fe::graph::Graph forward, backward;
  CudnnAttentionPlan plan{};
};

void require(fe::error_t e, const char* what) {
  if (e.is_good()) return;
  naive::fail(Status::kUnsupported, fmt::format("cuDNN attention {}: {}", what, e.get_message()));
}

// Describes tensors of one shape to a graph.
class Tensors {
 public:
  Tensors(fe::graph::Graph& graph, const AttentionShape& shape, DType dtype)
      : graph_(graph), s_(shape) {
    graph.set_io_data_type(dtype == DType::kF16 ? fe::DataType_t::HALF : fe::DataType_t::BFLOAT16)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
  }

  // Heads within rows of q, k and v, or of out.
  Tensor q() { return in(kQ, "q", sizes(s_.heads), strides(s_.row())); }
  Tensor k() { return in(kK, "k", sizes(s_.kv_heads), strides(s_.row())); }
  Tensor v() { return in(kV, "v", sizes(s_.kv_heads), strides(s_.row())); }
  Tensor out() { return in(kOut, "out", sizes(s_.heads), strides(s_.q_size())); }
  Tensor dout() { return in(kDout, "dout", sizes(s_.heads), strides(s_.q_size())); }
  Tensor lse() {
    const Tensor lse = in(kLse, "lse", lse_sizes(), lse_strides());
    lse->set_data_type(fe::DataType_t::FLOAT);
    return lse;
  }
  void to_out(const Tensor& t) { to(t, kOut, sizes(s_.heads), strides(s_.q_size())); }
  void to_lse(const Tensor& t) {
    to(t, kLse, lse_sizes(), lse_strides());
    t->set_data_type(fe::DataType_t::FLOAT);
  }
  void to_qkv(const Tensor& t, Id id) {
    to(t, id, sizes(id == kDq ? s_.heads : s_.kv_heads), strides(s_.row()));
  }

 private:
  using Numbers = std::vector<int64_t>;  // batch, head, place, column
  Numbers sizes(int heads) const { return {s_.batch, heads, s_.sequence, s_.head_size}; }
  Numbers strides(int64_t row) const { return {s_.sequence * row, s_.head_size, row, 1}; }
  Numbers lse_sizes() const { return {s_.batch, s_.heads, s_.sequence, 1}; }
  Numbers lse_strides() const { return {int64_t{s_.heads} * s_.sequence, s_.sequence, 1, 1}; }

  Tensor in(Id id, const char* name, const Numbers& sizes, const Numbers& strides) {
    return graph_.tensor(
        fe::graph::Tensor_attributes().set_name(name).set_uid(id).set_dim(sizes).set_stride(
            strides));
  }
  static void to(const Tensor& t, Id id, const Numbers& sizes, const Numbers& strides) {
    t->set_output(true).set_uid(id).set_dim(sizes).set_stride(strides);
  }

  fe::graph::Graph& graph_;
  const AttentionShape& s_;
};

float scale_of(const AttentionShape& s) {
  return 1.0f / std::sqrt(static_cast<float>(s.head_size));
}

size_t compile(fe::graph::Graph& graph, const char* what) {
  require(graph.build(naive::cudnn_handle(nullptr), {fe::HeurMode_t::A}), what);
  int64_t bytes = 0;
  require(graph.get_workspace_size(bytes), what);
  return static_cast<size_t>(bytes);
}

size_t compile_forward(fe::graph::Graph& graph, const AttentionShape& s, DType dtype) {
  Tensors t(graph, s, dtype);
  const auto options = fe::graph::SDPA_attributes()
                           .set_name("attention")
                           .set_generate_stats(true)
                           .set_attn_scale(scale_of(s))
                           .set_causal_mask(true);
  const auto [out, lse] = graph.sdpa(t.q(), t.k(), t.v(), options);
  t.to_out(out);
  t.to_lse(lse);
  return compile(graph, "forward");
}

size_t compile_backward(fe::graph::Graph& graph, const AttentionShape& s, DType dtype) {
  Tensors t(graph, s, dtype);
  const auto options = fe::graph::SDPA_backward_attributes()
                           .set_name("attention_backward")
                           .set_attn_scale(scale_of(s))
                           .set_causal_mask(true)
                           .set_deterministic_algorithm(is_deterministic(s));
  const auto [dq, dk, dv] =
      graph.sdpa_backward(t.q(), t.k(), t.v(), t.out(), t.dout(), t.lse(), options);
  t.to_qkv(dq, kDq);
  t.to_qkv(dk, kDk);
  t.to_qkv(dv, kDv);
  return compile(graph, "backward");
}

void compile(Graphs& graphs, const AttentionShape& s, DType dtype) {
  try {
    graphs.plan.deterministic = is_deterministic(s);
    graphs.plan.forward_bytes = compile_forward(graphs.forward, s, dtype);
    graphs.plan.backward_bytes = compile_backward(graphs.backward, s, dtype);
  } catch (const naive::Failure& f) {
    graphs.plan.refusal = f.status.reason;
  }
}

// What was prepared, by shape and type.
class Prepared {
 public:
  // Null where nothing was.
  const Graphs* find(const AttentionShape& s, DType dtype) {
    const std::lock_guard lock(mutex_);
    const auto found = graphs_.find(key(s, dtype));
    return found == graphs_.end() ? nullptr : &found->second;
  }
  const Graphs& prepare(const AttentionShape& s, DType dtype) {
    const std::lock_guard lock(mutex_);
    const auto [place, fresh] = graphs_.try_emplace(key(s, dtype));
    if (fresh) compile(place->second, s, dtype);
    return place->second;
  }

 private:
  using Key = std::tuple<int, int, int, int, int, DType>;
  static Key key(const AttentionShape& s, DType dtype) {
    return {s.batch, s.sequence, s.heads, s.kv_heads, s.head_size, dtype};
  }
  std::mutex mutex_;
  std::map<Key, Graphs> graphs_;  // whose elements stay where they are
};

// Never destroyed: at the end of the process the driver may be gone.
Prepared& prepared() {
  static auto* const all = new Prepared;
  return *all;
}

using Pointers = std::unordered_map<int64_t, void*>;

Status run(const fe::graph::Graph& graph, Pointers pointers, const Scratch& scratch, size_t needed,
           Stream stream) {
  if (scratch.bytes < needed) return invalid("cuDNN attention: too little scratch");
  try {
    require(graph.execute(naive::cudnn_handle(stream), pointers, scratch.data), "launch");
  } catch (const naive::Failure& f) {
    return {Status::kLaunchFailed, f.status.reason};
  }
  return {};
}

void* at(const void* rows, int64_t column) {
  constexpr int64_t kBytes = 2;  // of bf16 and f16
  return const_cast<char*>(static_cast<const char*>(rows)) + column * kBytes;
}

constexpr const char* kNotPrepared = "cuDNN attention: this shape was not prepared";

}  // namespace

std::string cudnn_attention_version() {
  return fmt::format("cudnn-frontend {}.{}.{}", CUDNN_FRONTEND_MAJOR_VERSION,
                     CUDNN_FRONTEND_MINOR_VERSION, CUDNN_FRONTEND_PATCH_VERSION);
}

CudnnAttentionPlan cudnn_attention_prepare(const AttentionShape& s, DType dtype) {
  return prepared().prepare(s, dtype).plan;
}

CudnnAttentionPlan cudnn_attention_plan(const AttentionShape& s, DType dtype) {
  if (const Graphs* graphs = prepared().find(s, dtype)) return graphs->plan;
  const AttentionShape like = representative(s);
  const CudnnAttentionPlan plan = prepared().prepare(like, dtype).plan;
  return plan.refusal.empty() ? scaled(plan, like, s) : plan;
}

bool cudnn_attention_ready(const AttentionShape& s, DType dtype) {
  const Graphs* const graphs = prepared().find(s, dtype);
  return graphs != nullptr && graphs->plan.refusal.empty();
}

Status cudnn_attention_forward(const CudnnForward& a, Stream stream) {
  if (!cudnn_attention_ready(a.shape, a.dtype)) return invalid(kNotPrepared);
  const Graphs& graphs = *prepared().find(a.shape, a.dtype);
  const int64_t k = a.shape.q_size(), v = k + int64_t{a.shape.kv_heads} * a.shape.head_size;
  return run(
      graphs.forward,
      {{kQ, at(a.qkv, 0)}, {kK, at(a.qkv, k)}, {kV, at(a.qkv, v)}, {kOut, a.out}, {kLse, a.lse}},
      a.scratch, graphs.plan.forward_bytes, stream);
}

Status cudnn_attention_backward(const CudnnBackward& a, Stream stream) {
  if (!cudnn_attention_ready(a.shape, a.dtype)) return invalid(kNotPrepared);
  const Graphs& graphs = *prepared().find(a.shape, a.dtype);
  const int64_t k = a.shape.q_size(), v = k + int64_t{a.shape.kv_heads} * a.shape.head_size;
  return run(graphs.backward,
             {{kQ, at(a.qkv, 0)},
              {kK, at(a.qkv, k)},
              {kV, at(a.qkv, v)},
              {kOut, at(a.out, 0)},
              {kDout, at(a.dout, 0)},
              {kLse, const_cast<float*>(a.lse)},
              {kDq, at(a.dqkv, 0)},
              {kDk, at(a.dqkv, k)},
              {kDv, at(a.dqkv, v)}},
             a.scratch, graphs.plan.backward_bytes, stream);
}

}  // namespace tigon::convergence
