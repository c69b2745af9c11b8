// SPDX-License-Identifier: Apache-2.0
// Compiled once for double: log_prob's oracle and its S.
#include "reference/log_prob.h"

namespace tigon::reference::log_prob {

template Row<double> times_log_p(const Row<double>&, const Row<double>&, const Row<double>&);
template Row<double> log_p_of(const Row<double>&, const double&);
template Row<double> probability_scale(const Row<double>&, const double&);
template void forward(const Forward<F64>&);
template void backward(const Backward<F64>&);
template void forward_scale(const Forward<F64>&);
template void backward_scale(const Backward<F64>&);

}  // namespace tigon::reference::log_prob
