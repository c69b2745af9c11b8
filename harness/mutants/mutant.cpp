// The list of planted faults as a whole.
#include "harness/mutants/mutant.h"

#include <algorithm>

namespace tigon {

const char* name_of(MutantGroup group) {
  return group == MutantGroup::kNumeric ? "numeric" : "memory_sync";
}

const std::vector<Mutant>& all_mutants() {
  static const std::vector<Mutant> all = [] {
    std::vector<Mutant> list;
    for (const auto& part :
         {row_mutants(), stream_mutants(), softmax_mutants(), loss_mutants(), memory_mutants()})
      list.insert(list.end(), part.begin(), part.end());
    return list;
  }();
  return all;
}

std::optional<std::string> equivalence(const Mutant& mutant, const std::string& op,
                                       const std::string& pass, DType dtype) {
  for (const Equivalent& e : mutant.equivalents) {
    const bool of_dtype =
        e.dtypes.empty() || std::find(e.dtypes.begin(), e.dtypes.end(), dtype) != e.dtypes.end();
    if (of_dtype && (e.op.empty() || e.op == op) && (e.pass.empty() || e.pass == pass))
      return e.proof;
  }
  return std::nullopt;
}

}  // namespace tigon
