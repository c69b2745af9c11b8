// SPDX-License-Identifier: Apache-2.0
// Options, cells and records of tigon converge --parts.
#include "harness/cli/commands/parts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "convergence/ops.h"
#include "harness/cli/commands/converge_options.h"
#include "harness/cli/options/axis_values.h"
#include "harness/cli/text/converge_events.h"
#include "harness/cli/text/parts_table.h"
#include "harness/run/check.h"

namespace tigon::cli {
namespace {

namespace cv = convergence;

constexpr int kSteps = 3, kQuickSteps = 1;

struct KernelChoice {
  std::string impl;
  std::vector<std::string> kernels;
};

std::string naive_with(const std::vector<std::string>& kernels) {
  return fmt::format("naive + {}", fmt::join(kernels, ", "));
}

std::vector<KernelChoice> sides_of(const cv::ModelConfig& config,
                                   const std::vector<std::string>& fused, bool each) {
  std::vector<KernelChoice> sides = {{"naive", {}}};
  if (fused.empty())
    sides.push_back({"fused", cv::op_names()});
  else
    sides.push_back({naive_with(fused), fused});
  for (const std::string& op : each ? cv::ops_of(config) : std::vector<std::string>{})
    if (naive_with({op}) != sides[1].impl) sides.push_back({naive_with({op}), {op}});
  return sides;
}

int as_size(const char* axis, int64_t value) {
  constexpr int64_t kMost = int64_t{1} << 30;
  if (value < 1 || value > kMost)
    throw UsageError(fmt::format("-a {}={}: 1 to {} is possible", axis, value, kMost));
  return static_cast<int>(value);
}

cv::ConvergeRequest with_sizes(const cv::ConvergeRequest& request, int sequence, int vocabulary,
                               DType dtype) {
  cv::ConvergeRequest sized = request;
  sized.sequence = sequence;
  sized.vocabulary = vocabulary;
  sized.dtypes = {dtype};
  return sized;
}

PartsTable table_of(const PartsOptions& options, const cv::ConvergeRequest& request) {
  const cv::ModelConfig config = checked_config(request);
  PartsTable table;
  for (const KernelChoice& side : sides_of(config, request.fused, options.each)) {
    cv::PartsRequest cell{config, config.dtypes.front(), side.kernels};
    cell.steps = request.steps > 0 ? request.steps : request.quick ? kQuickSteps : kSteps;
    if (!options.memory.empty()) cell.memory = parse_memory(options.memory);
    cell.plan_only = options.plan;
    cell.confirm = options.confirm;
    table.push_back({side.impl, cell});
  }
  return table;
}

// What makes a model another than the config's.
Json options_of(const cv::ModelConfig& c) {
  Json options = Json::object();
  if (c.medusa > 0) options["medusa"] = c.medusa;
  if (c.frozen) options["frozen"] = true;
  if (c.recompute) options["recompute"] = true;
  if (c.accumulate > 1) options["accumulate"] = c.accumulate;
  if (!c.graph) options["graph"] = false;
  return options;
}

std::string name_of_cell(const PartsCell& cell) {
  const cv::ModelConfig& c = cell.request.config;
  std::string name = fmt::format("{}/{}/{}/T={},V={},batch={}", c.name, cell.impl,
                                 name_of(cell.request.dtype), c.sequence, c.vocabulary, c.batch);
  const Json options = options_of(c);
  for (const auto& [option, value] : options.items())
    name += fmt::format(",{}={}", option, value.dump());
  return name;
}

// `value` where it was measured.
template <class T>
Json measured(bool is, const T& value) {
  return is ? Json(value) : Json();
}

Json fields_of(const PartsCell& cell, const cv::PartsReport& r) {
  const cv::ModelConfig& c = cell.request.config;
  const bool is = r.outcome == cv::Outcome::kMeasured;
  Json parts = Json::array();
  for (int i = 0; i < cv::kParts; ++i) {
    const auto part = static_cast<cv::Part>(i);
    parts.push_back({{"part", cv::name_of(part)},
                     {"seconds_s", measured(is, r.seconds[part])},
                     {"bytes", r.peak.bytes[part]},
                     {"intermediates_bytes", measured(is, r.intermediates[part])}});
  }
  return {{"cell", name_of_cell(cell)},
          {"config", c.name},
          {"impl", cell.impl},
          {"kernels", cell.request.kernels},
          {"dtype", name_of(cell.request.dtype)},
          {"axes", {{kSequenceAxis, c.sequence}, {kVocabularyAxis, c.vocabulary}}},
          {"batch", c.batch},
          {"options", options_of(c)},
          {"executor", default_executor()},
          {"outcome", cv::name_of(r.outcome)},
          {"reason", r.reason},
          {"limit_bytes", r.limit_bytes},
          {"planned_bytes", r.planned_bytes},
          {"peak_bytes", measured(r.peak_bytes > 0, r.peak_bytes)},
          {"unused_bytes", r.peak.unused},
          {"parts", parts},
          {"step_s", measured(is, r.step_s)},
          {"coverage", measured(is, r.seconds.sum() / r.step_s)},
          {"tokens_per_s", measured(is, r.tokens_per_s)},
          {"attention", r.attention},
          {"launches", r.launches},
          {"linear_flop", measured(is, r.products.flop)},
          {"linear_alone_s", measured(is, r.products.seconds)}};
}

// The record of a cell that a run to continue has.
const Json* finished(const Session& session, const std::string& cell) {
  for (const Json* record : session.resumed()->all("converge_parts"))
    if (record->value("cell", "") == cell) return record;
  return nullptr;
}

int run_cell(Session& session, const PartsCell& cell, std::vector<Json>& records) {
  ConvergeListener listener(&session);
  const std::string name = name_of_cell(cell), unit = "parts " + name;
  if (session.is_sealed(unit)) {
    if (const Json* record = finished(session, name)) {
      listener.count_record("converge_parts", *record);
      records.push_back(*record);
    }
    return listener.tally().exit_code();
  }
  const int code = run_unit(
      session, unit,
      [&](const Emit& emit, const std::atomic<bool>&) {
        cv::PartsRequest request = cell.request;
        // A step of a very long sequence takes minutes: a child that says nothing is given up.
        request.on_step = [&](int done, int of) { emit({{"progress", done}, {"of", of}}); };
        emit({{"record", "converge_parts"},
              {"fields", fields_of(cell, cv::measure_parts(request))}});
      },
      listener);
  records.insert(records.end(), listener.parts().begin(), listener.parts().end());
  return code;
}

}  // namespace

Option add_parts(Command command, PartsOptions* options) {
  Option parts = command.flag(
      "--parts", &options->asked,
      "measure one step by part instead: time (NVTX ranges, CUDA events; the median of --steps, 3) "
      "and memory, naive and fused");
  const auto of_parts = [&](Option option) { option.needs(parts); };
  of_parts(command.flag("--each", &options->each,
                        "with --parts: every kernel of the model alone switched on, too"));
  of_parts(command.repeated("-a,--axis", &options->axes,
                            "with --parts: sizes, T tokens of a sequence and V rows of the "
                            "embedding: T[pow2]=[10:17], V=[32000,128256]; k, Ki, M, Mi"));
  of_parts(command.option("--memory", &options->memory,
                          "with --parts: bytes that a step may take, e.g. 80GiB (what is free "
                          "on the device)"));
  Option plan =
      command.flag("--plan", &options->plan, "with --parts: planned memory only, nothing is run");
  of_parts(plan);
  Option confirm =
      command.flag("--confirm", &options->confirm,
                   "with --parts: run what is planned not to fit, too: memory must run out");
  of_parts(confirm);
  confirm.excludes(plan);
  return parts;
}

std::vector<PartsTable> parts_tables(const PartsOptions& options,
                                     const cv::ConvergeRequest& request) {
  // Without a limit the host has only its own memory to run out of.
  if (options.confirm && options.memory.empty() && default_executor() != "cuda")
    throw UsageError("--confirm: without a GPU it needs --memory, the limit to confirm");
  const cv::ModelConfig config = checked_config(request);
  auto axes = parse_axes(options.axes, {kSequenceAxis, kVocabularyAxis}, "a training");
  axes.try_emplace(kSequenceAxis, std::vector<int64_t>{config.sequence});
  axes.try_emplace(kVocabularyAxis, std::vector<int64_t>{config.vocabulary});
  const std::vector<DType> dtypes =
      request.dtypes.empty() ? std::vector<DType>{DType::kBF16} : request.dtypes;
  std::vector<PartsTable> tables;
  for (const DType dtype : dtypes)
    for (const int64_t v : axes[kVocabularyAxis])
      for (const int64_t t : axes[kSequenceAxis])
        tables.push_back(table_of(options, with_sizes(request, as_size(kSequenceAxis, t),
                                                      as_size(kVocabularyAxis, v), dtype)));
  return tables;
}

int parts_stage(Session& session, const std::vector<PartsTable>& tables) {
  int code = kExitOk;
  for (const PartsTable& table : tables) {
    std::vector<Json> records;
    for (const PartsCell& cell : table) {
      if (interrupted()) return kExitInterrupted;
      code = combined(code, run_cell(session, cell, records));
    }
    print_parts(records);
  }
  return interrupted() ? static_cast<int>(kExitInterrupted) : code;
}

}  // namespace tigon::cli
