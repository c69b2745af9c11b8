// The matrix products of a model: linear layers and their gradients.
#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "convergence/model.h"
#include "convergence/require.h"

namespace tigon::convergence {

template <class P>
Gemm Model<P>::product(int64_t out, int64_t in, const Elem* x, const Elem* w, Elem* y) const {
  Gemm g{.m = tokens(), .n = out, .k = in, .a = x, .b = w, .c = y};
  g.in_type = g.out_type = dtype_of<Elem>;
  g.lda = g.ldb = in;
  g.ldc = out;
  g.transpose_b = true;
  return g;
}

template <class P>
Gemm Model<P>::input_gradient(int64_t out, int64_t in, const Elem* dy, const Elem* w,
                              Elem* dx) const {
  Gemm g{.m = tokens(), .n = in, .k = out, .a = dy, .b = w, .c = dx};
  g.in_type = g.out_type = dtype_of<Elem>;
  g.lda = out;
  g.ldb = g.ldc = in;
  return g;
}

template <class P>
Gemm Model<P>::weight_gradient(int64_t out, int64_t in, const Elem* dy, const Elem* x,
                               Elem* dw) const {
  Gemm g{.m = out, .n = in, .k = tokens(), .a = dy, .b = x, .c = dw};
  g.in_type = g.out_type = dtype_of<Elem>;
  g.lda = out;
  g.ldb = g.ldc = in;
  g.transpose_a = true;
  return g;
}

// Forward and both gradients of a matrix; the pointers stand for others as well aligned.
template <class P>
std::vector<Gemm> Model<P>::products_of(int64_t out, int64_t in, const Buffers& b) const {
  return {product(out, in, b.branch, b.weight, b.branch),
          input_gradient(out, in, b.branch, b.weight, b.branch),
          weight_gradient(out, in, b.branch, b.branch, b.weight)};
}

template <class P>
std::vector<Gemm> Model<P>::layer_products(const Buffers& b) const {
  const int64_t inner = config_.intermediate;
  const std::pair<int64_t, int64_t> matrices[] = {{config_.qkv_size(), hidden()},
                                                  {hidden(), config_.q_size()},
                                                  {2 * inner, hidden()},
                                                  {hidden(), inner},
                                                  {hidden(), hidden()}};  // of Medusa heads
  std::vector<Gemm> all;
  for (const auto& [out, in] : matrices)
    for (const Gemm& g : products_of(out, in, b)) all.push_back(g);
  return all;
}

template <class P>
void Model<P>::multiply(const Gemm& problem) {
  const PartRange range = part(Part::kLinear);
  if (meter_ != nullptr) products_.push_back(problem);
  require(gemm(problem, b_.gemm_scratch, stream_), "matrix product");
}

template <class P>
double Model<P>::seconds_alone(const Gemm& problem) {
  constexpr int kCalls = 3;
  const auto run = [&] { require(gemm(problem, b_.gemm_scratch, stream_), "matrix product"); };
  run();
  std::array<double, 3> seconds;
  GpuTimer timer;
  for (double& s : seconds) {
    timer.start(stream_);
    for (int call = 0; call < kCalls; ++call) run();
    timer.stop(stream_);
    s = timer.seconds() / kCalls;
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[1];
}

template <class P>
ProductsAlone Model<P>::products_alone() {
  using Kind = std::tuple<int64_t, int64_t, int64_t, bool, bool, float>;
  std::map<Kind, double> seconds;
  ProductsAlone sum;
  for (const Gemm& g : products_) {
    const auto [place, fresh] =
        seconds.try_emplace(Kind{g.m, g.n, g.k, g.transpose_a, g.transpose_b, g.beta});
    if (fresh) place->second = seconds_alone(g);
    sum.flop +=
        2.0 * static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k);
    sum.seconds += place->second;
  }
  return sum;
}

template <class P>
void Model<P>::linear_backward(int64_t out, int64_t in, const Elem* dy, const Elem* x, int64_t w,
                               Elem* dx) {
  multiply(weight_gradient(out, in, dy, x, gradient(w)));
  multiply(input_gradient(out, in, dy, weight(w), dx));
}

template class Model<F32>;
template class Model<BF16>;

}  // namespace tigon::convergence
