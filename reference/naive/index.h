// SPDX-License-Identifier: Apache-2.0
// Kernels that index with targets or positions, which cuDNN has no operation for.
#pragma once
#include <cuda_runtime_api.h>

#include "reference/naive/eager.h"

// Each returns the launch's error; semantics as the members of Eager of the same name.
namespace tigon::naive::index {

cudaError_t not_ignored(const Eager::Targets& target, int64_t ignore_index, const Tensor& y,
                        Stream stream);
cudaError_t gather(const Tensor& x, const Eager::Targets& target, const Tensor& y, Stream stream);
cudaError_t take_rows(const Tensor& x, const int64_t* row, const Tensor& y, Stream stream);
cudaError_t scatter(const Tensor& y, const Eager::Targets& target, const Tensor& value,
                    Stream stream);
cudaError_t log_sum_exp(const Tensor& x, const Tensor& log_softmax, const Tensor& lse,
                        Stream stream);
cudaError_t zero_ignored(const Tensor& y, const Eager::Targets& target, int64_t ignore_index,
                         Stream stream);

}  // namespace tigon::naive::index
