// SPDX-License-Identifier: Apache-2.0
// What the norms share: which tensors the engines take, and the weight as they want it.
#pragma once
#include <cstdint>
#include <utility>

#include "kernels/device/scratch_parts.h"
#include "reference/cudnn/norm_engine.h"
#include "reference/naive/eager.h"

namespace tigon::cudnn {

template <class View>
void* address(const View& v) {
  return const_cast<void*>(static_cast<const void*>(v.data));
}

// What keeps the engines from taking tensors as they lie; ok where nothing does and for those left
// out.
template <class... Views>
Status accept(const Views&... views) {
  constexpr uintptr_t kAlignment = 16;  // bytes, that the frontend declares
  if (!((!views || views.contiguous()) && ...))
    return unsupported("cuDNN's norms take rows without gaps");
  if (!((reinterpret_cast<uintptr_t>(views.data) % kAlignment == 0) && ...))
    return unsupported("cuDNN's norms take addresses at multiples of 16 bytes");
  return {};
}

// The scratch of a call. Engines know no offset, and write dw and db in the type of w: where that
// will not do they get offset + w in fp32, which is a launch before. They write all results, wanted
// or not.
struct Parts {
  float *gain = nullptr, *dw = nullptr, *db = nullptr;  // [columns]; null where not needed
  Scratch engine;
  size_t bytes = 0;
};

struct Needs {
  bool gain = false, dw = false, db = false;
};

// Without memory it only adds up.
inline Parts cut(const Norm& norm, const Needs& needs, void* scratch) {
  ScratchParts rest(scratch);
  Parts parts;
  if (needs.gain) parts.gain = rest.take<float>(norm.columns);
  if (needs.dw) parts.dw = rest.take<float>(norm.columns);
  if (needs.db) parts.db = rest.take<float>(norm.columns);
  parts.engine.bytes = workspace(norm);
  parts.engine.data = rest.take<char>(static_cast<int64_t>(parts.engine.bytes));
  parts.bytes = rest.bytes();
  return parts;
}

// Runs a norm on w, or on offset + w where there is room for it. `w` may be left out.
template <class View>
Status run_on_gain(const Norm& norm, const View& w, float offset, const Parts& parts,
                   Pointers tensors, Stream stream) {
  if (w) tensors[kW] = parts.gain != nullptr ? parts.gain : address(w);
  if (parts.gain == nullptr) return run(norm, std::move(tensors), parts.engine, stream);
  const Status made = naive::eagerly(stream, [&](const naive::Eager& e) {
    const auto gain = naive::as_row(view(parts.gain, norm.columns));
    e.binary(naive::Binary::kAdd, naive::as_row(w), offset, gain);
  });
  return made.ok() ? run(norm, std::move(tensors), parts.engine, stream) : made;
}

}  // namespace tigon::cudnn
