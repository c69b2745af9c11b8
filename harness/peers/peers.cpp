// SPDX-License-Identifier: Apache-2.0
// bench --peers.
#include "harness/peers/peers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <set>

#include "harness/measure/memory_figures.h"
#include "harness/peers/accuracy.h"
#include "harness/peers/peer_call.h"
#include "harness/peers/peer_process.h"
#include "harness/record/build_info.h"
#include "harness/run/judging/implementation_fault.h"
#include "harness/run/memory/device_case.h"
#include "harness/spec/registry.h"

namespace tigon::peers {
namespace {

constexpr const char* kSuffix = "_peer.py";

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::set<std::string>& used() {
  static std::set<std::string> names;
  return names;
}

// What calls to peers lie in. Inputs of a measurement are there once for all of them; they are
// copied by each peer and never changed.
worker::SharedMemory& shared() {
  static worker::SharedMemory memory;
  return memory;
}

PeerProcess& process_of(const std::string& name) {
  static std::map<std::string, std::unique_ptr<PeerProcess>> all;
  std::unique_ptr<PeerProcess>& process = all[name];
  if (!process) process = std::make_unique<PeerProcess>(name, shared());
  return *process;
}

// What a request asks for, in the words of a reason.
std::string asked_for(const Json& request) {
  if (request["do"] == "outputs") return "its results on a small case";
  return request["do"] == "warm" ? "its first calls" : "its times";
}

// An answer that says what happened instead.
Json answer_instead(const ImplementationFault& fault, const Json& request) {
  std::string reason = fault.what();
  if (fault.verdict == Verdict::kTimeout) reason += ", asked for " + asked_for(request);
  return {{"verdict", name_of(fault.verdict)}, {"reason", reason}};
}

using ByName = std::map<std::string, Json>;

// The answers of several peers, which work at the same time.
ByName answers_of(const ByName& requests, double limit_s, const Emit& emit) {
  ByName answers;
  const auto attempt = [&](const std::string& name, const auto& act) {
    try {
      act(process_of(name));
    } catch (const ImplementationFault& fault) {
      answers[name] = answer_instead(fault, requests.at(name));
    }
  };
  for (const auto& [name, request] : requests)
    attempt(name, [&](PeerProcess& process) { process.send(request); });
  for (const auto& [name, request] : requests) {
    if (answers.count(name) == 0)
      attempt(name, [&](PeerProcess& process) { answers[name] = process.receive(limit_s); });
    emit({{"answered", name}});
  }
  return answers;
}

Json answer_of(const std::string& name, const Json& request, double limit_s, const Emit& emit) {
  return answers_of({{name, request}}, limit_s, emit).at(name);
}

void emit_record(const Emit& emit, const char* kind, Json fields) {
  emit({{"record", kind}, {"fields", std::move(fields)}});
}

Json rule_json(const StoppingRule& rule) {
  return {{"warm_up", rule.warm_up},
          {"least", rule.least},
          {"most", rule.most},
          {"seconds", rule.seconds},
          {"agreement", rule.agreement}};
}

Json bases_json(Bases bases) {
  if (bases == Bases::kCold) return Json::array({"cold"});
  if (bases == Bases::kGraph) return Json::array({"graph"});
  return Json::array({"cold", "graph"});
}

// The allocator's peak beyond the inputs in the terms of ours: what is beyond the outputs, too, is
// workspace.
Json memory_of(const Case& c, const PeerCall& call, const Json& peak) {
  const TensorBytes tensors = tensor_bytes(c);
  Json fields = case_fields(c);
  for (const char* key :
       {"workspace_bytes", "planned_bytes", "arena_bytes", "device_bytes", "host_bytes"})
    fields[key] = nullptr;
  fields["tensors_bytes"] = tensors.total();
  if (!peak.is_number()) return fields;
  const size_t all = peak.get<size_t>(), made = call.made_bytes();
  const size_t extra = all > made ? all - made : 0;
  fields["workspace_bytes"] = fields["arena_bytes"] = extra;
  fields["planned_bytes"] = tensors.outputs + extra;
  return fields;
}

// Ceilings of this block, recorded under its name.
Ceilings block_ceilings(const Case& c, const Ceilings& of_run, const Emit& emit) {
  if (of_run.empty()) return {};
  const Ceilings found = measure_ceilings_of(c.dtype);
  for (const auto& [name, value] : found)
    emit_record(emit, "ceiling",
                {{"name", name},
                 {"value", value},
                 {"unit", is_bandwidth(name) ? "bytes_per_s" : "flop_per_s"},
                 {"block", case_id(c)}});
  return found;
}

// What peers answered before anything was timed.
struct Readied {
  ByName judged;  // of the small case; none where it was judged before
  std::map<std::string, Outputs> outputs;
  ByName warm;  // of the case itself: imported, compiled and run once
};

// The results of all peers on the small case. Each has a call of its own to write into.
void judge_all(const std::vector<std::string>& names, const Problem& problem, double limit_s,
               const Emit& emit, Readied* readied) {
  std::map<std::string, PeerCall> calls;
  size_t end = 0;
  ByName requests;
  for (const std::string& name : names) {
    const PeerCall& call = calls.emplace(name, PeerCall(problem.c, end)).first->second;
    end = call.end();
    call.put_inputs(problem, shared().grow(end));
    requests[name] = call.request("outputs");
  }
  readied->judged = answers_of(requests, limit_s, emit);
  for (const auto& [name, answer] : readied->judged)
    if (answer["verdict"] == "passed")
      readied->outputs[name] = calls.at(name).outputs(
          answer["outputs"].get<std::vector<std::string>>(), shared().data());
}

// All peers at once, which is most of the time: it goes into imports and compilers. One that runs
// out of its time is not asked again.
Readied ready_all(const std::vector<std::string>& names, const PeerCall& call,
                  const Accuracy* accuracy, double limit_s, const Emit& emit) {
  Readied readied;
  if (accuracy != nullptr) judge_all(names, accuracy->problem(), limit_s, emit, &readied);
  ByName requests;
  for (const std::string& name : names) {
    const auto before = readied.judged.find(name);
    if (before != readied.judged.end() && before->second["verdict"] == "timeout")
      readied.warm[name] = before->second;
    else
      requests[name] = call.request("warm");
  }
  try {
    if (!requests.empty()) call.put_timed_inputs(shared().grow(call.end()));
  } catch (const DeviceOutOfMemory& error) {
    for (const auto& [name, request] : requests)
      readied.warm[name] = {{"verdict", "oom"}, {"reason", error.what()}};
    return readied;
  }
  readied.warm.merge(answers_of(requests, limit_s, emit));
  return readied;
}

void measure_peer(const Case& c, const PeerCall& call, const Json& request, const Json& warm,
                  const Ceilings& of_run, const Emit& emit, const PeerOptions& options) {
  const Json answer =
      warm["verdict"] == "passed" ? answer_of(c.impl, request, options.limit_s, emit) : warm;
  if (answer["verdict"] != "passed") {
    const std::string verdict = answer["verdict"], reason = answer["reason"];
    emit_record(emit, "bench", bench_without_samples(c, main_basis(), verdict, reason));
    return;
  }
  const Ceilings ceilings = options.quick ? of_run : block_ceilings(c, of_run, emit);
  emit_record(emit, "memory", memory_of(c, call, answer["peak_bytes"]));
  for (const Json& t : answer["timings"]) {
    const Timing timing{c.impl, t["basis"], t["samples"], t["verdict"], t["reason"]};
    Json fields = timing.samples.empty() ? bench_without_samples(c, timing.basis.c_str(),
                                                                 timing.verdict, timing.reason)
                                         : bench_fields(c, timing, answer["sets"], ceilings);
    fields["executor"] = answer["executor"];
    fields["method"] = answer["method"];
    emit_record(emit, "bench", std::move(fields));
  }
}

Json accuracy_of_ours(const std::string& name, const Accuracy& accuracy) {
  try {
    Problem problem = accuracy.problem();
    problem.c.impl = name;
    problem.implementation = find_implementation(*problem.pass, name);
    return accuracy.compared(name, outputs_of_ours(problem), default_executor());
  } catch (const Stop& stop) {
    return accuracy.without(name, name_of(stop.verdict), stop.reason);
  }
}

Json accuracy_of_peer(const std::string& name, const Accuracy& accuracy, const Readied& readied) {
  const Json& answer = readied.judged.at(name);
  if (answer["verdict"] != "passed")
    return accuracy.without(name, answer["verdict"], answer["reason"]);
  return accuracy.compared(name, readied.outputs.at(name), answer["executor"]);
}

// Null when the case was judged before: cells that are the same when they are made small.
std::unique_ptr<Accuracy> accuracy_once(const Case& c) {
  static std::set<std::string> judged;
  if (!judged.insert(case_id(small_case(c))).second) return nullptr;
  return std::make_unique<Accuracy>(c);
}

}  // namespace

std::vector<std::string> known() {
  std::set<std::string> names;
  const char* more = std::getenv("TIGON_PEERS");
  std::vector<std::string> folders = split(more == nullptr ? "" : more, ':');
  folders.push_back(build_info().source_dir + "/harness/peers");
  for (const std::string& folder : folders) {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
      const std::string file = entry.path().filename();
      if (file.size() > std::string(kSuffix).size() && file.ends_with(kSuffix))
        names.insert(file.substr(0, file.size() - std::string(kSuffix).size()));
    }
  }
  return {names.begin(), names.end()};
}

std::vector<std::string> use(const std::string& names) {
  const std::vector<std::string> all = known(), wanted = split(names, ',');
  for (const std::string& name : wanted)
    if (std::find(all.begin(), all.end(), name) == all.end())
      throw UsageError(fmt::format("--peers: no peer '{}'; known: {}", name, fmt::join(all, ", ")));
  if (wanted.empty())
    throw UsageError(fmt::format("--peers: no name given; known: {}", fmt::join(all, ", ")));
  for (const std::string& name : wanted) {
    if (!used().insert(name).second) continue;
    for (const OpSpec& op : all_ops())
      for (const Pass& pass : op.passes)
        add_implementation(
            op.name, pass.name,
            {.name = name,
             .policies = op.policies,
             .workspace = {},
             .run = [](DType, const Bound&,
                       Stream) { return unsupported("a peer runs in a process of its own"); },
             .on_own_stream = true});
  }
  return {used().begin(), used().end()};
}

void start(const std::vector<std::string>& names, const std::vector<Cell>& cells) {
  std::vector<Json> requests;
  for (const Cell& cell : cells) requests.push_back(PeerCall(cell.c).request("warm"));
  for (const std::string& name : names) try {
      process_of(name).prepare(requests);
    } catch (const ImplementationFault&) {  // comes again with its first request
    }
}

void wait(const std::vector<std::string>& names) {
  for (const std::string& name : names) try {
      process_of(name).wait(PeerOptions().limit_s);
    } catch (const ImplementationFault&) {  // the next request starts another process
    }
}

bool is_peer(const std::string& implementation) { return used().count(implementation) != 0; }

void measure_cell(const Cell& cell, const Ceilings& ceilings, const StoppingRule& rule,
                  const Emit& emit, const PeerOptions& options) {
  static size_t cells = 0;
  const bool ours_first = cells++ % 2 == 0;  // who comes later finds a warmer chip
  Cell ours = cell;
  std::erase_if(ours.implementations, is_peer);
  std::vector<std::string> theirs = cell.implementations;
  std::erase_if(theirs, [](const std::string& name) { return !is_peer(name); });
  const PeerCall call(cell.c);
  Json request = call.request("measure");
  request["rule"] = rule_json(rule);
  request["bases"] = bases_json(options.bases);
  request["l2_bytes"] = device_info().l2_bytes;
  const std::unique_ptr<Accuracy> accuracy = options.quick ? nullptr : accuracy_once(cell.c);
  const Readied readied = ready_all(theirs, call, accuracy.get(), options.limit_s, emit);
  const auto measure_ours = [&] {
    if (ours.implementations.empty()) return;
    ours.c.impl = ours.implementations.front();
    tigon::measure_cell(ours, ceilings, rule, emit, options.bases);
  };
  if (ours_first) measure_ours();
  for (const std::string& name : theirs) {
    Case c = cell.c;
    c.impl = name;
    measure_peer(c, call, request, readied.warm.at(name), ceilings, emit, options);
  }
  if (!ours_first) measure_ours();
  if (!accuracy) return;
  for (const std::string& name : ours.implementations)
    emit_record(emit, "accuracy", accuracy_of_ours(name, *accuracy));
  for (const std::string& name : theirs)
    emit_record(emit, "accuracy", accuracy_of_peer(name, *accuracy, readied));
}

}  // namespace tigon::peers
