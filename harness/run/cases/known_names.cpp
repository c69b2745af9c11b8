// SPDX-License-Identifier: Apache-2.0
// "did you mean": the known name that a mistyped one is nearest to.
#include "harness/run/cases/known_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "harness/judge/verdict.h"

namespace tigon {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i)
    for (size_t j = 1; j <= b.size(); ++j) {
      const bool differs = a[i - 1] != b[j - 1];
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + differs});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

std::string nearest(std::string_view name, const std::vector<std::string>& known) {
  std::string best;
  size_t least = std::max<size_t>(1, name.size() / 3) + 1;
  for (const std::string& candidate : known)
    if (const size_t distance = edit_distance(name, candidate); distance < least) {
      least = distance;
      best = candidate;
    }
  return best;
}

void require_known(std::string_view what, const std::vector<std::string>& given,
                   const std::vector<std::string>& known) {
  for (const std::string& name : given) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string near = nearest(name, known);
    throw UsageError(fmt::format("no {} '{}'{}; there are: {}", what, name,
                                 near.empty() ? "" : fmt::format(", did you mean '{}'?", near),
                                 fmt::join(known, ", ")));
  }
}

}  // namespace tigon
