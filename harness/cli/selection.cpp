// The options that choose cases.
#include "harness/cli/selection.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>

#include "harness/cli/axis_values.h"
#include "harness/cli/suggest.h"

namespace tigon::cli {
namespace {

void add_name(std::vector<std::string>* names, const std::string& name) {
  if (std::find(names->begin(), names->end(), name) == names->end()) names->push_back(name);
}

std::vector<std::string> op_names() {
  std::vector<std::string> names;
  for (const OpSpec& op : all_ops()) names.push_back(op.name);
  return names;
}

int count_of(std::string_view text, std::string_view what) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size())
    throw UsageError(fmt::format("{}: '{}' is not a whole number", what, text));
  return value;
}

struct Shard {
  int index = 0, count = 1;
};

Shard checked(Shard shard, std::string_view what) {
  if (shard.count < 1 || shard.index < 0 || shard.index >= shard.count)
    throw UsageError(
        fmt::format("{}: shard {} of {} does not exist; write I/N with I from 0 to N-1", what,
                    shard.index, shard.count));
  return shard;
}

Shard parse_shard(const std::string& text) {
  const size_t slash = text.find('/');
  if (slash == std::string::npos)
    throw UsageError(fmt::format("--shard {}: write I/N with I from 0 to N-1, e.g. 0/4", text));
  return checked(
      {count_of(text.substr(0, slash), "--shard"), count_of(text.substr(slash + 1), "--shard")},
      "--shard");
}

// As GoogleTest's sharding protocol.
Shard shard_of_environment() {
  const char* count = std::getenv("GTEST_TOTAL_SHARDS");
  const char* index = std::getenv("GTEST_SHARD_INDEX");
  if (const char* file = std::getenv("GTEST_SHARD_STATUS_FILE"); file != nullptr && *file != '\0')
    std::ofstream(file, std::ios::app);
  if (count == nullptr && index == nullptr) return {};
  if (count == nullptr || index == nullptr)
    throw UsageError("GTEST_TOTAL_SHARDS and GTEST_SHARD_INDEX must be set together");
  return checked({count_of(index, "GTEST_SHARD_INDEX"), count_of(count, "GTEST_TOTAL_SHARDS")},
                 "GTEST_SHARD_INDEX");
}

void check_pass_and_implementation(const Selection& s, const std::vector<const OpSpec*>& ops) {
  std::vector<std::string> passes, implementations;
  for (const OpSpec* op : ops)
    for (const Pass& pass : op->passes) {
      add_name(&passes, pass.name);
      for (const Implementation& i : pass.implementations) add_name(&implementations, i.name);
    }
  require_known("pass", s.passes, passes);
  require_known("implementation", s.implementations, implementations);
}

}  // namespace

void add_selection(CLI::App* command, Selection* s) {
  const auto list = [&](const char* name, std::vector<std::string>* to, const char* help) {
    return command->add_option(name, *to, help)->allow_extra_args(false)->delimiter(',');
  };
  list("--op", &s->ops, "ops, e.g. rms_norm,rope (default: all)");
  list("--pass", &s->passes, "forward, backward, forward_backward (default: all)");
  list("--impl", &s->implementations, "naive, fused, ... (default: all)");
  list("--dtype", &s->dtypes, "f32, bf16, f16 (default: all)");
  command
      ->add_option("-a,--axis", s->axes,
                   "values of an axis: T=128, V=[32000,128256], T[pow2]=[10:15], T=[8:64:8]; "
                   "k, Ki, M, Mi")
      ->allow_extra_args(false);
  command->add_option("--case", s->cases, "exactly this case, as a failure's repro line writes it")
      ->allow_extra_args(false);
  command->add_option("--filter", s->filter, "regex searched in the case id; a leading - negates")
      ->envname("TIGON_FILTER");
  command->add_option("--exclude", s->exclude, "regex of case ids to leave out")
      ->envname("TIGON_EXCLUDE");
  command->add_option("--shard", s->shard,
                      "I/N: the I-th of N parts, I from 0 (default: GTEST_SHARD_INDEX and "
                      "GTEST_TOTAL_SHARDS)");
  command->add_option("--seed", s->seed, "seed of the inputs (default: 42)")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--timeout", s->timeout_s,
                      "seconds that one case may take before it is killed");
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
  require_known("op", s.ops, op_names());
  std::vector<const OpSpec*> ops;
  for (const OpSpec& op : all_ops())
    if (s.ops.empty() || std::find(s.ops.begin(), s.ops.end(), op.name) != s.ops.end())
      ops.push_back(&op);
  return ops;
}

CheckRequest request_of(const Selection& s) {
  const std::vector<const OpSpec*> ops = selected_ops(s);
  check_pass_and_implementation(s, ops);
  CheckRequest request;
  request.ops = s.ops;
  request.passes = s.passes;
  request.implementations = s.implementations;
  for (const std::string& name : s.dtypes) request.dtypes.push_back(dtype_named(name));
  request.axes = parse_axes(s.axes, ops);
  request.filter = s.filter;
  for (const std::string& id : s.cases) request.cases.push_back(parse_case(id));
  const Shard shard = s.shard.empty() ? shard_of_environment() : parse_shard(s.shard);
  request.shard_index = shard.index;
  request.shard_count = shard.count;
  request.seed = s.seed;
  if (!(s.timeout_s >= 0))
    throw UsageError(fmt::format("--timeout {}: seconds, 0 or more", s.timeout_s));
  request.timeout_s = s.timeout_s;
  return request;
}

Exclusion::Exclusion(const std::string& pattern) : given_(!pattern.empty()) {
  try {
    pattern_ = std::regex(pattern);
  } catch (const std::regex_error& error) {
    throw UsageError(
        fmt::format("--exclude '{}' is not a regular expression: {}", pattern, error.what()));
  }
}

bool Exclusion::operator()(const std::string& id) const {
  return given_ && std::regex_search(id, pattern_);
}

}  // namespace tigon::cli
