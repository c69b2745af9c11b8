// SPDX-License-Identifier: Apache-2.0
// tigon-plugin-host: the process in which a plug-in library runs. tigon starts it; it has a socket
// to the judge, the shared memory of the tensors, and nothing else: no oracle, no contract, no
// result file.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <memory>
#include <string>

#include "harness/plugin/device_side.h"
#include "harness/plugin/library.h"
#include "harness/plugin/protocol.h"
#include "harness/plugin/sandbox.h"
#include "harness/worker/channel.h"
#include "harness/worker/shared_call.h"

namespace tigon::plugin {
namespace {

#ifdef TIGON_CUDA
constexpr bool kOnGpu = true;
#else
constexpr bool kOnGpu = false;
#endif

// What a library throws goes through C, where nothing may throw.
template <class F>
Json guarded(const F& f) {
  try {
    return f();
  } catch (const BadLibrary& e) {
    return {{"bad_library", e.what()}};
  } catch (const std::exception& e) {
    return {{"fault", fmt::format("threw an exception: {}", e.what())}};
  } catch (...) {
    return {{"fault", "threw something that is no std::exception"}};
  }
}

Json json_of(const tigon_status& status) {
  return {{"code", status.code}, {"message", status.message != nullptr ? status.message : ""}};
}

class Host {
 public:
  Host() : device_(worker::kMemoryDescriptor) {}

  // Answers requests until the judge closes the socket.
  void serve() {
    while (const auto line = channel_.receive())
      if (!channel_.send(answer(Json::parse(*line)).dump())) return;
  }

 private:
  Json answer(const Json& request) {
    const std::string what = request.at("do");
    if (what == "load") return load(request);
    if (what == "put" || what == "get" || what == "settle") return move(what, request);
    if (what == "empty") return timed([&] { return Json::object(); });
    return call(what, request);
  }

  Json load(const Json& request) {
    const std::string path = request.at("path");
    if (is_program(path)) return become(path);
    const std::string sandbox = enter_sandbox();
    Json reply = guarded([&]() -> Json {
      library_ = std::make_unique<Library>(path, request.at("ops"));
      return {{"ops", library_->description()}};
    });
    reply["sandbox"] = sandbox;
    return reply;
  }

  // A program in place of a library, e.g. of kernels in Python: it answers from here on, in the
  // same sandbox. It may write to a folder "cache" beside it, for what it compiles.
  static Json become(const std::string& path) {
    const std::string sandbox = enter_sandbox(std::filesystem::path(path).parent_path() / "cache");
    execl(path.c_str(), path.c_str(), sandbox.c_str(), nullptr);
    return {{"bad_library", fmt::format("cannot be started: {}", std::strerror(errno))}};
  }

  Json move(const std::string& what, const Json& request) {
    return guarded([&]() -> Json {
      device_.map(request.at("bytes"));
      if (what == "put") {
        device_.put();
      } else {
        device_.synchronize();
        device_.get();
      }
      return Json::object();
    });
  }

  Json call(const std::string& what, const Json& request) {
    return guarded([&]() -> Json {
      device_.map(request.at("bytes"));
      const worker::MappedCall mapped(worker::shared_call_of(request.at("call")), device_.mirror());
      const tigon_call* call = mapped.get();
      const tigon_op* op = &library_->op(request.at("op"));
      if (what == "workspace")
        return {{"bytes", op->workspace != nullptr ? op->workspace(op, call) : 0}};
      if (what == "prepare") {
        const Json reply = json_of(op->prepare != nullptr ? op->prepare(op, call) : tigon_status{});
        device_.synchronize();
        return reply;
      }
      const auto run = [&] { return json_of(op->run(op, call, device_.stream())); };
      if (what == "timed") return timed(run);
      device_.begin_ordered();
      const Json reply = run();
      device_.end_ordered();
      return reply;
    });
  }

  // The judge's clock runs from its kGo to our kDone, so everything is read and ready before.
  template <class F>
  Json timed(const F& f) {
    device_.flush_caches();
    channel_.send(Json{{"armed", true}}.dump());
    if (!channel_.receive_byte(kGo, kOnGpu)) _exit(0);
    Json reply = guarded([&] {
      Json result = f();
      device_.synchronize();
      return result;
    });
    channel_.send_byte(kDone);
    return reply;
  }

  worker::Channel channel_;
  DeviceSide device_;
  std::unique_ptr<Library> library_;
};

}  // namespace
}  // namespace tigon::plugin

int main(int argc, char** argv) {
  if (argc != 2 || std::string(argv[1]) != "serve") {
    std::fprintf(stderr,
                 "tigon-plugin-host: started by ./tigon check --impl-from, not by itself\n");
    return 2;
  }
  tigon::worker::begin_worker(!tigon::plugin::kOnGpu);
  try {
    tigon::plugin::Host().serve();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
