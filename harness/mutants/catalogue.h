// SPDX-License-Identifier: Apache-2.0
// The catalogue of 48 faults that kernels of this kind have had, and which of them are planted.
#pragma once
#include <string>
#include <vector>

namespace tigon {

struct CatalogueEntry {
  int number;
  const char* what;
  const char* elsewhere;  // why no kernel has a switch for it, and what covers it; "": one has
};

// All of them, by number.
const std::vector<CatalogueEntry>& fault_catalogue();

// Numbers that neither a mutant has nor an entry explains.
std::vector<int> unexplained_catalogue_numbers();

}  // namespace tigon
