// SPDX-License-Identifier: Apache-2.0
// The process of one peer.
#include "harness/peers/peer_process.h"

#include <fmt/format.h>

#include <cstdlib>

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

}  // namespace

std::string python_interpreter() { return variable_or("TIGON_PYTHON", "python3"); }

void PeerProcess::send(const Json& request) {
  if (process_.is_gone()) try {
      process_.start(
          {.words = {python_interpreter(), "-m", "tigon_peers", name_},
           .environment = worker::environment_with({python_path(), "PYTHONDONTWRITEBYTECODE=1"}),
           .output = variable_or("TIGON_PEER_LOG", "/dev/null")});
    } catch (const worker::CannotStart& error) {
      throw ImplementationFault(Verdict::kUnsupported,
                                fmt::format("{}; TIGON_PYTHON chooses another", error.what()));
    }
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
