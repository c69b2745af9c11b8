// SPDX-License-Identifier: Apache-2.0
// The process of one peer.
#include "harness/peers/peer_process.h"

#include <fmt/format.h>

#include <cstdlib>
#include <utility>

#include "harness/record/build_info.h"
#include "harness/run/judging/implementation_fault.h"

namespace tigon::peers {
namespace {

// The variable, or `otherwise` where it has no text.
std::string variable_or(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

// Our packages in front of what PYTHONPATH has.
std::string python_path() {
  const std::string harness = build_info().source_dir + "/harness";
  const std::string more = variable_or("PYTHONPATH", "");
  return fmt::format("PYTHONPATH={0}/peers:{0}/worker{1}{2}", harness, more.empty() ? "" : ":",
                     more);
}

// `python3 -m tigon_peers` with these arguments.
worker::Start python_with(const std::vector<std::string>& arguments) {
  worker::Start start{
      .words = {peer_interpreter(), "-m", "tigon_peers"},
      .environment = worker::environment_with({python_path(), "PYTHONDONTWRITEBYTECODE=1"}),
      .output = variable_or("TIGON_PEER_LOG", "/dev/null")};
  start.words.insert(start.words.end(), arguments.begin(), arguments.end());
  return start;
}

constexpr double kLookS = 30;  // to find packages, which imports nothing

}  // namespace

std::string python_interpreter() { return variable_or("TIGON_PYTHON", "python3"); }

std::string peer_interpreter() {
  return variable_or("TIGON_PEER_PYTHON", python_interpreter().c_str());
}

std::vector<std::string> installed(const std::vector<std::string>& names) {
  worker::Process process;
  try {
    process.start(python_with({}));
  } catch (const worker::CannotStart&) {
    return {};
  }
  process.send(Json(names).dump());
  const worker::Heard heard = process.hear({.silence_s = kLookS});
  if (heard.kind != worker::Heard::kAnswer) return {};
  return Json::parse(heard.text).get<std::vector<std::string>>();
}

void PeerProcess::start() {
  if (!process_.is_gone()) return;
  try {
    worker::Start start = python_with({name_});
    start.memory = &memory_;
    process_.start(start);
  } catch (const worker::CannotStart& error) {
    throw ImplementationFault(Verdict::kUnsupported,
                              fmt::format("{}; TIGON_PEER_PYTHON chooses another", error.what()));
  }
}

void PeerProcess::prepare(const std::vector<Json>& requests) {
  send({{"do", "prepare"}, {"requests", requests}});
  prepares_ = true;
}

void PeerProcess::wait(double limit_s) {
  if (std::exchange(prepares_, false)) receive(limit_s);
}

void PeerProcess::send(Json request) {
  start();
  request["bytes"] = memory_.bytes();
  process_.send(without_nonfinite(request).dump());
}

Json PeerProcess::receive(double limit_s) {
  const worker::Heard heard = process_.hear({.silence_s = limit_s});
  if (heard.kind != worker::Heard::kAnswer)
    throw ImplementationFault(
        heard.kind == worker::Heard::kTimeout ? Verdict::kTimeout : Verdict::kCrashed, heard.text);
  return Json::parse(heard.text);
}

}  // namespace tigon::peers
