// SPDX-License-Identifier: Apache-2.0
// One run of the program.
#include "harness/cli/session.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>

#include "harness/cli/text/terminal.h"
#include "harness/measure/device_facts.h"
#include "harness/record/environment.h"
#include "harness/record/run_id.h"
#include "harness/run/check.h"

namespace tigon::cli {
namespace {

std::filesystem::path records_path(const SessionOptions& options, const std::string& run_id) {
  if (options.resumed) return options.resumed->path();
  if (!options.json.empty()) return options.json;
  return std::filesystem::path(options.out.empty() ? "results/" + run_id : options.out) /
         "records.jsonl";
}

std::filesystem::path free_records_path(const SessionOptions& options, const std::string& run_id) {
  require_no_run(options);
  return records_path(options, run_id);
}

std::string device_name(const Json& device) {
  if (!device.is_object()) return "";
  const auto text = [&](const char* key) {
    return device.contains(key) && device[key].is_string() ? device[key].get<std::string>() : "";
  };
  return text("kind") + " " + text("name") + " " + text("uuid");
}

Json to_json(const Shard& shard) {
  Json fields = {{"index", shard.index}, {"count", shard.count}, {"source", shard.source}};
  if (!shard.group.empty()) fields["group"] = shard.group;
  return fields;
}

// Where the records are, for a person.
std::string shown(const std::filesystem::path& records) {
  return records.string().starts_with("/proc/self/fd/")
             ? "records: standard output"
             : fmt::format("results: {}", records.string());
}

}  // namespace

void require_no_run(const SessionOptions& options) {
  if (options.resumed || (options.json.empty() && options.out.empty())) return;
  const std::filesystem::path path = records_path(options, "");
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path, ignored) &&
      std::filesystem::file_size(path, ignored) > 0)
    throw UsageError(fmt::format(
        "{} holds another run, which is kept; choose another folder or file, or continue it with "
        "--resume",
        path.string()));
}

Session::Session(SessionOptions options)
    : options_(std::move(options)),
      run_id_(options_.resumed ? options_.resumed->run_id() : new_run_id()),
      writer_(free_records_path(options_, run_id_), run_id_,
              options_.resumed ? options_.resumed->bytes() : 0) {
  const Json device = device_block();
  if (!options_.resumed) {
    Json run = run_fields(options_.command, options_.seed, device, options_.tags);
    if (options_.shard.count > 1) run["shard"] = to_json(options_.shard);
    record("run", run);
    return;
  }
  const Json& run = options_.resumed->run();
  const std::string then = run.contains("device") ? device_name(run["device"]) : "";
  if (then != device_name(device))
    throw UsageError(fmt::format("--resume: the run was made on {}, not on {}; start a new run",
                                 then, device_name(device)));
  if (options_.resumed->damaged_lines() > 0)
    print_error(fmt::format("{}: {} damaged lines are left out; what they held runs again",
                            writer_.path().string(), options_.resumed->damaged_lines()));
  record("resume",
         {{"command", options_.command}, {"damaged_lines", options_.resumed->damaged_lines()}});
}

std::filesystem::path Session::folder() const {
  const std::filesystem::path parent = writer_.path().parent_path();
  return parent.empty() ? "." : parent;
}

void Session::finish(int exit_code) {
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start_;
  record("end", {{"passed", tally_.passed()},
                 {"failed", tally_.failed()},
                 {"skipped", tally_.skipped()},
                 {"exit_code", exit_code},
                 {"seconds_s", seconds.count()},
                 {"interrupted", exit_code == kExitInterrupted}});
  if (!options_.junit.empty()) write_junit(options_.junit, junit_);
  writer_.close();
}

int combined(int a, int b) {
  if (a == kExitInterrupted || b == kExitInterrupted) return kExitInterrupted;
  if (a == kExitOk || b == kExitOk) return std::max(a, b);
  return std::min(a, b);
}

namespace {

// The body's exit code; what it throws is one line on stderr, and the run still gets its end.
int guarded(const std::function<int(Session&)>& body, Session& session) {
  try {
    return body(session);
  } catch (const RecordError&) {
    throw;
  } catch (const UsageError& error) {
    print_error(error.what());
    return kExitUsage;
  } catch (const std::exception& error) {
    print_error(error.what());
    return kExitInfrastructure;
  }
}

}  // namespace

int run_session(SessionOptions options, const std::function<int(Session&)>& body,
                const std::function<int(Session&)>& after) {
  // A reader that goes away (tigon check | head) and a file that may not grow are errors of a write
  // and not the end of the program.
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
  if (options.shard.count > 1)
    fmt::print("shard {}/{} ({}); ./tigon merge puts the parts together\n", options.shard.index,
               options.shard.count, options.shard.source);
  Session session(std::move(options));
  int code = kExitOk;
  try {
    code = guarded(body, session);
    if (interrupted()) code = kExitInterrupted;
    session.finish(code);
    if (after) code = combined(code, after(session));
  } catch (const RecordError& error) {
    print_error(error.what());
    code = kExitInfrastructure;
  }
  if (code == kExitInterrupted)
    fmt::print("interrupted; what was done is kept, go on with --resume {}\n",
               session.folder().string());
  fmt::print("{}\n{}\n", shown(session.records()), session.tally().line());
  return code;
}

}  // namespace tigon::cli
