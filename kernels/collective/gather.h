// SPDX-License-Identifier: Apache-2.0
// What each rank has of some floats, told to all.
#pragma once
#include "kernels/collective/communicator.h"
#include "kernels/signature/signature.h"

namespace tigon {

// Whether `all` has room for what as many ranks as there are have, each as much as `own`.
template <int N, int M>
bool is_of_all(const View<float, N>& own, const View<const float, M>& all,
               const Communicator& ranks) {
  return all.size() == own.size() * ranks.size();
}

// Enqueues an all-gather of `own` [...] into `all` [R, ...], contiguous both. `all` is const for
// those who read it.
template <int N, int M>
Status gather(const View<float, N>& own, const View<const float, M>& all, Communicator* ranks,
              Stream stream) {
  const auto bytes = static_cast<size_t>(own.size()) * sizeof(float);
  return ranks->all_gather(own.data, const_cast<float*>(all.data), bytes, stream);
}

}  // namespace tigon
