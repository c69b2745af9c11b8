// SPDX-License-Identifier: Apache-2.0
// How near passed cases come to their budget, as text.
#include "harness/cli/text/headroom_table.h"

#include <fmt/format.h>

namespace tigon::cli {

void print_headroom(const Headroom& headroom) {
  fmt::print("{:<22} {:<17} {:<6} {:<5} {:<8} {:<8} {:>6} {:>7} {:>7} {:>7} {:>7} {:>7} {:>9}\n",
             "op", "pass", "impl", "dtype", "output", "executor", "cases", "max", "p99", "p50",
             "target", "rms", "one side");
  for (const Headroom::Row& r : headroom.rows())
    fmt::print(
        "{:<22} {:<17} {:<6} {:<5} {:<8} {:<8} {:>6} {:>7.3f} {:>7.3f} {:>7.3f} {:>7.1f} {:>7.3f} "
        "{:>9.3f}{}\n",
        r.op, r.pass, r.impl, name_of(r.dtype), r.output, r.executor, r.cases, r.max, r.p99, r.p50,
        r.target, r.rms_max, r.one_sided_max,
        r.max > r.target && r.impl != "naive" ? "  above: " + r.worst_case : "");
}

}  // namespace tigon::cli
