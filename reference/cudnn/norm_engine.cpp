// SPDX-License-Identifier: Apache-2.0
// Alone in its file: the frontend's headers take longer to compile than all the rest.
#include "reference/cudnn/norm_engine.h"

#include <cudnn_frontend.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <string>

#include "reference/naive/cudnn_pointwise.h"

namespace tigon::cudnn {
namespace {

namespace fe = cudnn_frontend;
using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;

void require(fe::error_t e, const char* what) {
  if (e.is_good()) return;
  std::string words = e.get_message();
  std::replace(words.begin(), words.end(), '\n', ' ');
  naive::fail(Status::kUnsupported, std::string("cuDNN ") + what + ": " + words);
}

fe::DataType_t frontend_type(DType type) {
  return type == DType::kBF16  ? fe::DataType_t::BFLOAT16
         : type == DType::kF16 ? fe::DataType_t::HALF
                               : fe::DataType_t::FLOAT;
}

// Describes the tensors of a norm to its graph. Sizes are those of images of one pixel: tokens,
// channels, height and width.
class Tensors {
 public:
  Tensors(fe::graph::Graph& graph, const Norm& norm) : graph_(graph), norm_(norm) {}

  Tensor in(NormTensor id) {
    fe::graph::Tensor_attributes t;
    describe(&t, id);
    return graph_.tensor(t.set_is_pass_by_value(id == kEps));
  }
  Tensor in_if(bool given, NormTensor id) { return given ? in(id) : nullptr; }
  void out(const Tensor& t, NormTensor id) { describe(&t->set_output(true), id); }

 private:
  void describe(fe::graph::Tensor_attributes* t, NormTensor id) const {
    const bool matrix = id <= kDx, weight = !matrix && id <= kDb;
    const int64_t rows = matrix || id == kMean || id == kRstd ? norm_.rows : 1;
    const int64_t columns = matrix || weight ? norm_.columns : 1;
    t->set_uid(id)
        .set_dim({rows, columns, 1, 1})
        .set_stride({columns, 1, 1, 1})
        .set_data_type(frontend_type(matrix   ? norm_.type
                                     : weight ? norm_.weight_type
                                              : DType::kF32));
  }

  fe::graph::Graph& graph_;
  const Norm& norm_;
};

void describe_rms(fe::graph::Graph& graph, const Norm& norm) {
  Tensors t(graph, norm);
  if (norm.backward) {
    const Tensor dy = t.in(kDy), x = t.in(kX), w = t.in_if(norm.has_weight, kW);
    const auto [dx, dw, db] = graph.rmsnorm_backward(
        dy, x, w, t.in(kRstd), fe::graph::Rmsnorm_backward_attributes().has_dbias(false));
    t.out(dx, kDx);
    if (norm.has_weight) t.out(dw, kDw);
    return;
  }
  Tensor eps = t.in(kEps);
  const Tensor x = t.in(kX), w = t.in_if(norm.has_weight, kW);
  const auto [y, rstd] = graph.rmsnorm(x, w,
                                       fe::graph::Rmsnorm_attributes()
                                           .set_forward_phase(fe::NormFwdPhase_t::TRAINING)
                                           .set_epsilon(eps));
  t.out(y, kY);
  t.out(rstd, kRstd);
}

void describe_layer(fe::graph::Graph& graph, const Norm& norm) {
  Tensors t(graph, norm);
  if (norm.backward) {
    const Tensor dy = t.in(kDy), x = t.in(kX), w = t.in_if(norm.has_weight, kW);
    const auto [dx, dw, db] = graph.layernorm_backward(
        dy, x, w,
        fe::graph::Layernorm_backward_attributes().set_saved_mean_and_inv_variance(t.in(kMean),
                                                                                   t.in(kRstd)));
    t.out(dx, kDx);
    if (!norm.has_weight) return;
    t.out(dw, kDw);
    t.out(db, kDb);
    return;
  }
  Tensor eps = t.in(kEps);
  const Tensor x = t.in(kX), w = t.in_if(norm.has_weight, kW), b = t.in_if(norm.has_bias, kB);
  const auto [y, mean, rstd] = graph.layernorm(x, w, b,
                                               fe::graph::Layernorm_attributes()
                                                   .set_forward_phase(fe::NormFwdPhase_t::TRAINING)
                                                   .set_epsilon(eps));
  t.out(y, kY);
  t.out(mean, kMean);
  t.out(rstd, kRstd);
}

struct Engine {
  fe::graph::Graph graph;
  Status refusal{};  // ok where cuDNN has an engine
  size_t bytes = 0;
};

void compile(Engine* engine, const Norm& norm) {
  fe::graph::Graph& graph = engine->graph;
  graph.set_io_data_type(frontend_type(norm.type))
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  if (norm.kind == Norm::kRms)
    describe_rms(graph, norm);
  else
    describe_layer(graph, norm);
  const cudnnHandle_t handle = naive::cudnn_handle(nullptr);
  require(graph.validate(), "norm");
  require(graph.build_operation_graph(handle), "norm");
  require(graph.create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK}), "norm");
  graph.deselect_numeric_notes({fe::NumericalNote_t::NONDETERMINISTIC});
  require(graph.check_support(), "norm");
  require(graph.build_plans(), "norm");
  int64_t bytes = 0;
  require(graph.get_workspace_size(bytes), "norm");
  engine->bytes = static_cast<size_t>(bytes);
}

// Compiled unless it was.
const Engine& engine_of(const Norm& norm) {
  static std::mutex mutex;
  // Never destroyed: at the end of the process the driver may be gone.
  static auto& engines = *new std::map<Norm, Engine>;  // whose elements stay where they are
  const std::lock_guard lock(mutex);
  const auto [place, fresh] = engines.try_emplace(norm);
  try {
    if (fresh) compile(&place->second, norm);
  } catch (const naive::Failure& f) {
    place->second.refusal = f.status;
  }
  return place->second;
}

}  // namespace

size_t workspace(const Norm& norm) { return engine_of(norm).bytes; }

Status run(const Norm& norm, Pointers tensors, const Scratch& scratch, Stream stream) {
  const Engine& engine = engine_of(norm);
  if (!engine.refusal.ok()) return engine.refusal;
  if (scratch.bytes < engine.bytes) return invalid("cuDNN norm: too little scratch");
  try {
    require(engine.graph.execute(naive::cudnn_handle(stream), tensors, scratch.data), "launch");
  } catch (const naive::Failure& f) {
    return {Status::kLaunchFailed, f.status.reason};
  }
  return {};
}

}  // namespace tigon::cudnn
