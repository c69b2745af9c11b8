// SPDX-License-Identifier: Apache-2.0
// Distribution of the errors of passed cases.
#include "harness/run/memory/headroom.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/json/json.h"

namespace tigon {

namespace {

// The smallest value that a share of all does not exceed.
double nearest_rank(const std::vector<double>& sorted, double share) {
  const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::max<size_t>(rank, 1) - 1];
}

constexpr double kTargetF32 = 0.3, kTarget16 = 0.9;

}  // namespace

void Headroom::add(const CheckResult& r) {
  if (r.verdict != Verdict::kPassed) return;
  for (const OutputResult& o : r.outputs) {
    const auto key = std::tuple(r.c.op, r.c.pass, r.c.impl, r.c.dtype, o.name, r.executor);
    const auto [found, is_new] = index_.emplace(key, groups_.size());
    if (is_new) {
      Row row;
      row.op = r.c.op;
      row.pass = r.c.pass;
      row.impl = r.c.impl;
      row.output = o.name;
      row.executor = r.executor;
      row.dtype = r.c.dtype;
      row.target = r.c.dtype == DType::kF32 ? kTargetF32 : kTarget16;
      groups_.push_back({row, {}});
    }
    Group& group = groups_[found->second];
    group.errors.push_back(o.error_over_budget);
    if (o.rms_over_budget > group.row.rms_max) group.row.rms_max = o.rms_over_budget;
    if (o.one_sided_over_budget > group.row.one_sided_max)
      group.row.one_sided_max = o.one_sided_over_budget;
    group.row.bias_max = std::max(group.row.bias_max, std::abs(o.bias));
    if (group.row.worst_case.empty() || o.error_over_budget > group.row.max) {
      group.row.max = o.error_over_budget;
      group.row.worst_case = case_id(r.c);
    }
  }
}

std::vector<Headroom::Row> Headroom::rows() const {
  std::vector<Row> rows;
  for (const Group& group : groups_) {
    std::vector<double> sorted = group.errors;
    std::sort(sorted.begin(), sorted.end());
    Row row = group.row;
    row.cases = static_cast<int>(sorted.size());
    row.p50 = nearest_rank(sorted, 0.5);
    row.p99 = nearest_rank(sorted, 0.99);
    rows.push_back(std::move(row));
  }
  return rows;
}

Json to_json(const Headroom::Row& r) {
  return {{"op", r.op},
          {"pass", r.pass},
          {"impl", r.impl},
          {"dtype", name_of(r.dtype)},
          {"output", r.output},
          {"executor", r.executor},
          {"cases", r.cases},
          {"max", r.max},
          {"p99", r.p99},
          {"p50", r.p50},
          {"rms_max", r.rms_max},
          {"bias_max", r.bias_max},
          {"one_sided_max", r.one_sided_max},
          {"target", r.target},
          {"worst_case_id", r.worst_case}};
}

void NaiveErrors::complete(CheckResult* r) {
  Case any = r->c;
  any.impl.clear();
  const std::string id = r->executor + " " + case_id(any) + " ";
  for (OutputResult& o : r->outputs) {
    if (r->c.impl == "naive") {
      largest_[id + o.name] = o.largest_error;
    } else if (const auto found = largest_.find(id + o.name);
               found != largest_.end() && found->second > 0) {
      o.naive_ratio = o.largest_error / found->second;
    }
  }
}

void NaiveErrors::complete_failure(const CheckRequest& like, CheckResult* r) {
  constexpr int kMostQuestions = 20;
  const bool known = std::any_of(r->outputs.begin(), r->outputs.end(),
                                 [](const OutputResult& o) { return !std::isnan(o.naive_ratio); });
  if (r->outputs.empty() || r->c.impl == "naive" || known || asked_++ >= kMostQuestions) return;
  CheckRequest request;
  request.executor = r->executor;
  request.timeout_s = like.timeout_s;
  request.cases = {r->c};
  request.cases[0].impl = "naive";
  const OpSpec* op = find_op(r->c.op);
  const Pass* pass = op ? find_pass(*op, r->c.pass) : nullptr;
  if (!pass || !find_implementation(*pass, "naive")) return;
  run_checks(request, [&](CheckResult naive) { complete(&naive); });
  complete(r);
}

std::string naive_text(const CheckResult& r) {
  std::string text;
  for (const OutputResult& o : r.outputs)
    if (o.failing > 0 && !std::isnan(o.naive_ratio))
      text += fmt::format("; {}: {:.3g} times the error of naive", o.name, o.naive_ratio);
  return text;
}

}  // namespace tigon
