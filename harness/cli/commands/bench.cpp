// SPDX-License-Identifier: Apache-2.0
// tigon bench: speed on a GPU, counted traffic on a CPU, memory on both.
#include "harness/measure/bench.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <set>

#include "harness/cli/commands.h"
#include "harness/cli/options/grid.h"
#include "harness/cli/stages.h"
#include "harness/cli/text/bench_lines.h"
#include "harness/cli/text/terminal.h"
#include "harness/peers/peers.h"
#include "harness/plugin/measure_plugin.h"

namespace tigon::cli {
namespace {

constexpr double kPeerGraceS = 20;  // for what is done beside a peer's answer
// Of a grid, whose cells are many: seconds of timing in each, and time for all.
constexpr double kGridCellS = 0.03;
constexpr const char* kGridBudget = "10m";

// What a record's verdict counts as. A baseline that does not fit in memory is a result, a kernel
// that does not is a failure; whatever a peer cannot do is a result.
Verdict counted(const Json& record) {
  const std::string verdict = record["verdict"];
  if (verdict != "passed" && peers::is_peer(record["impl"])) return Verdict::kSkipped;
  if (verdict == "oom" && record["impl"].get<std::string>().rfind("fused", 0) != 0)
    return Verdict::kSkipped;
  return parse_verdict(verdict).value_or(Verdict::kRuntimeError);
}

// Records and counts. A cell is recorded whole or not at all: an interrupted run measures it again
// when it goes on.
class BenchRecords {
 public:
  explicit BenchRecords(Session* session) : session_(session) {}
  void add(const std::string& kind, const Json& fields) {
    if (kind != "trace" && kind != "ceiling") {
      cell_.emplace_back(kind, fields);
      return;
    }
    session_->record(kind, fields);
    if (kind == "trace") count(fields);
  }
  void seal(const std::string& cell) {
    for (const auto& [kind, fields] : cell_) {
      session_->record(kind, fields);
      if (kind == "bench") count(fields);
    }
    cell_.clear();
    session_->seal("bench " + cell);
  }
  void count(const Json& fields) {
    tally_.add(counted(fields));
    session_->count(counted(fields));
  }
  int exit_code() const { return tally_.exit_code(); }

 private:
  Session* session_;
  std::vector<std::pair<std::string, Json>> cell_;  // its records, until it is done
  Tally tally_;
};

// Is this cell (kind "bench") or this case's trace in the run that is continued?
bool is_recorded(const Session& session, const std::string& kind, const std::string& id) {
  if (kind == "bench") return session.is_sealed("bench " + id);
  return session.resumed() != nullptr &&
         session.resumed()->find(kind, {{"case_key", case_key(parse_case(id))}}) != nullptr;
}

// The records of sealed cells that count.
std::vector<Json> sealed_results(const Session& session, const std::vector<Cell>& cells) {
  std::vector<Json> found;
  if (session.resumed() == nullptr) return found;
  std::set<std::string> ids[2];  // of benches, of traces
  for (const Cell& cell : cells)
    for (const std::string& name : cell.implementations) {
      Case c = cell.c;
      c.impl = name;
      if (session.is_sealed("bench " + case_id(cell.c))) ids[0].insert(case_id(c));
      ids[1].insert(case_id(c));
    }
  for (const int i : {0, 1})
    for (const Json* record : session.resumed()->all(i == 0 ? "bench" : "trace")) {
      const auto id = record->find("case_id");
      if (id != record->end() && id->is_string() && ids[i].count(id->get<std::string>()))
        found.push_back(*record);
    }
  return found;
}

// The case's id with another implementation, the third part.
std::string with_implementation(const std::string& id, const std::string& name) {
  const size_t begin = id.find('/', id.find('/') + 1) + 1, end = id.find('/', begin);
  return id.substr(0, begin) + name + (end == std::string::npos ? "" : id.substr(end));
}

// Where implementations or cases are named, the peers are among them.
void use_peers(const std::string& names, Selection* selection) {
  const std::vector<std::string> used = peers::use(names);
  auto& chosen = selection->implementations;
  if (!chosen.empty()) chosen.insert(chosen.end(), used.begin(), used.end());
  const std::vector<std::string> cases = selection->cases;
  for (const std::string& id : cases)
    for (const std::string& name : used) {
      const std::string more = with_implementation(id, name);
      if (std::find(selection->cases.begin(), selection->cases.end(), more) ==
          selection->cases.end())
        selection->cases.push_back(more);
    }
}

void use_grid(BenchOptions* options) {
  if (options->size == SweepSize::kFull || !options->select.cases.empty() ||
      !options->select.model.empty())
    throw UsageError("--grid chooses the cells; leave --full, --case and --model out");
  if (options->select.budget.empty()) options->select.budget = kGridBudget;
  if (options->seconds_per_cell == 0) options->seconds_per_cell = kGridCellS;
}

// What the options say, but for which cells.
BenchRequest bench_request(const BenchOptions& options) {
  BenchRequest request;
  request.select = request_of(options.select);
  request.size = options.size;
  request.seconds_per_cell = options.seconds_per_cell;
  if (!options.plugin.path.empty()) request.measure = plugin::measure_cell;
  if (!options.peers.empty()) {
    peers::PeerOptions of_peers{.bases = options.bases, .quick = options.quick_peers};
    if (options.select.timeout_s > 0) of_peers.limit_s = options.select.timeout_s;
    request.select.timeout_s = 2 * of_peers.limit_s + kPeerGraceS;  // silent for two answers
    request.measure = [=](const Cell& cell, const Ceilings& ceilings, const StoppingRule& rule,
                          const Emit& emit) {
      peers::measure_cell(cell, ceilings, rule, emit, of_peers);
    };
  }
  request.samples = options.samples;
  request.bases = options.bases;
  request.ceilings = options.ceilings;
  request.budget_s = budget_of(options.select);
  if (request.budget_s > 0) request.size = SweepSize::kPairwise;
  return request;
}

// Puts the cases to measure into the request and returns their cells; `large` gets those that are
// left to a GPU.
std::vector<Cell> choose_cells(const BenchOptions& options, BenchRequest* request,
                               std::vector<Case>* large) {
  const Exclusion excluded(options.select.exclude);
  const bool host = default_executor() != "cuda";
  if (options.grid) request->select.cases = grid_cases(request->select, request->select.seed, host);
  std::vector<Case> chosen;
  for (const Cell& cell : sweep_cells(request->select, request->size, host))
    for (const std::string& name : cell.implementations) {
      Case c = cell.c;
      c.impl = name;
      if (excluded(case_id(c))) continue;
      (too_large(c, options.select).empty() ? chosen : *large).push_back(c);
    }
  request->select.cases = chosen;
  if (chosen.empty()) return {};
  return sweep_cells(request->select, request->size, host);
}

void record_large(const std::vector<Case>& large, const BenchOptions& options, Session* session,
                  BenchRecords* records) {
  for (const Case& c : large) {
    const Json record = bench_without_samples(c, main_basis(), name_of(Verdict::kSkipped),
                                              too_large(c, options.select));
    session->record("bench", record);
    records->count(record);
    fmt::print("{}\n", bench_line("bench", without_nonfinite(record)));
  }
}

}  // namespace

int bench_stage(Session& session, const BenchOptions& options) {
  BenchRequest request = bench_request(options);
  std::vector<Case> large;
  const std::vector<Cell> cells = choose_cells(options, &request, &large);
  BenchRecords records(&session);
  record_large(large, options, &session, &records);
  if (cells.empty()) {
    fmt::print("nothing to measure: no case is selected\n");
    return kExitNothing;
  }
  Progress progress("bench", static_cast<int>(cells.size()));
  size_t done = 0;
  for (const Json& sealed : sealed_results(session, cells)) records.count(sealed);
  request.is_recorded = [&](const std::string& kind, const std::string& id) {
    return is_recorded(session, kind, id);
  };
  run_bench(request, {.on_record =
                          [&](const std::string& kind, const Json& fields) {
                            records.add(kind, fields);
                            progress.line(bench_line(kind, without_nonfinite(fields)));
                          },
                      .on_cell =
                          [&](const std::string& label, int) {
                            ++done;
                            records.seal(label);
                            progress.step(label);
                          }});
  if (request.budget_s > 0)
    fmt::print("covering: {} of {} cells measured within the budget of {}\n", done, cells.size(),
               options.select.budget);
  return records.exit_code();
}

namespace {

constexpr const char* kBenchExamples =
    "Examples:\n"
    "  ./tigon bench\n"
    "  ./tigon bench --op cross_entropy -a V=[32000,128256]\n"
    "  ./tigon bench --op rms_norm --dtype bf16 -a T[pow2]=[10:15] -a H=4096\n"
    "  ./tigon bench --model llama3-8b --budget 60s\n"
    "  ./tigon bench --quick --json /tmp/bench.jsonl\n"
    "  ./tigon bench --op rms_norm --peers torch,compile,liger\n"
    "  ./tigon bench --grid --op layer_norm --budget 60s\n"
    "On a GPU: time with cold caches and in a graph, as a share of ceilings of the same run\n"
    "and beside a copy of as many bytes, or the matrix products alone, timed in turns.\n"
    "On a CPU: counted traffic, memory, and wall time of the host executor, which is no kernel\n"
    "speed.\n"
    "The outputs of what was timed are compared with the oracle in sampled rows and columns;\n"
    "one that is wrong fails, with exit code 1.";

// Options as they are typed, which others of BenchOptions follow from.
struct TypedBench {
  std::string basis = "all";
  bool quick = false, full = false, no_ceilings = false;
};

void add_options(const Command& command, BenchOptions* options, TypedBench* typed) {
  add_selection(command, &options->select);
  command.option("--min-time", &options->seconds_per_cell, "seconds of timing per cell and basis")
      .not_negative();
  command.option("--samples", &options->samples, "exactly so many samples per cell and basis")
      .positive();
  command.option("--basis", &typed->basis, "times to take on a GPU (all)")
      .one_of({"all", "cold", "graph"});
  command.flag("--no-ceilings", &typed->no_ceilings, "do not measure the GPU's ceilings first");
  Option quick = command.flag("--quick", &typed->quick, "bf16, the middle of every sweep");
  command.flag("--full", &typed->full, "every combination in every type").excludes(quick);
  command
      .flag("--grid", &options->grid,
            "all widths that models have and 40 drawn by --seed, by 1 to 65,536 rows; within "
            "--budget (10m)")
      .excludes(quick);
  Option plugin = add_plugin(command, &options->plugin);
  command
      .option("--peers", &options->peers,
              fmt::format("measured beside ours, in Python: {}", fmt::join(peers::known(), ", ")))
      .excludes(plugin);
}

void take_typed(const TypedBench& typed, BenchOptions* options) {
  if ((typed.quick || typed.full) && !options->select.budget.empty())
    throw UsageError("--budget chooses the cells; leave --quick and --full out");
  if (typed.quick) options->size = SweepSize::kQuick;
  if (typed.full) options->size = SweepSize::kFull;
  if (options->grid) use_grid(options);
  if (typed.basis != "all") options->bases = typed.basis == "cold" ? Bases::kCold : Bases::kGraph;
  options->ceilings = !typed.no_ceilings;
}

}  // namespace

void add_bench(Command command, Program* program) {
  command.footer(kBenchExamples);
  const auto options = std::make_shared<BenchOptions>();
  const auto typed = std::make_shared<TypedBench>();
  const auto output = std::make_shared<Output>();
  const auto positional = std::make_shared<std::vector<std::string>>();
  command.option("ops", positional.get(), "ops, as --op");
  add_options(command, options.get(), typed.get());
  add_output(command, output.get());
  add_resume(command);
  command.run([=] {
    auto& ops = options->select.ops;
    ops.insert(ops.end(), positional->begin(), positional->end());
    take_typed(*typed, options.get());
    use_plugin(command, &options->plugin, &options->select);
    if (command.given("--peers")) use_peers(options->peers, &options->select);
    request_of(options->select);  // a wrong command line makes no results folder
    SessionOptions session = session_options(*program, *output, options->select.seed);
    session.shard = shard_of(options->select.shard);
    program->exit_code = run_session(session, [&](Session& s) { return bench_stage(s, *options); });
  });
}

}  // namespace tigon::cli
