// SPDX-License-Identifier: Apache-2.0
// Host body of launch.h.
#pragma once
#include <tuple>

#include "kernels/device/platform.h"

namespace tigon::device {

// Two, so that a block of a grid that stays resident works on several rows.
inline unsigned resident_blocks(const LaunchConfig& c, const void*) { return 2 * c.cluster; }

// Calls the kernel of a closure {kernel, arguments}. Not instrumented: the closure is not memory
// that the kernel reads.
template <class... P>
struct Closure {
  void (*kernel)(P...);
  std::tuple<P...> args;

  __attribute__((no_sanitize("thread"))) static void invoke(const void* closure) {
    const auto& c = *static_cast<const Closure*>(closure);
    [&]<size_t... I>(std::index_sequence<I...>) __attribute__((always_inline)) {
      c.kernel(std::get<I>(c.args)...);
    }
    (std::index_sequence_for<P...>{});
  }
};

template <class... P>
Status launch(const LaunchConfig& c, void (*kernel)(P...), std::type_identity_t<P>... args) {
  const Closure<P...> closure{kernel, {args...}};
  return simt::run_grid({c.grid, c.block, c.cluster, c.shared_bytes, c.dependent},
                        {Closure<P...>::invoke, &closure, reinterpret_cast<const void*>(kernel)});
}

}  // namespace tigon::device

namespace tigon {
TIGON_DEVICE void dependency_wait() { simt::dependency_wait(); }
TIGON_DEVICE void dependency_launch() {}  // without it the next kernel starts later: time alone
}  // namespace tigon
