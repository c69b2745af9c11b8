// SPDX-License-Identifier: Apache-2.0
// JSON of results, for records and between processes.
#include "harness/run/process/wire.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "harness/json/json.h"
#include "harness/run/judging/kernel_total.h"

namespace tigon {

namespace {

// A number that JSON does not have goes over the wire as a string.
Json number(double v) {
  if (std::isfinite(v)) return v;
  if (std::isnan(v)) return "nan";
  return v > 0 ? "inf" : "-inf";
}

double number_of(const Json& j) {
  if (j.is_number()) return j.get<double>();
  const auto text = j.get<std::string>();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  return text == "inf" ? infinity : -infinity;
}

Json options_json(const OptionSet& options) {
  Json j = Json::object();
  for (const auto& [name, value] : options) {
    double v = 0;
    const char* last = value.data() + value.size();
    const auto [end, error] = std::from_chars(value.data(), last, v);  // the same in every locale
    if (!value.empty() && end == last && error == std::errc())
      j[name] = v;
    else
      j[name] = value;
  }
  return j;
}

void add_case(Json* j, const Case& c) {
  (*j)["case_id"] = case_id(c);
  (*j)["case_key"] = case_key(c);
  (*j)["op"] = c.op;
  (*j)["pass"] = c.pass;
  (*j)["impl"] = c.impl;
  (*j)["dtype"] = name_of(c.dtype);
  (*j)["axes"] = c.axes;
  (*j)["options"] = options_json(c.options);
}

Json kernel_json(const KernelTrace& k) {
  return {{"name", k.name},
          {"launches", k.launches},
          {"bytes_loaded_bytes", k.bytes_loaded},
          {"bytes_stored_bytes", k.bytes_stored},
          {"requests", k.requests},
          {"sectors", k.sectors},
          {"bank_conflicts", k.bank_conflicts},
          {"barriers", k.barriers},
          {"atomics", k.atomics}};
}

KernelTrace kernel_of(const Json& j) {
  KernelTrace k;
  k.name = j.at("name");
  k.launches = j.at("launches");
  k.bytes_loaded = j.at("bytes_loaded_bytes");
  k.bytes_stored = j.at("bytes_stored_bytes");
  k.requests = j.at("requests");
  k.sectors = j.at("sectors");
  k.bank_conflicts = j.at("bank_conflicts");
  k.barriers = j.at("barriers");
  k.atomics = j.at("atomics");
  return k;
}

Verdict verdict_of(const Json& j) {
  return parse_verdict(j.at("verdict").get<std::string>()).value_or(Verdict::kRuntimeError);
}

// Text with bytes that are not UTF-8 replaced; a kernel's message may hold anything.
std::string text_of(const Json& j) { return j.dump(); }

// `write` turns a number into JSON.
template <class Number>
Json neighbours_json(const OutputResult& o, Number write) {
  Json all = Json::array();
  for (const Neighbour& n : o.neighbours)
    all.push_back({{"column", n.column}, {"got", write(n.got)}, {"want", write(n.want)}});
  return all;
}

Json output_json(const OutputResult& o) {
  Json j = {{"name", o.name},
            {"error_over_budget", o.error_over_budget},
            {"rms_over_budget", o.rms_over_budget},
            {"one_sided_over_budget", o.one_sided_over_budget},
            {"bias", o.bias},
            {"worst_index", o.worst_index},
            {"got", o.got},
            {"want", o.want},
            {"elements", o.elements},
            {"failing", o.failing},
            {"largest_error", o.largest_error}};
  if (o.failing > 0) j["neighbours"] = neighbours_json(o, [](double v) { return Json(v); });
  if (!o.first_index.empty())
    j["first"] = {{"index", o.first_index},
                  {"got", o.first_got},
                  {"want", o.first_want},
                  {"error_over_budget", o.first_error}};
  if (!o.pattern.empty()) j["pattern"] = o.pattern;
  if (!std::isnan(o.naive_ratio)) j["naive_ratio"] = o.naive_ratio;
  return j;
}

}  // namespace

Json to_json(const CheckResult& r) {
  Json j;
  add_case(&j, r.c);
  j["inputs"] = r.c.inputs;
  j["seed"] = r.c.seed;
  j["executor"] = r.executor;
  j["verdict"] = name_of(r.verdict);
  j["reason"] = r.reason;
  j["outputs"] = Json::array();
  for (const OutputResult& o : r.outputs) j["outputs"].push_back(output_json(o));
  j["seconds_s"] = r.seconds;
  j["repro"] = r.repro;
  return j;
}

Json to_json(const TraceResult& t) {
  Json j;
  add_case(&j, t.c);
  const KernelTrace sum = total(t.kernels);
  const double moved = sum.bytes_loaded + sum.bytes_stored;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  j["executor"] = "checked";
  j["verdict"] = name_of(t.verdict);
  j["reason"] = t.reason;
  j["bytes_loaded_bytes"] = sum.bytes_loaded;
  j["bytes_stored_bytes"] = sum.bytes_stored;
  j["bytes_min_bytes"] = t.bytes_min;
  j["traffic_ratio"] = t.bytes_min > 0 ? moved / t.bytes_min : nan;
  j["requests"] = sum.requests;
  j["sectors"] = sum.sectors;
  j["sectors_per_request"] = sum.requests > 0 ? sum.sectors / sum.requests : nan;
  j["bank_conflicts"] = sum.bank_conflicts;
  j["barriers"] = sum.barriers;
  j["atomics"] = sum.atomics;
  j["kernels"] = Json::array();
  for (const KernelTrace& k : t.kernels) j["kernels"].push_back(kernel_json(k));
  j["lines"] = Json::array();
  for (const KernelTrace& l : t.lines) j["lines"].push_back(kernel_json(l));
  return j;
}

std::optional<CheckResult> check_of_record(const Json& record) {
  const auto text = [&](const Json& object, const char* key) {
    const auto member = object.find(key);
    return member != object.end() && member->is_string() ? member->get<std::string>() : "";
  };
  const auto number = [&](const Json& object, const char* key) {
    const auto member = object.find(key);
    return member != object.end() && member->is_number() ? member->get<double>()
                                                         : std::numeric_limits<double>::quiet_NaN();
  };
  if (!record.is_object()) return std::nullopt;
  CheckResult r;
  try {
    r.c = parse_case(text(record, "case_id"));
  } catch (const UsageError&) {
    return std::nullopt;
  }
  const auto verdict = parse_verdict(text(record, "verdict"));
  if (!verdict) return std::nullopt;
  r.verdict = *verdict;
  r.executor = text(record, "executor");
  r.reason = text(record, "reason");
  r.repro = text(record, "repro");
  r.seconds = number(record, "seconds_s");
  const auto outputs = record.find("outputs");
  if (outputs == record.end() || !outputs->is_array()) return r;
  for (const Json& output : *outputs) {
    if (!output.is_object()) return std::nullopt;
    OutputResult o;
    o.name = text(output, "name");
    o.error_over_budget = number(output, "error_over_budget");
    r.outputs.push_back(std::move(o));
  }
  return r;
}

std::string encode(const WireRequest& r) {
  return text_of({{"id", r.id}, {"save", r.save_folder}, {"what", r.what}});
}

WireRequest decode_request(const std::string& line) {
  const Json j = Json::parse(line);
  return {j.at("id"), j.at("save"), j.at("what")};
}

std::string encode(const CheckResult& r, bool last) {
  Json j = {{"id", case_id(r.c)},   {"executor", r.executor},  {"verdict", name_of(r.verdict)},
            {"reason", r.reason},   {"seconds", r.seconds},    {"last", last},
            {"kernels", r.kernels}, {"outputs", Json::array()}};
  for (const OutputResult& o : r.outputs)
    j["outputs"].push_back({{"name", o.name},
                            {"error", number(o.error_over_budget)},
                            {"rms", number(o.rms_over_budget)},
                            {"one_sided", number(o.one_sided_over_budget)},
                            {"bias", number(o.bias)},
                            {"at", o.worst_index},
                            {"got", number(o.got)},
                            {"want", number(o.want)},
                            {"first", o.first_index},
                            {"first_got", number(o.first_got)},
                            {"first_want", number(o.first_want)},
                            {"first_error", number(o.first_error)},
                            {"beside", neighbours_json(o, number)},
                            {"elements", o.elements},
                            {"failing", o.failing},
                            {"pattern", o.pattern},
                            {"largest", number(o.largest_error)}});
  return text_of(j);
}

CheckResult decode_check(const std::string& line, bool* last) {
  const Json j = Json::parse(line);
  CheckResult r;
  r.c = parse_case(j.at("id").get<std::string>());
  r.executor = j.at("executor");
  r.verdict = verdict_of(j);
  r.reason = j.at("reason");
  r.seconds = j.at("seconds");
  *last = j.at("last");
  r.kernels = j.at("kernels").get<std::vector<std::string>>();
  for (const Json& o : j.at("outputs")) {
    OutputResult out;
    out.name = o.at("name");
    out.error_over_budget = number_of(o.at("error"));
    out.rms_over_budget = number_of(o.at("rms"));
    out.one_sided_over_budget = number_of(o.at("one_sided"));
    out.bias = number_of(o.at("bias"));
    out.worst_index = o.at("at").get<std::vector<int64_t>>();
    out.got = number_of(o.at("got"));
    out.want = number_of(o.at("want"));
    out.first_index = o.at("first").get<std::vector<int64_t>>();
    out.first_got = number_of(o.at("first_got"));
    out.first_want = number_of(o.at("first_want"));
    out.first_error = number_of(o.at("first_error"));
    out.elements = o.at("elements");
    out.failing = o.at("failing");
    out.pattern = o.at("pattern");
    out.largest_error = number_of(o.at("largest"));
    for (const Json& n : o.at("beside"))
      out.neighbours.push_back({n.at("column"), number_of(n.at("got")), number_of(n.at("want"))});
    r.outputs.push_back(std::move(out));
  }
  return r;
}

std::string encode(const TraceResult& t) {
  Json j = {{"id", case_id(t.c)},
            {"verdict", name_of(t.verdict)},
            {"reason", t.reason},
            {"kernels", Json::array()},
            {"lines", Json::array()}};
  for (const KernelTrace& k : t.kernels) j["kernels"].push_back(kernel_json(k));
  for (const KernelTrace& l : t.lines) j["lines"].push_back(kernel_json(l));
  return text_of(j);
}

TraceResult decode_trace(const std::string& line) {
  const Json j = Json::parse(line);
  TraceResult t;
  t.c = parse_case(j.at("id").get<std::string>());
  t.verdict = verdict_of(j);
  t.reason = j.at("reason");
  for (const Json& k : j.at("kernels")) t.kernels.push_back(kernel_of(k));
  for (const Json& l : j.at("lines")) t.lines.push_back(kernel_of(l));
  return t;
}

std::string encode(const Explanation& e) { return text_of({{"facts", e.facts}}); }

Explanation decode_explanation(const std::string& line) {
  return {Json::parse(line).at("facts").get<std::vector<std::string>>()};
}

}  // namespace tigon
