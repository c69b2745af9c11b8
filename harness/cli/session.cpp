// One run of the program.
#include "harness/cli/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "harness/measure/device_facts.h"
#include "harness/record/environment.h"
#include "harness/record/run_id.h"
#include "harness/run/check.h"
#include "kernels/device/runtime.h"

namespace tigon::cli {
namespace {

std::filesystem::path records_path(const SessionOptions& options, const std::string& run_id) {
  if (!options.json.empty()) return options.json;
  return std::filesystem::path(options.out.empty() ? "results/" + run_id : options.out) /
         "records.jsonl";
}

}  // namespace

Session::Session(SessionOptions options)
    : options_(std::move(options)),
      run_id_(new_run_id()),
      writer_(records_path(options_, run_id_), run_id_) {
  record("run", run_fields(options_.command, options_.seed, device_block(), options_.tags));
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

int run_session(SessionOptions options, const std::function<int(Session&)>& body,
                const std::function<int(Session&)>& after) {
  Session session(std::move(options));
  int code = kExitOk;
  try {
    try {
      code = body(session);
    } catch (const DeviceError& error) {
      fmt::print(stderr, "tigon: {}\n", error.what());
      code = kExitInfrastructure;
    }
    if (interrupted()) code = kExitInterrupted;
    session.finish(code);
    if (after) code = combined(code, after(session));
  } catch (const RecordError& error) {
    fmt::print(stderr, "tigon: {}\n", error.what());
    code = kExitInfrastructure;
  }
  if (code == kExitInterrupted) fmt::print("interrupted; what was done is kept\n");
  fmt::print("results: {}\n{}\n", session.records().string(), session.tally().line());
  return code;
}

}  // namespace tigon::cli
