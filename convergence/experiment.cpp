// SPDX-License-Identifier: Apache-2.0
// The table of experiments, and what all of them share.
#include "convergence/experiment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "convergence/experiments.h"
#include "convergence/next_action/report.h"
#include "kernels/device/runtime.h"

namespace tigon::convergence {
namespace {

constexpr const char* kPaper = "Hsu et al. 2024, Liger Kernel, arXiv:2410.10989";
constexpr const char* kReadme = "README of Liger Kernel 0.1 (2024)";
constexpr const char* kActions = "Tang, Peterson and Pardos 2016, arXiv:1608.04789";

std::string verdict_of(const Claim& claim, const Finding& finding) {
  if (std::isnan(finding.value)) return "not measured here";
  if (!finding.verdict.empty()) return finding.verdict;
  if (!on_gpu() && finding.from == std::string_view(kMeasured)) return "not measured here";
  return finding.value >= claim.number ? "holds" : "does not hold";
}

}  // namespace

const std::vector<Experiment>& experiments() {
  using next_action::kPublishedNGram, next_action::kPublishedRnn, next_action::kPublishedSyllabus;
  static const std::vector<Experiment> all = {
      {"train",
       "a small LLaMA, every fused kernel against the naive chain",
       {{"training throughput", Quantity::kGain, 0.20, kPaper},
        {"training memory", Quantity::kSaved, 0.60, kPaper}},
       run_train},
      {"8b",
       "LLaMA-3-8B in its own shape",
       {{"training throughput, LLaMA-3-8B", Quantity::kGain, 0.20, kReadme},
        {"training memory, LLaMA-3-8B", Quantity::kSaved, 0.40, kReadme}},
       run_8b},
      {"frontier",
       "the longest context that fits",
       {{"context: out of memory at 4K without, 16K with", Quantity::kFactor, 4.0, kReadme}},
       run_frontier},
      {"medusa",
       "Medusa heads, each with its loss over the whole vocabulary",
       {{"training throughput, Medusa heads", Quantity::kGain, 0.40, kReadme},
        {"training memory, Medusa heads", Quantity::kSaved, 0.80, kReadme}},
       run_medusa},
      {"rms_norm",
       "RMSNorm forward and backward, alone",
       {{"RMSNorm, speed", Quantity::kFactor, 3.0, kReadme},
        {"RMSNorm, peak memory", Quantity::kFactor, 3.0, kReadme}},
       run_rms_norm},
      {"cross_entropy",
       "cross entropy forward and backward, alone",
       {{"cross entropy, speed", Quantity::kFactor, 2.0, kReadme},
        {"cross entropy, peak memory", Quantity::kFactor, 4.0, kReadme}},
       run_cross_entropy},
      {"next_action",
       "what a learner does next, from the syllabus to a transformer on the fused kernels",
       {{"next action, top-1: syllabus order", Quantity::kShare, kPublishedSyllabus, kActions},
        {"next action, top-1: n-gram with back-off", Quantity::kShare, kPublishedNGram, kActions},
        {"next action, top-1: RNN", Quantity::kShare, kPublishedRnn, kActions},
        {"next action: n-gram above syllabus order", Quantity::kPoints,
         kPublishedNGram - kPublishedSyllabus, kActions},
        {"next action: RNN above n-gram", Quantity::kPoints, kPublishedRnn - kPublishedNGram,
         kActions}},
       run_next_action},
  };
  return all;
}

std::vector<std::string> experiment_names() {
  std::vector<std::string> names;
  for (const Experiment& e : experiments()) names.push_back(e.name);
  return names;
}

bool on_gpu() { return device_info().kind == "cuda"; }

Finding no_gpu() {
  return {.reason = "no GPU here; a time of the host executor is not a kernel's speed"};
}

const char* name_of(Quantity quantity) {
  constexpr const char* kNames[] = {"gain", "saved", "factor", "share", "points"};
  return kNames[static_cast<int>(quantity)];
}

std::string show(Quantity quantity, double value) {
  if (std::isnan(value)) return "-";
  switch (quantity) {
    case Quantity::kGain:
      return fmt::format("{:+.0f}%", 100 * value);
    case Quantity::kSaved:
      return fmt::format("{:+.0f}%", -100 * value);
    case Quantity::kFactor:
      return fmt::format("{:.2g}x", value);
    case Quantity::kShare:
      return fmt::format("{:.1f}%", 100 * value);
    case Quantity::kPoints:
      return fmt::format("{:+.1f}", 100 * value);
  }
  return "-";
}

std::vector<ClaimReport> run_experiment(const std::string& name, const ExperimentContext& context) {
  const auto found = std::find_if(experiments().begin(), experiments().end(),
                                  [&](const Experiment& e) { return e.name == name; });
  if (found == experiments().end())
    throw ConvergeError(2, fmt::format("no experiment '{}': there are {}", name,
                                       fmt::join(experiment_names(), ", ")));
  const std::vector<Finding> findings = found->run(context);
  const std::string on = (on_gpu() ? "" : "host executor: ") + device_info().name;
  std::vector<ClaimReport> reports;
  for (size_t i = 0; i < findings.size(); ++i) {
    const Claim& claim = found->claims.at(i);
    reports.push_back({name, claim, findings[i], on, verdict_of(claim, findings[i])});
  }
  return reports;
}

}  // namespace tigon::convergence
