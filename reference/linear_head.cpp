// SPDX-License-Identifier: Apache-2.0
// Compiled once for double: the products, roundings and gradients of losses behind a linear layer.
#include "reference/linear_head.h"

namespace tigon::reference {

template Rows<double> times_transpose(const Rows<double>&, const Rows<double>&);
template Rows<double> times(const Rows<double>&, const Rows<double>&);
template Rows<double> transpose_times(const Rows<double>&, const Rows<double>&);
template Rows<double> scaled_rows(const Rows<double>&, const Row<double>&);

}  // namespace tigon::reference

namespace tigon::reference {

template bool rounded_alike(const Row<double>&);
template double equals_of_one(const Row<double>&, double);
template Row<double> squared_norms(const Rows<double>&, const Dependence<double>&);
template double squared_norm(const Row<double>&, const Dependence<double>&);
template RowGroups row_groups(const Rows<double>&);
template Rows<double> over_rows(const Rows<double>&, const Rows<double>&, const Rows<double>&,
                                const RowGroups&);
template Rows<double> with_equals(const Rows<double>&, const Rows<double>&, const Rows<double>&,
                                  const Rows<double>&);

}  // namespace tigon::reference

namespace tigon::reference::linear_head {

template Rows<double> logits(const Layer<double>&);
template Rows<double> logits_scale(const Layer<double>&);
template Rows<double> finite_part(const Rows<double>&);
template double second_order(const Row<double>&, const Row<double>&);
template Rows<double> rounded_sizes(const Layer<double>&, const Rows<double>&);
template void write_moved(const View<double, 1>&, const MovedResult<double>&, bool, const double&,
                          const RowGroups&);
template void write_gradients(const Layer<double>&, const Gradients<double>&, const Rows<double>&);
template void write_gradients_scale(const Layer<double>&, const Gradients<double>&,
                                    const Rows<double>&);
template void fill_gradients(const Gradients<double>&, const double&);
template void write_gradients_intermediate(const Layer<double>&, const Gradients<double>&,
                                           const Moved<double>&, const Rows<double>&);

}  // namespace tigon::reference::linear_head
