// A planted fault of the kernels and where the harness must catch it. The switches are in the
// kernels' source (kernels/device/mutant.h); this is the list of what they stand for.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "kernels/signature/dtype.h"

namespace tigon {

// Hint for the cases whose last rows start beyond 2^31 elements, and why those faults stay on the
// host: there the memory between the rows costs nothing.
inline constexpr const char* kFarRows = "gap=\\d{7,}";
inline constexpr const char* kHugeOnGpu = "on a GPU such cases are the huge tier, tens of GB each";

enum class MutantGroup {
  kNumeric,     // wrong numbers
  kMemorySync,  // wrong accesses and missing synchronisation
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
  std::string proof;
};

struct Mutant {
  std::string name;   // as the kernel's source writes it
  int catalogue = 0;  // number in the catalogue of faults (catalogue.h); 0: none
  std::string what;   // the mistake, in a few words
  std::vector<MutantTarget> targets;
  // Regex of case ids that are tried first. It orders and never leaves out.
  std::string hint = {};
  MutantGroup group = MutantGroup::kNumeric;
  // Host executors that must each catch it: "fast", "checked".
  std::vector<std::string> executors = {"fast"};
  std::string host_only = {};  // why it is not run on a GPU; empty: it is
  std::vector<Equivalent> equivalents = {};
};

// In the order of their ops. Every fault of one group or op is in a file of its own.
const std::vector<Mutant>& all_mutants();

// The proof that this fault changes nothing promised there, if it is declared equivalent.
std::optional<std::string> equivalence(const Mutant& mutant, const std::string& op,
                                       const std::string& pass, DType dtype);

// Parts of all_mutants().
std::vector<Mutant> row_mutants();      // the norms
std::vector<Mutant> stream_mutants();   // rope, swiglu, geglu and what every op uses
std::vector<Mutant> softmax_mutants();  // softmax and what it shares with the losses
std::vector<Mutant> loss_mutants();     // cross_entropy, linear_cross_entropy
std::vector<Mutant> memory_mutants();   // accesses and synchronisation of all ops

}  // namespace tigon
