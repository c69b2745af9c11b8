// tigon describe: the contract of one op, as the harness reads it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "harness/cli/commands.h"
#include "harness/cli/suggest.h"
#include "harness/run/properties.h"
#include "harness/spec/op_spec.h"

namespace tigon::cli {
namespace {

const char* name_of_role(Role role) {
  switch (role) {
    case Role::kIn:
      return "in";
    case Role::kOut:
      return "out";
    case Role::kInOut:
      return "in/out";
    case Role::kSaved:
      return "saved";
  }
  return "?";
}

std::string shape_of(const TensorInfo& tensor) {
  std::vector<std::string> sizes;
  for (const Expr& size : tensor.shape) sizes.push_back(size.text());
  return fmt::format("[{}]", fmt::join(sizes, ", "));
}

std::string dtypes_of(const TensorInfo& tensor, const std::vector<DType>& policies) {
  std::vector<std::string> names;
  for (const DType policy : policies)
    if (const auto found = tensor.dtype.find(policy); found != tensor.dtype.end())
      if (const std::string name = name_of(found->second); names.empty() || names.back() != name)
        names.push_back(name);
  return fmt::format("{}", fmt::join(names, " "));
}

std::string default_of(const OptionInfo& option) {
  if (option.choices.empty()) return fmt::format("{:g}", option.default_value);
  return option.choices.at(static_cast<size_t>(option.default_value));
}

// Least bytes: the contract's, or each input and output once.
std::string bytes_of(const Pass& pass) {
  if (pass.bytes) return pass.bytes->text();
  std::vector<std::string> terms;
  for (const TensorInfo& t : pass.tensors) {
    std::vector<std::string> factors = {fmt::format("size({})", t.name)};
    if (t.role == Role::kInOut) factors.insert(factors.begin(), "2");
    terms.push_back(fmt::format("{}", fmt::join(factors, "*")));
  }
  return fmt::format("{}", fmt::join(terms, " + "));
}

void print_values(const char* name, const std::vector<int64_t>& values) {
  fmt::print("      {:<11} {}\n", name, fmt::join(values, " "));
}

void print_pass(const OpSpec& op, const Pass& pass) {
  fmt::print("\n{}\n  tensors\n", pass.name);
  for (const TensorInfo& t : pass.tensors)
    fmt::print("    {:<8} {:<7} {:<16} {}{}\n", t.name, name_of_role(t.role), shape_of(t),
               dtypes_of(t, op.policies), t.is_optional ? "  (may be left out)" : "");
  if (!pass.options.empty()) fmt::print("  options\n");
  for (const OptionInfo& o : pass.options)
    fmt::print("    {:<16} default {}{}\n", o.name, default_of(o),
               o.choices.empty() ? "" : fmt::format("  ({})", fmt::join(o.choices, ", ")));
  fmt::print("  implementations\n");
  for (const Implementation& i : pass.implementations) {
    std::vector<std::string> names;
    for (const DType type : i.policies) names.push_back(name_of(type));
    fmt::print("    {:<16} {}\n", i.name, fmt::join(names, " "));
  }
  fmt::print(
      "  budget per element of an output, |error| <=\n"
      "    (k u_out + phi) |y| + (4 sqrt(n) + c0) u_acc S + 4 k_int u_T S2 + lost bits + eta\n"
      "    sums in f32 (u_acc = 2^-24) of exact products, never TF32; S: the formula with "
      "absolute\n"
      "    values; phi: u_out / 4 in 16 bits; S2: 2-norm of terms stored in 16 bits on the way\n");
  for (const auto& [name, b] : pass.budget)
    fmt::print("    {:<8} k = {}, n = {}, c0 = {:g}, k_int = {}\n", name, b.roundings.text(),
               b.reduction.text(), b.elementary, b.intermediate_roundings.text());
  fmt::print("  least bytes  {}\n  flop         {}\n", bytes_of(pass), pass.flops.text());
  if (!pass.invisible.empty()) fmt::print("  options that move no output\n");
  for (const auto& [name, why] : pass.invisible) fmt::print("    {:<16} {}\n", name, why);
  fmt::print("  properties\n");
  for (const Property& p : properties_of(pass)) fmt::print("    {:<20} {}\n", p.name, p.statement);
}

void print_op(const OpSpec& op) {
  fmt::print("{}: {}\n\naxes\n", op.name, op.summary);
  for (const AxisPlan& plan : op.axes) {
    fmt::print("    {}  {}\n", plan.axis.symbol, plan.axis.meaning);
    print_values("tiny", plan.tiny);
    print_values("check", plan.check);
    print_values("sweep", plan.sweep);
    print_values("host sweep", plan.host_sweep);
    print_values("huge", plan.huge);
  }
  std::vector<std::string> inputs;
  for (const InputSet& set : op.inputs) inputs.push_back(set.name);
  fmt::print("inputs\n    {}\n", fmt::join(inputs, ", "));
  for (const Pass& pass : op.passes) print_pass(op, pass);
  fmt::print("\nfiles\n");
  for (const char* pattern :
       {"kernels/{0}/{0}.h", "kernels/{0}/{0}.cu", "reference/{0}.h", "harness/ops/{0}.cpp"})
    fmt::print("    {}\n", fmt::format(fmt::runtime(pattern), op.name));
}

}  // namespace

void add_describe(CLI::App* app, Program*) {
  CLI::App* command = app->add_subcommand(
      "describe", "the contract of an op: formula, tensors, options, axes, budget, bytes, flop");
  command->footer("Example:\n  ./tigon describe rms_norm");
  const auto name = std::make_shared<std::string>();
  command->add_option("op", *name, "name of an op, see ./tigon list")->required();
  command->callback([name] {
    std::vector<std::string> known;
    for (const OpSpec& op : all_ops()) known.push_back(op.name);
    require_known("op", {*name}, known);
    print_op(*find_op(*name));
  });
}

}  // namespace tigon::cli
