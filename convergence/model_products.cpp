// SPDX-License-Identifier: Apache-2.0
// Linear layers and their gradients.
#include "convergence/model_products.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

#include "convergence/require.h"

namespace tigon::convergence {

template <class P>
Gemm ModelProducts<P>::product(int64_t out, int64_t in, const Elem* x, const Elem* w,
                               Elem* y) const {
  Gemm g{.m = c_.tokens(), .n = out, .k = in, .a = x, .b = w, .c = y};
  g.in_type = g.out_type = dtype_of<Elem>;
  g.lda = g.ldb = in;
  g.ldc = out;
  g.transpose_b = true;
  return g;
}

template <class P>
Gemm ModelProducts<P>::input_gradient(int64_t out, int64_t in, const Elem* dy, const Elem* w,
                                      Elem* dx) const {
  Gemm g{.m = c_.tokens(), .n = in, .k = out, .a = dy, .b = w, .c = dx};
  g.in_type = g.out_type = dtype_of<Elem>;
  g.lda = out;
  g.ldb = g.ldc = in;
  return g;
}

template <class P>
Gemm ModelProducts<P>::weight_gradient(int64_t out, int64_t in, const Elem* dy, const Elem* x,
                                       Elem* dw) const {
  Gemm g{.m = out, .n = in, .k = c_.tokens(), .a = dy, .b = x, .c = dw};
  g.in_type = g.out_type = dtype_of<Elem>;
  g.lda = out;
  g.ldb = g.ldc = in;
  g.transpose_a = true;
  return g;
}

template <class P>
void ModelProducts<P>::run(const Gemm& problem) const {
  const PartRange range = c_.part(Part::kLinear);
  if (c_.meter != nullptr) c_.products.push_back(problem);
  require(gemm(problem, c_.b.gemm_scratch, c_.stream), "matrix product");
}

template <class P>
void ModelProducts<P>::forward(int64_t out, int64_t in, const Elem* x, int64_t w, Elem* y) const {
  run(product(out, in, x, c_.weight(w), y));
}

template <class P>
void ModelProducts<P>::backward(int64_t out, int64_t in, const Elem* dy, const Elem* x, int64_t w,
                                Elem* dx) const {
  run(weight_gradient(out, in, dy, x, c_.gradient(w)));
  run(input_gradient(out, in, dy, c_.weight(w), dx));
}

// Forward and both gradients of a matrix; the pointers stand for others as well aligned.
template <class P>
std::vector<Gemm> ModelProducts<P>::products_of(int64_t out, int64_t in) const {
  Elem *const any = c_.b.branch, *const weight = c_.b.weight;
  return {product(out, in, any, weight, any), input_gradient(out, in, any, weight, any),
          weight_gradient(out, in, any, any, weight)};
}

template <class P>
std::vector<Gemm> ModelProducts<P>::layer_products() const {
  const ModelConfig& config = c_.config;
  const int64_t hidden = c_.hidden(), inner = config.intermediate;
  const std::pair<int64_t, int64_t> matrices[] = {{config.qkv_size(), hidden},
                                                  {hidden, config.q_size()},
                                                  {2 * inner, hidden},
                                                  {hidden, inner},
                                                  {hidden, hidden}};  // of Medusa heads
  std::vector<Gemm> all;
  for (const auto& [out, in] : matrices)
    for (const Gemm& g : products_of(out, in)) all.push_back(g);
  return all;
}

template <class P>
size_t ModelProducts<P>::workspace() const {
  size_t bytes = 0;
  for (const Gemm& g : layer_products()) bytes = std::max(bytes, gemm_workspace(g));
  return bytes;
}

// A fused head has chunks of its own size.
template <class P>
void ModelProducts<P>::tune() const {
  std::vector<Gemm> problems = layer_products();
  for (const Gemm& g : products_of(c_.config.vocabulary, c_.hidden())) problems.push_back(g);
  for (const Gemm& g : problems) require(gemm_tune(g), "choice of a matrix product");
}

template <class P>
double ModelProducts<P>::seconds_alone(const Gemm& problem) const {
  constexpr int kCalls = 3;
  const auto call = [&] { require(gemm(problem, c_.b.gemm_scratch, c_.stream), "matrix product"); };
  call();
  std::array<double, 3> seconds;
  GpuTimer timer;
  for (double& s : seconds) {
    timer.start(c_.stream);
    for (int i = 0; i < kCalls; ++i) call();
    timer.stop(c_.stream);
    s = timer.seconds() / kCalls;
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[1];
}

template <class P>
ProductsAlone ModelProducts<P>::measure_alone() const {
  using Kind = std::tuple<int64_t, int64_t, int64_t, bool, bool, float>;
  std::map<Kind, double> seconds;
  ProductsAlone sum;
  for (const Gemm& g : c_.products) {
    const auto [known, is_new] =
        seconds.try_emplace(Kind{g.m, g.n, g.k, g.transpose_a, g.transpose_b, g.beta});
    if (is_new) known->second = seconds_alone(g);
    sum.flop +=
        2.0 * static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k);
    sum.seconds += known->second;
  }
  return sum;
}

template class ModelProducts<F32>;
template class ModelProducts<BF16>;

}  // namespace tigon::convergence
