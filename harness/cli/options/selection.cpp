// SPDX-License-Identifier: Apache-2.0
// The options that choose cases.
#include "harness/cli/options/selection.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>

#include "harness/cli/options/axis_values.h"
#include "harness/cli/options/models.h"
#include "harness/run/cases/chosen.h"
#include "harness/run/cases/known_names.h"
#include "harness/run/cases/search_pattern.h"

namespace tigon::cli {
namespace {

void add_name(std::vector<std::string>* names, const std::string& name) {
  if (std::find(names->begin(), names->end(), name) == names->end()) names->push_back(name);
}

int count_of(std::string_view text, std::string_view what) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size())
    throw UsageError(fmt::format("{}: '{}' is not a whole number", what, text));
  return value;
}

Shard checked(Shard shard) {
  if (shard.count < 1 || shard.index < 0 || shard.index >= shard.count)
    throw UsageError(
        fmt::format("{}: shard {} of {} does not exist; write I/N with I from 0 to N-1",
                    shard.source, shard.index, shard.count));
  return shard;
}

Shard parse_shard(const std::string& text) {
  const size_t slash = text.find('/');
  if (slash == std::string::npos)
    throw UsageError(fmt::format("--shard {}: write I/N with I from 0 to N-1, e.g. 0/4", text));
  return checked({count_of(text.substr(0, slash), "--shard"),
                  count_of(text.substr(slash + 1), "--shard"), "--shard", ""});
}

// The whole number in an environment variable; `otherwise` when it is not set.
int variable(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : count_of(text, name);
}

// True when both variables are set; throws UsageError when one is.
bool both_set(const char* a, const char* b) {
  const bool has_a = std::getenv(a) != nullptr, has_b = std::getenv(b) != nullptr;
  if (has_a != has_b) throw UsageError(fmt::format("{} and {} must be set together", a, b));
  return has_a;
}

// As GoogleTest's sharding protocol.
Shard shard_of_googletest() {
  return checked({variable("GTEST_SHARD_INDEX", 0), variable("GTEST_TOTAL_SHARDS", 1),
                  "GTEST_SHARD_INDEX", ""});
}

// A Slurm array may start anywhere and count in steps: --array=3-9:2 has the shards 0 to 3.
Shard shard_of_slurm() {
  const int id = variable("SLURM_ARRAY_TASK_ID", 0), first = variable("SLURM_ARRAY_TASK_MIN", 0);
  const int step = variable("SLURM_ARRAY_TASK_STEP", 1);
  if (step < 1 || (id - first) % step != 0)
    throw UsageError(fmt::format("SLURM_ARRAY_TASK_ID {} is not {} plus a multiple of the step {}",
                                 id, first, step));
  const char* job = std::getenv("SLURM_ARRAY_JOB_ID");
  return checked({(id - first) / step, variable("SLURM_ARRAY_TASK_COUNT", 1), "SLURM_ARRAY_TASK_ID",
                  job == nullptr ? "" : fmt::format("slurm {}", job)});
}

// The ops and axis values that --model stands for; what is named beside it goes first.
Selection with_model(Selection s) {
  if (s.model.empty()) return s;
  const TrainedModel& model = trained_model(s.model);
  if (s.ops.empty()) s.ops = ops_of(model);
  std::vector<std::string> given;
  for (const std::string& argument : s.axes) given.push_back(parse_axis_values(argument).axis);
  for (const OpSpec* op : selected_ops(s)) {
    const auto axes = axes_of(model, *op);
    if (axes.empty()) throw UsageError(fmt::format("--model {}: it has no {}", s.model, op->name));
    for (const auto& [axis, values] : axes) {
      if (std::find(given.begin(), given.end(), axis) != given.end()) continue;
      given.push_back(axis);
      s.axes.push_back(fmt::format("{}=[{}]", axis, fmt::join(values, ",")));
    }
  }
  return s;
}

constexpr double kHostBytes = 0x1p28;  // the oracle holds several times as much in double
constexpr double kHostFlopRate = 1e9;  // of a case with its oracle; cautious
constexpr double kHostCaseSeconds = 20;

}  // namespace

double budget_of(const Selection& s) {
  if (s.budget.empty()) return 0;
  char* end = nullptr;
  const double value = std::strtod(s.budget.c_str(), &end);
  const std::string unit = end;
  const double scale = unit.empty() || unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : 0;
  if (end == s.budget.c_str() || scale == 0 || !(value > 0) || value * scale > 1e7)
    throw UsageError(fmt::format("--budget {}: write a time, e.g. 60s, 5m or 1h", s.budget));
  return value * scale;
}

std::string too_large(const Case& c, const Selection& s) {
  if (default_executor() == "cuda" || (s.model.empty() && s.budget.empty())) return "";
  const double bytes = stored_bytes(c), seconds = flops_of(c) / kHostFlopRate;
  const double budget = budget_of(s);
  const double most = budget > 0 ? std::min(kHostCaseSeconds, budget / 4) : kHostCaseSeconds;
  if (bytes > kHostBytes)
    return fmt::format("{:.3g} GiB of tensors: too large for the host executor", bytes / 0x1p30);
  if (seconds > most)
    return fmt::format("{:.3g} GFLOP: too long on the host executor", flops_of(c) / 1e9);
  return "";
}

void add_selection(Command command, Selection* s) {
  const auto list = [&](const char* name, std::vector<std::string>* to, const char* help) {
    return command.list(name, to, help);
  };
  list("--op", &s->ops, "ops, e.g. rms_norm,rope (default: all)");
  list("--pass", &s->passes, "forward, backward, forward_backward (default: all)");
  list("--impl", &s->implementations, "naive, fused, cudnn, ... (default: all)");
  list("--dtype", &s->dtypes, "f32, bf16, f16 (default: all)");
  command.repeated("-a,--axis", &s->axes,
                   "values of an axis: T=128, V=[32000,128256], T[pow2]=[10:15], T=[8:64:8]; "
                   "k, Ki, M, Mi");
  command.option("--model", &s->model,
                 "a model's ops and sizes, e.g. llama3-8b (./tigon list models)");
  command
      .option("--ranks", &s->ranks,
              "only ops that several ranks have a part of, with so many; all ranks on this device")
      .not_negative();
  command.option("--budget", &s->budget,
                 "time for a pairwise covering of dtypes, sizes, options, inputs and layouts "
                 "instead of all cases, e.g. 60s or 5m");
  command.repeated("--case", &s->cases, "exactly this case, as a failure's repro line writes it");
  command.option("--filter", &s->filter, "regex searched in the case id; a leading - negates")
      .or_environment("TIGON_FILTER");
  command.option("--exclude", &s->exclude, "regex of case ids to leave out")
      .or_environment("TIGON_EXCLUDE");
  command.option("--shard", &s->shard,
                 "I/N: the I-th of N parts, I from 0 (default: GTEST_SHARD_INDEX of "
                 "GTEST_TOTAL_SHARDS, then the task of a Slurm array)");
  command.option("--seed", &s->seed, "seed of the inputs (default: 42)").not_negative();
  command.option("--timeout", &s->timeout_s, "seconds that one case may take before it is killed");
}

Shard shard_of(const std::string& option) {
  if (const char* file = std::getenv("GTEST_SHARD_STATUS_FILE"); file != nullptr && *file != '\0')
    std::ofstream(file, std::ios::app);
  if (!option.empty()) return parse_shard(option);
  if (both_set("GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX")) return shard_of_googletest();
  if (both_set("SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT")) return shard_of_slurm();
  return {};
}

DType dtype_named(const std::string& name) {
  static const std::map<std::string, DType> kOtherNames = {
      {"float32", DType::kF32},  {"fp32", DType::kF32}, {"float", DType::kF32},
      {"float16", DType::kF16},  {"fp16", DType::kF16}, {"half", DType::kF16},
      {"bfloat16", DType::kBF16}};
  if (const auto found = kOtherNames.find(name); found != kOtherNames.end()) return found->second;
  std::vector<std::string> known;
  for (const OpSpec& op : all_ops())
    for (const DType type : op.policies) add_name(&known, name_of(type));
  require_known("dtype", {name}, known);
  return *parse_dtype(name);
}

std::vector<const OpSpec*> selected_ops(const Selection& s) {
  CheckRequest request;
  request.ops = s.ops;
  request.ranks = s.ranks;
  require_possible(request);
  return chosen_ops(request);
}

CheckRequest request_of(const Selection& given) {
  const Selection s = with_model(given);
  budget_of(s);
  CheckRequest request;
  request.axes = parse_axes(s.axes, selected_ops(s));
  request.ops = s.ops;
  request.passes = s.passes;
  request.implementations = s.implementations;
  for (const std::string& name : s.dtypes) request.dtypes.push_back(dtype_named(name));
  request.filter = s.filter;
  for (const std::string& id : s.cases) request.cases.push_back(parse_case(id));
  const Shard shard = shard_of(s.shard);
  request.shard_index = shard.index;
  request.shard_count = shard.count;
  request.seed = s.seed;
  request.ranks = s.ranks;
  if (!(s.timeout_s >= 0))
    throw UsageError(fmt::format("--timeout {}: seconds, 0 or more", s.timeout_s));
  request.timeout_s = s.timeout_s;
  require_possible(request);
  return request;
}

struct Exclusion::Pattern {
  std::regex regex;
};

Exclusion::Exclusion(const std::string& pattern) {
  if (pattern.empty()) return;
  pattern_ = std::make_shared<const Pattern>(Pattern{search_pattern("--exclude", pattern)});
}

bool Exclusion::operator()(const std::string& id) const {
  return pattern_ != nullptr && std::regex_search(id, pattern_->regex);
}

}  // namespace tigon::cli
