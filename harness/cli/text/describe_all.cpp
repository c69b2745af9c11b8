// SPDX-License-Identifier: Apache-2.0
// The page of all contracts: headings, paragraphs and tables, written as Markdown or HTML; and the
// same facts as JSON.
#include "harness/cli/text/describe_all.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "harness/cli/text/contract_text.h"
#include "harness/json/json.h"
#include "harness/run/judging/properties.h"
#include "harness/spec/op_spec.h"

namespace tigon::cli {
namespace {

using Row = std::vector<std::string>;
std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

class Page {
 public:
  virtual ~Page() = default;
  virtual void heading(int level, const std::string& text) = 0;
  virtual void paragraph(const std::string& text) = 0;
  virtual void table(const Row& head, const std::vector<Row>& rows) = 0;
  virtual std::string text() const = 0;
};

class Markdown : public Page {
 public:
  void heading(int level, const std::string& text) override {
    text_ += fmt::format("{}{} {}\n", text_.empty() ? "" : "\n", std::string(level, '#'), text);
  }
  void paragraph(const std::string& text) override {
    text_ += fmt::format("\n{}\n", escaped(text));
  }
  void table(const Row& head, const std::vector<Row>& rows) override {
    text_ +=
        fmt::format("\n{}|{}\n", line(head), replaced(std::string(head.size(), '-'), "-", "---|"));
    for (const Row& row : rows) text_ += line(row);
  }
  std::string text() const override { return text_; }

 private:
  static std::string escaped(const std::string& text) {
    return replaced(replaced(replaced(text, "*", "\\*"), "_", "\\_"), "|", "\\|");
  }
  static std::string line(const Row& row) {
    std::string line = "|";
    for (const std::string& cell : row) line += fmt::format(" {} |", escaped(cell));
    line += '\n';
    return line;
  }
  std::string text_;
};

class Html : public Page {
 public:
  void heading(int level, const std::string& text) override {
    text_ += fmt::format("<h{0}>{1}</h{0}>\n", level, escaped(text));
  }
  void paragraph(const std::string& text) override {
    text_ += fmt::format("<p>{}</p>\n", escaped(text));
  }
  void table(const Row& head, const std::vector<Row>& rows) override {
    text_ += "<table>\n" + line(head, "th");
    for (const Row& row : rows) text_ += line(row, "td");
    text_ += "</table>\n";
  }
  std::string text() const override {
    return "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>Ops of Tigon"
           "</title>\n<style>body{font:15px/1.5 sans-serif;max-width:70em;margin:2em auto;"
           "padding:0 1em}table{border-collapse:collapse;display:block;overflow-x:auto}"
           "td,th{border:1px solid #bbb;padding:.2em .5em;text-align:left}</style>\n" +
           text_ + "</html>\n";
  }

 private:
  static std::string escaped(const std::string& text) {
    return replaced(replaced(replaced(text, "&", "&amp;"), "<", "&lt;"), ">", "&gt;");
  }
  static std::string line(const Row& row, const char* tag) {
    std::string line = "<tr>";
    for (const std::string& cell : row) line += fmt::format("<{0}>{1}</{0}>", tag, escaped(cell));
    return line + "</tr>\n";
  }
  std::string text_;
};

bool supports(const Implementation& i, DType type) {
  return std::find(i.policies.begin(), i.policies.end(), type) != i.policies.end();
}

// Inputs on which a library is outside of the budget.
void add_known_misses(Page* page) {
  std::vector<Row> rows;
  for (const OpSpec& op : all_ops())
    for (const Pass& pass : op.passes)
      for (const Implementation& i : pass.implementations)
        for (const KnownMiss& miss : i.known_misses)
          rows.push_back(
              {op.name, pass.name, i.name, miss.inputs, names_of(miss.policies), miss.reason});
  page->paragraph(
      "A library may be outside of the budget that our kernels keep. Where that was measured, a "
      "check skips those cases with the reason; one that names the library (--impl) or the case "
      "runs them, and they fail.");
  page->table({"op", "pass", "implementation", "inputs", "dtypes", "measured"}, rows);
}

void add_support(Page* page) {
  std::vector<DType> types;
  for (const OpSpec& op : all_ops())
    for (const DType type : op.policies)
      if (std::find(types.begin(), types.end(), type) == types.end()) types.push_back(type);
  Row head = {"op", "pass", "implementation"};
  for (const DType type : types) head.push_back(name_of(type));
  std::vector<Row> rows;
  for (const OpSpec& op : all_ops())
    for (const Pass& pass : op.passes)
      for (const Implementation& i : pass.implementations) {
        rows.push_back({op.name, pass.name, i.name});
        for (const DType type : types) rows.back().push_back(supports(i, type) ? "yes" : "no");
      }
  page->heading(2, "Support");
  page->table(head, rows);
  page->paragraph(
      "cudnn is there on a GPU where the build found cudnn_frontend.h. What an implementation does "
      "not take of a pass is unsupported, with its reason: of cudnn rows with gaps, and of its "
      "norms addresses off 16 bytes and b, dw or db without w.");
  add_known_misses(page);
}

std::string values_of(const std::vector<int64_t>& values) {
  return fmt::format("{}", fmt::join(values, " "));
}

void add_pass(const OpSpec& op, const Pass& pass, Page* page) {
  page->heading(3, op.name + " " + pass.name);
  std::vector<Row> tensors, options, budget, properties;
  for (const TensorInfo& t : pass.tensors)
    tensors.push_back(
        {t.name, name_of(t.role), shape_of(t), dtypes_of(t, op.policies), optionality_of(t)});
  page->table({"tensor", "role", "shape", "stored as", ""}, tensors);
  for (const OptionInfo& o : pass.options) {
    const auto still = pass.invisible.find(o.name);
    options.push_back({o.name, default_of(o), fmt::format("{}", fmt::join(o.choices, ", ")),
                       still == pass.invisible.end() ? "" : still->second});
  }
  if (!options.empty()) page->table({"option", "default", "choices", "moves no output"}, options);
  for (const auto& [name, b] : pass.budget)
    budget.push_back({name, b.roundings.text(), b.reduction.text(),
                      fmt::format("{:g}", b.elementary), b.intermediate_roundings.text()});
  page->table({"output", "k", "n", "c0", "k_int"}, budget);
  page->paragraph(fmt::format("Least bytes: {}. Floating-point operations: {}.", bytes_of(pass),
                              pass.flops.text()));
  for (const Property& p : properties_of(pass)) properties.push_back({p.name, p.statement});
  page->table({"exact property", ""}, properties);
}

void add_op(const OpSpec& op, Page* page) {
  page->heading(2, op.name);
  page->paragraph(op.summary);
  std::vector<Row> axes;
  for (const AxisPlan& plan : op.axes)
    axes.push_back({plan.axis.symbol, plan.axis.meaning, values_of(plan.tiny),
                    values_of(plan.check), values_of(plan.sweep), values_of(plan.huge)});
  page->table({"axis", "meaning", "tiny", "checked", "measured", "huge"}, axes);
  Row sets;
  for (const InputSet& set : op.inputs) sets.push_back(set.name);
  page->paragraph(fmt::format("Inputs: {}.", fmt::join(sets, ", ")));
  for (const Pass& pass : op.passes) add_pass(op, pass, page);
}

void fill(Page* page) {
  page->heading(1, "Ops");
  page->paragraph(
      "Generated from the contracts (harness/ops) by ./tigon describe --all --markdown; a test "
      "compares. An output element may differ from the oracle by (k u_out + phi) |y| + "
      "(4 sqrt(n) + c0) u_acc S + 4 k_int u_T S2 + lost bits + eta: u_out and u_T are roundoffs of "
      "the output's and the element type, u_acc = 2^-24, S is the formula with absolute values, S2 "
      "the 2-norm of terms stored in 16 bits on the way, phi = u_out / 4 in 16 bits. The types of "
      "a stored tensor stand in the order f32, bf16, f16 of the policies, each once.");
  add_support(page);
  for (const OpSpec& op : all_ops()) add_op(op, page);
}

Json json_of(const std::vector<DType>& types) {
  Json names = Json::array();
  for (const DType type : types) names.push_back(name_of(type));
  return names;
}

Json json_of(const OpSpec& op, const Pass& pass) {
  Json j = {{"name", pass.name}, {"tensors", Json::array()}, {"options", Json::array()}};
  for (const TensorInfo& t : pass.tensors) {
    Json shape = Json::array(), dtypes = Json::object();
    for (const Expr& length : t.shape) shape.push_back(length.text());
    for (const DType policy : op.policies)
      if (const auto found = t.dtype.find(policy); found != t.dtype.end())
        dtypes[name_of(policy)] = name_of(found->second);
    j["tensors"].push_back({{"name", t.name},
                            {"role", name_of(t.role)},
                            {"shape", shape},
                            {"dtypes", dtypes},
                            {"optional", t.is_optional},
                            {"on_request", t.is_on_request}});
  }
  for (const OptionInfo& o : pass.options)
    j["options"].push_back({{"name", o.name}, {"default", default_of(o)}, {"choices", o.choices}});
  for (const Implementation& i : pass.implementations) {
    Json misses = Json::array();
    for (const KnownMiss& miss : i.known_misses)
      misses.push_back(
          {{"inputs", miss.inputs}, {"dtypes", json_of(miss.policies)}, {"reason", miss.reason}});
    j["implementations"].push_back(
        {{"name", i.name}, {"dtypes", json_of(i.policies)}, {"known_misses", misses}});
  }
  for (const auto& [name, b] : pass.budget)
    j["budget"][name] = {{"k", b.roundings.text()},
                         {"n", b.reduction.text()},
                         {"c0", b.elementary},
                         {"k_int", b.intermediate_roundings.text()}};
  j["bytes"] = bytes_of(pass);
  j["flops"] = pass.flops.text();
  j["properties"] = Json::array();
  for (const Property& p : properties_of(pass))
    j["properties"].push_back({{"name", p.name}, {"statement", p.statement}});
  return j;
}

Json json_of_all() {
  Json ops = Json::array();
  for (const OpSpec& op : all_ops()) {
    Json j = {{"name", op.name}, {"summary", op.summary}};
    for (const AxisPlan& plan : op.axes)
      j["axes"].push_back({{"symbol", plan.axis.symbol},
                           {"meaning", plan.axis.meaning},
                           {"tiny", plan.tiny},
                           {"check", plan.check},
                           {"sweep", plan.sweep},
                           {"host_sweep", plan.host_sweep},
                           {"huge", plan.huge}});
    for (const InputSet& set : op.inputs) j["inputs"].push_back(set.name);
    for (const OptionSet& set : op.option_sets) j["option_sets"].push_back(Json(set));
    for (const Pass& pass : op.passes) j["passes"].push_back(json_of(op, pass));
    ops.push_back(j);
  }
  return {{"ops", ops}};
}

}  // namespace

std::string page_of_all(PageFormat format) {
  if (format == PageFormat::kJson) return json_of_all().dump(1) + "\n";
  Markdown markdown;
  Html html;
  Page* page = format == PageFormat::kMarkdown ? static_cast<Page*>(&markdown) : &html;
  fill(page);
  return page->text();
}

}  // namespace tigon::cli
