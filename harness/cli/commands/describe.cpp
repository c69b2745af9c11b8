// SPDX-License-Identifier: Apache-2.0
// tigon describe: the contract of one op, as the harness reads it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <utility>
#include <vector>

#include "harness/cli/commands.h"
#include "harness/cli/text/call_header.h"
#include "harness/cli/text/contract_text.h"
#include "harness/cli/text/describe_all.h"
#include "harness/run/cases/known_names.h"
#include "harness/run/cases/launch_shapes.h"
#include "harness/run/judging/properties.h"
#include "harness/spec/op_spec.h"

namespace tigon::cli {
namespace {

void print_values(const char* name, const std::vector<int64_t>& values) {
  fmt::print("      {:<11} {}\n", name, fmt::join(values, " "));
}

void print_pass(const OpSpec& op, const Pass& pass) {
  fmt::print("\n{}\n  tensors\n", pass.name);
  for (const TensorInfo& t : pass.tensors)
    fmt::print("    {:<9} {:<7} {:<16} {}{}\n", t.name, name_of(t.role), shape_of(t),
               dtypes_of(t, op.policies),
               t.is_optional ? fmt::format("  ({})", optionality_of(t)) : "");
  if (!pass.options.empty()) fmt::print("  options\n");
  for (const OptionInfo& o : pass.options)
    fmt::print("    {:<16} default {}{}\n", o.name, default_of(o),
               o.choices.empty() ? "" : fmt::format("  ({})", fmt::join(o.choices, ", ")));
  fmt::print("  implementations\n");
  for (const Implementation& i : pass.implementations) {
    fmt::print("    {:<16} {}{}\n", i.name, names_of(i.policies),
               i.absent.empty() ? "" : fmt::format("  (not here: {})", i.absent));
    for (const KnownMiss& miss : i.known_misses)
      fmt::print("    {:<16} misses the budget with inputs={} in {}: {}\n", "", miss.inputs,
                 names_of(miss.policies), miss.reason);
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

void print_shape(const std::string& length, const LaunchShape& s) {
  fmt::print("    {:<28}{:>6}{:>9}{:>11}{:>8}{:>9}\n", length, s.lanes, s.vectors, s.blocks_per_sm,
             s.stages, s.cluster);
}

void print_shapes(const PassShapes& shapes, const std::string& axis) {
  std::string table;
  for (const ShapeRange& r : shapes.ranges) {
    if (r.table != table)
      fmt::print("    {:<28}{:>6}{:>9}{:>11}{:>8}{:>9}\n", table = r.table, "lanes", "vectors",
                 "blocks/SM", "stages", "cluster");
    print_shape(r.is_longest ? fmt::format("  {} >= {}", axis, r.first)
                             : fmt::format("  {} <= {}", axis, r.last),
                r.shape);
  }
  for (const LaunchShape& s : shapes.others) print_shape("  tigon tune", s);
}

struct DtypeShapes {
  std::vector<std::string> dtypes;  // that take the same shapes
  PassShapes shapes;
};

void add_shapes(const char* dtype, PassShapes shapes, std::vector<DtypeShapes>* all) {
  if (shapes.ranges.empty()) return;
  for (DtypeShapes& one : *all)
    if (one.shapes == shapes) return one.dtypes.push_back(dtype);
  all->push_back({{dtype}, std::move(shapes)});
}

void print_pass_shapes(const OpSpec& op, const Pass& pass) {
  std::vector<DtypeShapes> aligned, others;
  for (const DType dtype : op.policies) {
    PassShapes usual = launch_shapes(op, pass, dtype, true);
    PassShapes other = launch_shapes(op, pass, dtype, false);
    if (other != usual) add_shapes(name_of(dtype), std::move(other), &others);
    add_shapes(name_of(dtype), std::move(usual), &aligned);
  }
  fmt::print("\n{}{}\n", pass.name, aligned.empty() ? ": asks no launch table of its own" : "");
  const auto print = [&](const std::vector<DtypeShapes>& all, const char* alignment) {
    for (const auto& [dtypes, shapes] : all) {
      fmt::print("  {}{}\n", fmt::join(dtypes, ", "), alignment);
      print_shapes(shapes, row_axis(op).symbol);
    }
  };
  print(aligned, "");
  print(others, ", tensors misaligned to 16 bytes, each differently");
}

// Which kernel runs for a row length.
void print_all_shapes(const OpSpec& op) {
  fmt::print("{}: the shape of a launch by the length of a row ({}, {})\n", op.name,
             row_axis(op).symbol, row_axis(op).meaning);
  for (const Pass& pass : op.passes) print_pass_shapes(op, pass);
}

}  // namespace

void add_describe(Command command, Program*) {
  command.footer(
      "Examples:\n"
      "  ./tigon describe rms_norm\n"
      "  ./tigon describe rms_norm --shapes  which kernel runs for which H\n"
      "  ./tigon describe rms_norm --call    a C header for plug-ins: a call's tensors by name\n"
      "  ./tigon describe --all --markdown   reference/OPS.md, which is generated by it\n"
      "  ./tigon describe --all --json");
  const auto name = std::make_shared<std::string>();
  const auto all = std::make_shared<bool>(false), shapes = std::make_shared<bool>(false),
             call = std::make_shared<bool>(false);
  const auto format = std::make_shared<PageFormat>(PageFormat::kMarkdown);
  Option op = command.option("op", name.get(), "name of an op, see ./tigon list");
  Option every = command.flag("--all", all.get(), "all ops, on one page").excludes(op);
  Option by_length =
      command.flag("--shapes", shapes.get(), "launch shapes by row length, of the op alone")
          .excludes(every);
  command.flag("--call", call.get(), "a C header for plug-ins, which goes beside tigon.h")
      .excludes(every)
      .excludes(by_length);
  const auto kind = [&](const char* flag, PageFormat value, const char* help) {
    return command
        .flag(
            flag, [format, value] { *format = value; }, help)
        .needs(every);
  };
  Option markdown = kind("--markdown", PageFormat::kMarkdown, "as Markdown (the default)");
  Option json = kind("--json", PageFormat::kJson, "as JSON").excludes(markdown);
  kind("--html", PageFormat::kHtml, "as one HTML page").excludes(markdown).excludes(json);
  command.run([=] {
    if (*all) {
      fmt::print("{}", page_of_all(*format));
      return;
    }
    if (name->empty()) throw UsageError("describe: name an op, or --all; ./tigon list has them");
    std::vector<std::string> known;
    for (const OpSpec& known_op : all_ops()) known.push_back(known_op.name);
    require_known("op", {*name}, known);
    const OpSpec& described = *find_op(*name);
    if (*call)
      fmt::print("{}", call_header(described));
    else
      *shapes ? print_all_shapes(described) : print_op(described);
  });
}

}  // namespace tigon::cli
