// SPDX-License-Identifier: Apache-2.0
// The matrix products of a model: linear layers and their gradients.
#pragma once
#include <vector>

#include "convergence/model_context.h"

namespace tigon::convergence {

// The matrix products of linear layers in one step, each measured alone.
struct ProductsAlone {
  double flop = 0;
  double seconds = 0;
};

template <class P>
class ModelProducts {
 public:
  using Elem = typename P::Elem;
  explicit ModelProducts(ModelContext<P>& context) : c_(context) {}

  // y = x w^T, dx = dy w and dw = dy^T x of a matrix w [out, in] for all tokens of a batch.
  Gemm product(int64_t out, int64_t in, const Elem* x, const Elem* w, Elem* y) const;
  Gemm input_gradient(int64_t out, int64_t in, const Elem* dy, const Elem* w, Elem* dx) const;
  Gemm weight_gradient(int64_t out, int64_t in, const Elem* dy, const Elem* x, Elem* dw) const;

  void run(const Gemm& problem) const;
  // With the matrix that begins at `w` of the weights; backward has both gradients.
  void forward(int64_t out, int64_t in, const Elem* x, int64_t w, Elem* y) const;
  void backward(int64_t out, int64_t in, const Elem* dy, const Elem* x, int64_t w, Elem* dx) const;

  // Bytes of scratch that the products of all layers need at most.
  size_t workspace() const;
  // Chooses their algorithms, and those of an unfused head.
  void tune() const;
  // Those of the last step with a meter, each run again by itself, three times three in a row.
  ProductsAlone measure_alone() const;

 private:
  std::vector<Gemm> products_of(int64_t out, int64_t in) const;
  std::vector<Gemm> layer_products() const;
  double seconds_alone(const Gemm& problem) const;

  ModelContext<P>& c_;
};

}  // namespace tigon::convergence
