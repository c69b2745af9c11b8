// SPDX-License-Identifier: Apache-2.0
// "did you mean": the known name that a mistyped one is nearest to.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace tigon {

// Fewest insertions, deletions, substitutions and swaps of neighbours that turn a into b (optimal
// string alignment; Damerau 1964).
size_t edit_distance(std::string_view a, std::string_view b);

// The nearest of `known`, or empty when none is near (more than a third of the letters differ).
std::string nearest(std::string_view name, const std::vector<std::string>& known);

// Throws UsageError when one of `given` is not known: what it is, the nearest, all that are known.
void require_known(std::string_view what, const std::vector<std::string>& given,
                   const std::vector<std::string>& known);

}  // namespace tigon
