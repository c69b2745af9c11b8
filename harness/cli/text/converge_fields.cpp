// SPDX-License-Identifier: Apache-2.0
// Reports of trainings as records.
#include "harness/cli/text/converge_fields.h"

namespace tigon::cli {
namespace {

namespace cv = convergence;

Json equivalence_fields(const std::vector<cv::Equivalence>& equivalence) {
  Json list = Json::array();
  for (const cv::Equivalence& e : equivalence)
    list.push_back({{"what", e.what},
                    {"difference", e.difference},
                    {"lower", e.lower},
                    {"upper", e.upper},
                    {"margin", e.margin},
                    {"confidence", e.confidence},
                    {"noticed", e.noticed},
                    {"shown", e.shown()}});
  return list;
}

Json pair_fields(const std::vector<cv::PairReport>& pairs) {
  Json list = Json::array();
  for (const cv::PairReport& p : pairs)
    list.push_back({{"seed", p.seed},
                    {"learning_rate", p.learning_rate},
                    {"last_quarter", p.last_quarter},
                    {"last_quarter_margin", p.last_quarter_margin},
                    {"held_out", p.held_out},
                    {"held_out_margin", p.held_out_margin}});
  return list;
}

Json error_fields(const cv::GradientError& e) {
  return {{"error", e.error},
          {"across", e.across},
          {"along", e.along},
          {"cosine", e.cosine},
          {"bias", e.bias}};
}

}  // namespace

Json fields_of(const cv::StepReport& s) {
  return {{"config", s.config},
          {"impl", cv::name_of(s.side)},
          {"dtype", name_of(s.dtype)},
          {"twin", s.twin},
          {"step", s.step},
          {"loss", s.loss},
          {"grad_norm", s.grad_norm},
          {"seconds_s", s.seconds_s}};
}

Json fields_of(const cv::RunReport& r) {
  return {{"config", r.config},
          {"impl", cv::name_of(r.side)},
          {"dtype", name_of(r.dtype)},
          {"twin", r.twin},
          {"learning_rate", r.learning_rate},
          {"steps", r.steps},
          {"complete", r.complete},
          {"parameters", r.parameters},
          {"vocabulary", r.vocabulary},
          {"tokenizer_entries", r.tokenizer_entries},
          {"tokens_per_step", r.tokens_per_step},
          {"data", r.data},
          {"loss", r.loss},
          {"grad_norm", r.grad_norm},
          {"final_loss", r.final_loss},
          {"held_out_loss", r.held_out_loss},
          {"peak_bytes", r.peak_bytes},
          {"planned_bytes", r.planned_bytes},
          {"tokens_per_s", r.tokens_per_s},
          {"seconds_s", r.seconds_s},
          {"seed", r.seed},
          {"executor", r.executor},
          {"attention", r.attention},
          {"launches", r.launches}};
}

Json fields_of(const cv::VerdictReport& v) {
  return {{"config", v.config},
          {"dtype", name_of(v.dtype)},
          {"verdict", v.verdict},
          {"reason", v.reason},
          {"largest_difference", v.largest_difference},
          {"budget", v.budget},
          {"step_of_largest", v.step_of_largest},
          {"differences", v.differences},
          {"budgets", v.budgets},
          {"pairs", pair_fields(v.pairs)},
          {"equivalence", equivalence_fields(v.equivalence)},
          {"held_out_difference", v.held_out_difference},
          {"held_out_budget", v.held_out_budget},
          {"memory_ratio", v.memory_ratio},
          {"speed_ratio", v.speed_ratio}};
}

Json fields_of(const cv::GradientReport& g) {
  Json parameters = Json::array();
  for (const cv::ParameterError& p : g.parameters)
    parameters.push_back(
        {{"step", p.step}, {"parameter", p.parameter}, {"error", p.error}, {"budget", p.budget}});
  return {{"config", g.config}, {"dtype", name_of(g.dtype)},  {"verdict", g.verdict},
          {"reason", g.reason}, {"first_step", g.first_step}, {"parameters", parameters}};
}

Json fields_of(const cv::StateReport& r) {
  Json parameters = Json::array();
  for (const cv::StateParameter& p : r.parameters)
    parameters.push_back({{"step", p.step},
                          {"parameter", p.parameter},
                          {"naive", error_fields(p.naive)},
                          {"fused", error_fields(p.fused)},
                          {"ratio", p.fused.error / p.naive.error},
                          {"budget", p.budget},
                          {"bias_budget", p.bias_budget}});
  return {{"config", r.config},      {"dtype", name_of(r.dtype)}, {"reference", r.reference},
          {"verdict", r.verdict},    {"reason", r.reason},        {"first_step", r.first_step},
          {"parameters", parameters}};
}

Json fields_of(const cv::RepeatReport& r) {
  return {{"config", r.config},   {"dtype", name_of(r.dtype)}, {"impl", cv::name_of(r.side)},
          {"steps", r.steps},     {"launches", r.launches},    {"again", r.again},
          {"verdict", r.verdict}, {"reason", r.reason},        {"first_step", r.first_step}};
}

Json fields_of(const cv::ClaimReport& r) {
  return {{"experiment", r.experiment},
          {"claim", r.claim.text},
          {"quantity", cv::name_of(r.claim.quantity)},
          {"number", r.claim.number},
          {"paper", cv::show(r.claim.quantity, r.claim.number)},
          {"source", r.claim.source},
          {"value", r.finding.value},
          {"measured", cv::show(r.claim.quantity, r.finding.value)},
          {"from", r.finding.from},
          {"basis", r.finding.basis},
          {"size", r.finding.size},
          {"on", r.on},
          {"verdict", r.verdict},
          {"reason", r.finding.reason}};
}

}  // namespace tigon::cli
