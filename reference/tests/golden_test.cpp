// SPDX-License-Identifier: Apache-2.0
// Compares the oracles with values and gradients that PyTorch computed in float64
// (reference/goldens/make_goldens.py).
#include <fstream>
#include <nlohmann/json.hpp>

#include "reference/cross_entropy.h"
#include "reference/divergence.h"
#include "reference/linear_cross_entropy.h"
#include "reference/linear_divergence.h"
#include "reference/linear_log_prob.h"
#include "reference/linear_policy.h"
#include "reference/log_prob.h"
#include "reference/rms_norm.h"
#include "reference/rope.h"
#include "reference/swiglu.h"
#include "reference/tests/call.h"

namespace tigon::reference {
namespace {

struct Case {
  Binding setting;
  Values inputs, outputs;
};

std::vector<Case> read_cases(const std::string& op, size_t at_least) {
  const std::string path = std::string(TIGON_GOLDENS) + "/" + op + ".json";
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path + " is missing; make_goldens.py beside it writes it");
  const auto document = nlohmann::json::parse(file);
  std::vector<Case> cases;
  for (const auto& c : document.at("cases"))
    cases.push_back({c.at("setting").get<Binding>(), c.at("inputs").get<Values>(),
                     c.at("outputs").get<Values>()});
  if (cases.size() < at_least)
    throw std::runtime_error(path + " has " + std::to_string(cases.size()) +
                             " cases, should have " + std::to_string(at_least));
  return cases;
}

// Every tensor of the call that is named in `outputs`.
template <class Args>
void expect_outputs(Call<Args>& call, const Case& c, const std::string& op) {
  for_each_field<Args>([&](const auto& f) {
    if (f.role == Role::kIn || !c.outputs.count(f.name)) return;
    expect_close(call.get(f.name), c.outputs.at(f.name), 1e-12, op + " " + f.name);
  });
}

template <class Args, class Pass>
void run_and_expect(const Case& c, const std::string& op, Pass pass) {
  Call<Args> call(c.setting, c.inputs);
  pass(call.args);
  expect_outputs(call, c, op);
}

TEST(Golden, RmsNorm) {
  for (Case c : read_cases("rms_norm", 4)) {
    run_and_expect<rms_norm::Forward<F64>>(c, "rms_norm", rms_norm::forward<F64>);
    c.inputs["rstd"] = c.outputs["rstd"];
    run_and_expect<rms_norm::Backward<F64>>(c, "rms_norm", rms_norm::backward<F64>);
  }
}

TEST(Golden, Rope) {
  for (const Case& c : read_cases("rope", 3)) {
    run_and_expect<rope::Forward<F64>>(c, "rope", rope::forward<F64>);
    run_and_expect<rope::Backward<F64>>(c, "rope", rope::backward<F64>);
  }
}

TEST(Golden, SwiGlu) {
  for (const Case& c : read_cases("swiglu", 3)) {
    run_and_expect<swiglu::Forward<F64>>(c, "swiglu", swiglu::forward<F64>);
    run_and_expect<swiglu::Backward<F64>>(c, "swiglu", swiglu::backward<F64>);
  }
}

TEST(Golden, LogProb) {
  for (Case c : read_cases("log_prob", 6)) {
    run_and_expect<log_prob::Forward<F64>>(c, "log_prob", log_prob::forward<F64>);
    for (const char* saved : {"lse", "entropy"})
      if (c.outputs.count(saved)) c.inputs[saved] = c.outputs[saved];
    run_and_expect<log_prob::Backward<F64>>(c, "log_prob", log_prob::backward<F64>);
  }
}

// The slope that forward saves is tested by what backward makes of it.
TEST(Golden, Divergence) {
  for (Case c : read_cases("divergence", 21)) {
    Call<divergence::Forward<F64>> forward(c.setting, c.inputs);
    divergence::forward(forward.args);
    expect_outputs(forward, c, "divergence");
    for (const char* saved : {"lse", "teacher_lse", "slope"}) c.inputs[saved] = forward.get(saved);
    run_and_expect<divergence::Backward<F64>>(c, "divergence", divergence::backward<F64>);
  }
}

TEST(Golden, LinearDivergence) {
  for (Case c : read_cases("linear_divergence", 6)) {
    Call<linear_divergence::Forward<F64>> forward(c.setting, c.inputs);
    linear_divergence::forward(forward.args);
    expect_outputs(forward, c, "linear_divergence");
    for (const char* saved : {"lse", "teacher_lse", "slope"}) c.inputs[saved] = forward.get(saved);
    run_and_expect<linear_divergence::Backward<F64>>(c, "linear_divergence",
                                                     linear_divergence::backward<F64>);
  }
}

TEST(Golden, LinearLogProb) {
  for (Case c : read_cases("linear_log_prob", 6)) {
    run_and_expect<linear_log_prob::Forward<F64>>(c, "linear_log_prob",
                                                  linear_log_prob::forward<F64>);
    for (const char* saved : {"lse", "entropy"})
      if (c.outputs.count(saved)) c.inputs[saved] = c.outputs[saved];
    run_and_expect<linear_log_prob::Backward<F64>>(c, "linear_log_prob",
                                                   linear_log_prob::backward<F64>);
  }
}

TEST(Golden, LinearPolicy) {
  for (const Case& c : read_cases("linear_policy", 16)) {
    run_and_expect<linear_policy::Forward<F64>>(c, "linear_policy", linear_policy::forward<F64>);
    run_and_expect<linear_policy::ForwardBackward<F64>>(c, "linear_policy",
                                                        linear_policy::forward_backward<F64>);
  }
}

TEST(Golden, CrossEntropy) {
  for (Case c : read_cases("cross_entropy", 24)) {
    const std::string op = "cross_entropy";
    run_and_expect<cross_entropy::Forward<F64>>(c, op, cross_entropy::forward<F64>);
    run_and_expect<cross_entropy::ForwardBackward<F64>>(c, op,
                                                        cross_entropy::forward_backward<F64>);
    c.inputs["lse"] = c.outputs["lse"];
    run_and_expect<cross_entropy::Backward<F64>>(c, op, cross_entropy::backward<F64>);
  }
}

TEST(Golden, LinearCrossEntropy) {
  for (const Case& c : read_cases("linear_cross_entropy", 24)) {
    const std::string op = "linear_cross_entropy";
    run_and_expect<linear_cross_entropy::Forward<F64>>(c, op, linear_cross_entropy::forward<F64>);
    run_and_expect<linear_cross_entropy::ForwardBackward<F64>>(
        c, op, linear_cross_entropy::forward_backward<F64>);
  }
}

}  // namespace
}  // namespace tigon::reference
