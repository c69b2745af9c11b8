// SPDX-License-Identifier: Apache-2.0
// A planted fault of the kernels and where the harness must catch it. Faults are records in
// harness/ops/*.faults (README.md describes the format); a build step makes mutated sources of
// them.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "kernels/signature/dtype.h"

namespace tigon {

enum class MutantGroup {
  kNumeric,     // wrong numbers
  kMemorySync,  // wrong accesses and missing synchronisation
  kSampled,     // a mutation that nobody chose: any case of the op may catch it
};
const char* name_of(MutantGroup group);

struct MutantTarget {
  std::string op;
  std::vector<std::string> passes;
};

// Where a fault changes nothing that is promised, and why that is so.
struct Equivalent {
  std::vector<DType> dtypes = {};  // empty: all
  std::string op = {};             // empty: all
  std::string pass = {};           // empty: all
  std::string proof = {};
};

// One change of a source file. before + text + after stand in the file exactly once.
struct Edit {
  enum class Kind { kExpression, kStatement, kInsert };
  Kind kind = Kind::kExpression;
  std::string file = {};  // from the root of the tree
  std::string before = {}, text = {}, after = {};
  std::string replacement = {};
  int line = 0;  // of the fault file
};

struct Mutant {
  std::string name;
  int catalogue = 0;      // number in the catalogue of faults (catalogue.h); 0: none
  std::string what = {};  // the mistake, in a few words
  std::vector<MutantTarget> targets = {};
  std::vector<MutantTarget> also = {};  // of a sampled one: ops that share its source
  std::vector<DType> dtypes = {};       // empty: all
  // Regex of case ids that are tried first. It orders and never leaves out.
  std::string hint = {};
  MutantGroup group = MutantGroup::kNumeric;
  // Host executors that must each catch it: "fast", "checked", "sm_80".
  std::vector<std::string> executors = {};
  std::string host_only = {};  // why it is not run on a GPU; empty: it is
  std::vector<Equivalent> equivalents = {};
  std::vector<Edit> edits = {};
  std::string source = {};  // the fault file
  int line = 0;             // and the record's first line in it
};

// Those of the tree: harness/ops/*.faults, file by file. Throws FaultFileError (fault_file.h).
const std::vector<Mutant>& all_mutants();

// The proof that this fault changes nothing promised there, if it is declared equivalent.
std::optional<std::string> equivalence(const Mutant& mutant, const std::string& op,
                                       const std::string& pass, DType dtype);

}  // namespace tigon
