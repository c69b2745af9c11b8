// SPDX-License-Identifier: Apache-2.0
// The contract of an op as data: what the harness needs to allocate, fill, run, judge and measure
// it. harness/ops/<op>.cpp makes one OpSpec per op; nothing else in the harness names a concrete
// op.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kernels/signature/signature.h"

namespace tigon {

// ---- a signature, type-erased -------------------------------------------------------------------

struct TensorInfo {
  std::string name;
  Role role = Role::kIn;
  std::vector<Expr> shape;
  bool is_optional = false;
  bool is_on_request = false;               // optional, and left out unless the options say "given"
  std::map<DType, DType> dtype;             // storage type by policy (kF64, kF32, kBF16, kF16)
  bool is_strided = false;                  // its rows may lie apart
  std::vector<std::string> may_alias = {};  // inputs whose memory this output may be
  std::string gradient_of = {};             // the tensor whose gradient it holds, or nothing

  bool is_input() const { return role == Role::kIn || role == Role::kInOut; }
  bool is_output() const { return role != Role::kIn; }
};

struct OptionInfo {
  std::string name;
  std::vector<std::string> choices;  // names of an enum's values; empty for a number
  double default_value = 0;
  bool is_whole = false;
};

struct TensorRef {
  void* data = nullptr;  // nullptr: an optional tensor that is left out
  DType dtype = DType::kF32;
  std::vector<int64_t> shape, stride;
};

// Memory and values for one call. For a device implementation data is device memory, for the oracle
// host memory.
struct Bound {
  std::map<std::string, TensorRef> tensors;
  Binding values;  // axes and options
  Scratch scratch;
};

// ---- implementations ----------------------------------------------------------------------------

// A set of inputs on which a library was measured to be outside of a pass' budget.
struct KnownMiss {
  std::string inputs;  // name of the input set
  std::vector<DType> policies;
  std::string reason;  // what it does, how far outside, and on which GPU
};

// One way to compute a pass. `name` is one of naive, fused,
// fused:<variant>, cudnn.
struct Implementation {
  std::string name;
  std::vector<DType> policies;  // those it supports
  std::function<size_t(DType, const Bound&)> workspace;
  std::function<Status(DType, const Bound&, Stream)> run;
  // Absent, or called once per shape before run and outside any timing: may allocate and
  // synchronise, e.g. to time GEMM algorithms and remember the best.
  std::function<Status(DType, const Bound&)> prepare = {};
  // Values that it rounds to the element type on the way, beyond those of the pass' budget: adds
  // that times u_T S + eta_T U. 0 for a fused kernel; a chain of primitives stores each
  // intermediate.
  Expr element_roundings = 0;
  // Error of a library's elementary functions beyond c0, in u_acc. 0 for a fused kernel; declared
  // where a baseline calls functions whose inside is not known.
  Expr elementary = 0;
  // Its framework makes its gradients: forward keeps nothing for them, and their pass takes
  // forward's inputs in place of what would be kept.
  bool is_differentiated = false;
  // Runs on a stream of its own and returns when the work is done, e.g. in another process.
  bool on_own_stream = false;
  // Calls several ops one after the other: a later one may refuse when an earlier one has run.
  bool in_steps = false;
  // Why this program does not have it and the cure, and what `run` says then; empty where it has.
  // Absent ones are left out of a selection that does not name them.
  std::string absent = {};
  // Of a library only. A check that does not name it skips these cases with their reason, one that
  // does runs them; the budget is the same for all.
  std::vector<KnownMiss> known_misses = {};
};

// Whether it is made of calls to cuDNN and cuBLAS, whose insides are not ours: naive and cudnn.
// What they make of NaN is their own, and of the exact properties they promise a few.
bool is_library(std::string_view implementation);
bool is_library(const Implementation& implementation);

// Why it is known to be outside of the budget on such inputs; empty where it is not.
std::string known_miss(const Implementation& implementation, const std::string& inputs, DType);

// Whether an implementation is meant by a list of names, which is empty for all that are there.
bool is_selected(const Implementation& implementation, const std::vector<std::string>& names);

// Runs in double on host memory. Fills the outputs with the value, with S (the same formula with
// every term replaced by its absolute value), with S2 (2-norm of the summed terms that are stored
// in the element type on the way) or with U (factor with which an absolute error of a stored
// intermediate reaches the output, a 2-norm where many do: f16 values below 2^-14 lose bits).
using Oracle = std::function<void(const Bound&)>;

// ---- budget -------------------------------------------------------------------------------------

// Declared facts about one output; the budget per element is
//   (k u_out + phi) |y| + (lambda sqrt(n) + c0) u_acc S + lambda k_int u_T S2
//   + (k - 1 + lambda / 2 k_int) eta_T U + eta                                      (lambda = 4)
// with u_out of the output's own dtype, u_acc of the accumulator (2^-24), u_T and eta_T roundoff
// and smallest positive value of the policy's element type.
struct OutputBudget {
  Expr roundings = 1;               // k: roundings to the output type on the final path
  Expr reduction = 1;               // n: length of the longest sum on the path
  double elementary = 8;            // c0: allowance for elementary functions, in u_acc
  Expr intermediate_roundings = 0;  // k_int: values stored in the element type that feed a sum
};

// Options that differ from their defaults, and optional tensors that are left out (value "absent")
// or, where they are on request, given (value "given").
using OptionSet = std::map<std::string, std::string>;

// Both; of an option in both the first.
inline OptionSet together(OptionSet options, const OptionSet& more) {
  options.insert(more.begin(), more.end());
  return options;
}

inline bool is_left_out(const TensorInfo& tensor, const OptionSet& options) {
  const auto found = options.find(tensor.name);
  if (!tensor.is_optional) return false;
  return found == options.end() ? tensor.is_on_request : found->second == "absent";
}

// ---- properties ---------------------------------------------------------------------------------

class Experiment;

// An exact promise of a pass beside being near the oracle: a relation between several calls. Made
// by the builders of properties.h; the harness checks it as a case with prop=<name>.
struct Property {
  std::string name;
  std::string statement;                   // one line: what is promised
  std::function<void(Experiment&)> check;  // throws what experiment.h says
  std::vector<OptionSet> options = {{}};   // it is checked with each of them
  std::string inputs = {};                 // an input set; empty: the first
  std::vector<DType> policies = {};        // empty: all
  bool naive = false;                      // libraries (naive, cudnn) promise it too
  bool one_shape = false;                  // a middle shape is enough
  // What a launcher does before it chooses a path: once, whatever paths there are, and of fused
  // implementations alone.
  bool of_launcher = false;
  bool of_fused = false;  // kernels of others may do otherwise and be right
  bool needs_far_memory =
      false;  // rows 2^31 elements apart, which the fast host executor alone has
};

// A matrix product [m, k] x [k, n] that a pass cannot do without. Operands are row-major;
// transpose_a says that A is stored as [k, m], transpose_b that B is stored as [n, k].
struct Product {
  Expr m, n, k;
  bool transpose_a = false, transpose_b = false;
  // Outputs of which one must be there for it to be needed; empty: always.
  std::vector<std::string> outputs = {};
};

// Columns of an axis that may be left out: where `tensor` is 0 in them, the results are those of
// the other columns alone.
struct ZeroColumns {
  std::string axis, tensor;
};

struct Pass {
  std::string name = {};  // forward, backward or forward_backward
  std::vector<TensorInfo> tensors = {};
  std::vector<OptionInfo> options = {};
  Oracle oracle;
  Oracle scale = {};         // S; absent: S = |y|
  Oracle intermediate = {};  // S2; absent: 0
  Oracle underflow = {};     // U; absent: 1
  std::vector<Implementation> implementations;
  std::map<std::string, OutputBudget> budget;  // by output tensor
  Expr flops;                                  // floating-point operations of the formula
  // Fewer, where a library may use what another pass has kept: no time beats these.
  std::optional<Expr> least_flops = {};
  // Least bytes, where they are not "each input and output once"; may use "elem".
  std::optional<Expr> bytes = {};
  // Options with which a call must be refused, and those at the ends of what is allowed.
  std::vector<OptionSet> refused = {}, edges = {};
  // Tensors that are refused where their rows overlap.
  std::vector<std::string> rows_apart = {};
  // Timed alone as the yardstick of its speed; empty: a copy of the least bytes is.
  std::vector<Product> products = {};
  std::string inputs_from = {};  // pass whose oracle makes this pass' saved inputs, e.g. rstd
  std::string upstream = {};     // upstream gradient with rows, where an output sums over rows
  // Axis in each of whose columns an output that sums over rows is made of that column alone.
  std::string sums_by = {};
  std::vector<ZeroColumns> zero_columns = {};  // where products make the oracle of one row dear
  std::vector<Property> properties = {};       // beside those of properties.h that every pass has
  // Options that may move no output, with the reason and what is checked instead.
  std::map<std::string, std::string> invisible = {};
};

// Whether rows of some tensor may lie apart; whether some output may be in an input's memory.
bool has_strided(const Pass& pass);
bool has_alias(const Pass& pass);

// The option by which a call is cut over ranks, of an op that several have a part of.
inline constexpr char kRanksOption[] = "ranks";

// ---- test plan ----------------------------------------------------------------------------------

// The sizes of trained models (harness/cli/options/models.h) that axes have. Tokens are none of
// them.
enum class ModelSize { kNone, kHidden, kIntermediate, kVocabulary, kHeads, kKvHeads, kRotary };

// Beyond what 32 bits hold, and a stand-in for all larger ones.
inline constexpr int64_t kAnySize = int64_t{1} << 33;

struct AxisPlan {
  Axis axis;
  std::vector<int64_t> tiny;        // host executor in checking mode
  std::vector<int64_t> check;       // every implementation against the oracle
  std::vector<int64_t> sweep;       // speed and memory on a GPU
  std::vector<int64_t> host_sweep;  // counted traffic and memory on a CPU
  std::vector<int64_t> huge = {};   // offsets beyond 2^31 elements and 2^32 bytes, on a GPU
  ModelSize model_size = ModelSize::kNone;
  // Sizes that a launcher refuses, whatever the others are, and the largest that it takes: kAnySize
  // where none is too large, 0 where that depends on others.
  std::vector<int64_t> refused = {0, -1};
  int64_t most = 0;
  // Where every option, launch shape and property is tried beside the tiny sizes; 0: at the one in
  // the middle of `check`.
  int64_t middle = 0;

  int64_t middle_size() const { return middle != 0 ? middle : check[check.size() / 2]; }
};

// How a tensor is filled; a named distribution of harness/run/inputs/inputs.h, e.g. "normal",
// "offset", "targets".
struct InputPlan {
  std::string tensor;
  std::string distribution;
  std::map<std::string, double> parameters = {};
  std::optional<Expr> below = {};  // of indices: right ones lie in [0, below)
};

// A set of inputs with a name that stands in the case string, e.g. "normal", "small_rows",
// "confident".
struct InputSet {
  std::string name;
  std::vector<InputPlan> plans;  // tensors not named get normal(0, 1)
  // Holds NaN, infinities or overflows: what libraries make of those is their own, so they are not
  // judged on it.
  bool nonfinite = false;
};

// Parts that trained models have beside the norm and the MLP that they name.
inline constexpr const char *kHeadPart = "head", *kRotaryPart = "rotary";

struct OpSpec {
  std::string name;
  std::string summary;  // the formula in one line
  // The part of a trained model that the op belongs to: a norm or an MLP by name, or one of those
  // above. Empty: none.
  std::string model_part = {};
  std::vector<AxisPlan> axes;  // the first counts rows
  // Shapes on which a kernel takes another path (a block per row, several blocks per row), small
  // enough for the checking executor too.
  std::vector<std::map<std::string, int64_t>> further_shapes = {};
  // The same for a path that no element type changes, e.g. of sums over rows: in the first type.
  std::vector<std::map<std::string, int64_t>> further_shapes_of_one_type = {};
  // The paths go by the bytes of a row, and these are its columns in 16 bits: in f32 it has half as
  // many.
  bool further_by_bytes = false;
  // Shapes on which an input set, by its name, takes a kernel another way than the default one.
  std::vector<std::pair<std::map<std::string, int64_t>, std::string>> further_inputs = {};
  std::vector<InputSet> inputs;        // the first is the default
  std::vector<OptionSet> option_sets;  // the first is the default: {}
  // Of the option sets' values those with which a kernel takes another path: met by every input set
  // and layout on each launch path of short rows.
  std::vector<OptionSet> further_options = {};
  // Of one size beyond 16 bits, beside the defaults.
  std::vector<OptionSet> long_options = {};
  OptionSet huge_options = {};  // of large cases; an output may not be a sum of all rows
  std::vector<DType> policies;
  std::vector<Pass> passes;
};

// Every op of the build, in the order of the manifest that CMake generates.
const std::vector<OpSpec>& all_ops();
const OpSpec* find_op(const std::string& name);

// The op's further shapes in a dtype.
std::vector<std::map<std::string, int64_t>> further_shapes(const OpSpec& op, DType dtype);

}  // namespace tigon
