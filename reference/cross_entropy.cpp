// SPDX-License-Identifier: Apache-2.0
// Compiled once for double: cross_entropy's oracle and its S.
#include "reference/cross_entropy_scale.h"

namespace tigon::reference::cross_entropy {

template Row<double> softcapped(const Row<double>&, double);
template Row<double> softcap_slope(const Row<double>&, double);
template double log_sum_exp(const Row<double>&);
template Row<double> probabilities(const Row<double>&, const double&);
template double row_loss(const Row<double>&, const double&, int64_t, const LossOptions&,
                         const Weighting<double>&);
template Row<double> row_gradient(const Row<double>&, const double&, int64_t, const LossOptions&,
                                  const Weighting<double>&);
template double row_entropy(const Row<double>&, const double&);
template void forward(const Forward<F64>&);
template void backward(const Backward<F64>&);
template void forward_backward(const ForwardBackward<F64>&);

}  // namespace tigon::reference::cross_entropy

namespace tigon::reference::cross_entropy {

template Row<double> finite_abs(const Row<double>&);
template double lse_scale(const Row<double>&, const double&);
template double row_loss_scale(const Row<double>&, const double&, int64_t, const LossOptions&,
                               const Weighting<double>&);
template double row_entropy_scale(const Row<double>&, const double&);
template Row<double> probability_scale(const Row<double>&, const double&);
template Row<double> row_gradient_scale(const Row<double>&, const double&, int64_t,
                                        const LossOptions&, const Weighting<double>&);
template void forward_scale(const Forward<F64>&);
template void backward_scale(const Backward<F64>&);
template void forward_backward_scale(const ForwardBackward<F64>&);

}  // namespace tigon::reference::cross_entropy
