// SPDX-License-Identifier: Apache-2.0
// The judge's side of tigon-plugin-host.
#include "harness/plugin/process.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <set>

#include "harness/plugin/process_watch.h"
#include "harness/plugin/remote_call.h"
#include "harness/run/check.h"

namespace tigon::plugin {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kOverheadSamples = 101;

// Every host process of ours that is alive. Never destroyed: the registry's implementations hold
// processes and go later than what was made after it.
std::set<pid_t>& alive() {
  static auto* const pids = new std::set<pid_t>;
  return *pids;
}

std::string host_program() {
  const auto self = std::filesystem::read_symlink("/proc/self/exe");
  const std::filesystem::path program = self.parent_path() / "tigon-plugin-host";
  if (access(program.c_str(), X_OK) != 0)
    throw std::runtime_error(
        fmt::format("no program {}: build the target tigon", program.string()));
  return program;
}

// Without our own variables; a pool of threads must not spin after its work.
std::vector<std::string> environment() {
  std::vector<std::string> all = worker::environment_with({"OMP_WAIT_POLICY=passive"});
  std::erase_if(all, [](const std::string& v) { return v.starts_with("TIGON_"); });
  return all;
}

// What a library is asked for: {"rms_norm.forward": [TIGON_F32, ...], ...}.
Json wanted_ops() {
  Json wanted = Json::object();
  for (const OpSpec& op : all_ops())
    for (const Pass& pass : op.passes) {
      std::vector<int> dtypes;
      for (const DType policy : op.policies) dtypes.push_back(static_cast<int>(policy));
      wanted[name_of(op, pass)] = dtypes;
    }
  return wanted;
}

}  // namespace

void PluginProcess::start() {
  if (process_.is_started()) return;
  prctl(PR_SET_CHILD_SUBREAPER, 1);  // orphans of the library become ours, so that we see them
  if (!memory_) memory_.emplace();
  // In our group: what kills us together with it kills what the library has started, too.
  process_.start({.words = {host_program(), "serve"},
                  .environment = environment(),
                  .memory = &*memory_,
                  .has_own_group = false});
  started_ = process_.pid();
  alive().insert(started_);
  if (wants_overhead_) overhead_ = measure_overhead();
  load();
}

double PluginProcess::measure_overhead() {
  std::vector<double> samples(kOverheadSamples);
  for (double& s : samples) ask_timed({{"do", "empty"}}, &s);
  // On the host a wake-up on a busy machine may take longer than a call: the least is what every
  // call pays, and no honest call returns sooner.
  const size_t which = default_executor() == "cuda" ? kOverheadSamples / 2 : 0;
  std::nth_element(samples.begin(), samples.begin() + which, samples.end());
  return samples[which];
}

void PluginProcess::load() {
  Json reply = ask({{"do", "load"}, {"path", library_}, {"ops", wanted_ops()}});
  if (reply.contains("bad_library")) {
    stop();
    throw UsageError(
        fmt::format("--impl-from {}: {}", library_, reply["bad_library"].get<std::string>()));
  }
  description_ = std::move(reply);
}

const Json& PluginProcess::description() {
  start();
  return description_;
}

char* PluginProcess::memory(size_t bytes) {
  start();
  return memory_->grow(bytes);
}

Json PluginProcess::ask(Json request) {
  static const std::set<std::string> kNoStart = {"load", "empty"};
  const std::string what = request.at("do");
  if (kNoStart.count(what) == 0) start();
  request["bytes"] = memory_->bytes();
  doing_ = what == "load" ? "while it was loaded" : "in the call";
  process_.send(request.dump());
  return receive();
}

Json PluginProcess::ask_timed(Json request, double* seconds) {
  const Json armed = ask(std::move(request));
  if (!armed.contains("armed")) return armed;
  // On a GPU our clock must not include a wake-up; on the host the library may want every core.
  const bool spins = default_executor() == "cuda";
  const auto begin = Clock::now();
  process_.send_byte(kGo);
  const worker::Heard done = process_.hear_byte({.silence_s = limit_s_, .spins = spins});
  *seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  if (answered(done).front() != kDone) fail(Verdict::kCrashed, "answered before the call's end");
  return receive();
}

Json PluginProcess::receive() {
  const auto heard = Json::try_parse(answered(process_.hear({.silence_s = limit_s_})));
  if (!heard || !heard->is_object()) fail(Verdict::kCrashed, "sent what is no answer");
  const Json& reply = *heard;
  if (reply.contains("fault"))
    throw ImplementationFault(Verdict::kRuntimeError,
                              fmt::format("the library {} {}{}", reply["fault"].get<std::string>(),
                                          doing_, process_.last_words()));
  return reply;
}

// Its answer; throws ImplementationFault with what came instead.
std::string PluginProcess::answered(const worker::Heard& heard) {
  if (heard.kind == worker::Heard::kAnswer) return heard.text;
  fail(heard.kind == worker::Heard::kTimeout ? Verdict::kTimeout : Verdict::kCrashed,
       fmt::format("{} {}{}", heard.text, doing_, heard.last_words));
}

void PluginProcess::fail(Verdict verdict, const std::string& text) {
  stop();
  throw ImplementationFault(verdict, "the library " + text);
}

std::vector<pid_t> PluginProcess::strays() const {
  return started_by(pid(), {alive().begin(), alive().end()});
}

void PluginProcess::stop() {
  if (!memory_) return;  // it was not started
  for (pid_t stray : strays()) kill(stray, SIGKILL);
  process_.stop();
  alive().erase(started_);
  memory_.reset();
}

}  // namespace tigon::plugin
