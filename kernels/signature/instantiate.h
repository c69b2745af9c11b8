// SPDX-License-Identifier: Apache-2.0
// Explicit instantiations for all element types, at the end of an op's file.
#pragma once
#include "kernels/signature/signature.h"
#include "kernels/signature/status.h"

// clang-format off
#define TIGON_INSTANTIATE_FOR(P, pass, Args) template Status pass<P>(const Args<P>&, Stream)

#define TIGON_INSTANTIATE(pass, Args)      \
  TIGON_INSTANTIATE_FOR(F32, pass, Args);  \
  TIGON_INSTANTIATE_FOR(BF16, pass, Args); \
  TIGON_INSTANTIATE_FOR(F16, pass, Args)

#define TIGON_INSTANTIATE_WORKSPACE(Args)             \
  template size_t workspace<F32>(const Args<F32>&);   \
  template size_t workspace<BF16>(const Args<BF16>&); \
  template size_t workspace<F16>(const Args<F16>&)

#define TIGON_INSTANTIATE_TUNE(Args)             \
  template Status tune<F32>(const Args<F32>&);   \
  template Status tune<BF16>(const Args<BF16>&); \
  template Status tune<F16>(const Args<F16>&)
// clang-format on

// The host executor's build compiles a file of many kernels in two parts at once: a pass of an
// element type is in one.
#ifndef TIGON_PART
#define TIGON_PART 0  // the whole file
#endif
#define TIGON_IN_PART(n) (TIGON_PART == 0 || TIGON_PART == (n))
