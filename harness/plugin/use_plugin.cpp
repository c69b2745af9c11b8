// SPDX-License-Identifier: Apache-2.0
// --impl-from: a library's kernels become implementations.
#include "harness/plugin/use_plugin.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <tuple>

#include "harness/plugin/proxy.h"
#include "harness/plugin/sandbox.h"
#include "harness/run/check.h"
#include "harness/spec/registry.h"
#include "kernels/call/tigon.h"

namespace tigon::plugin {

namespace {

// A GPU's driver is slow when all start at once, and so are imports of torch on a busy machine.
constexpr double kLoadSeconds = 10, kLoadProgramSeconds = 120;

using Key = std::tuple<std::string, std::string, std::string>;
std::map<Key, std::shared_ptr<Proxy>>& proxies() {
  static std::map<Key, std::shared_ptr<Proxy>> all;
  return all;
}

std::string existing_file(const std::string& path) {
  std::error_code error;
  const auto file = std::filesystem::canonical(path, error);
  if (error) throw UsageError(fmt::format("--impl-from {}: no such file", path));
  if (!std::filesystem::is_regular_file(file))
    throw UsageError(fmt::format("--impl-from {}: not a file; give a shared library", path));
  return file;
}

void add_name(std::vector<std::string>* names, const std::string& name) {
  if (std::find(names->begin(), names->end(), name) == names->end()) names->push_back(name);
}

// What one library has, as implementations of the contracts.
class Adder {
 public:
  Adder(const std::string& path, std::shared_ptr<PluginProcess> process)
      : path_(path), process_(std::move(process)) {}

  // An op of the library; `index`: which of those it described.
  void take(const Json& op, size_t index) {
    const std::string name = op.at("name"), implementation = op.at("implementation");
    text_ = fmt::format("{} ({})", name, implementation);
    require_device(op.at("device"));
    Found& found = found_of(name, kPrefix + implementation);
    const DType policy = policy_of(*found.kernel.op, op.at("dtype"));
    found.kernel.ops[policy] = index;
    found.added.policies.push_back(policy);
    if (is_program(path_)) take_facts(op, &found);
  }

  void add_all(UsedPlugin* used) {
    for (Found& found : found_) {
      const std::string op = found.kernel.op->name, pass = found.kernel.pass->name;
      const auto proxy = std::make_shared<Proxy>(process_, found.kernel);
      found.added.on_own_stream = true;
      found.added.run = [proxy](DType t, const Bound& b, Stream) { return proxy->run(t, b); };
      found.added.workspace = [proxy](DType t, const Bound& b) { return proxy->workspace(t, b); };
      found.added.prepare = [proxy](DType t, const Bound& b) { return proxy->prepare(t, b); };
      proxies()[{op, pass, found.added.name}] = proxy;
      add_name(&used->ops, op);
      add_name(&used->implementations, found.added.name);
      add_implementation(op, pass, std::move(found.added));
    }
  }

 private:
  struct Found {
    KernelOf kernel;
    Implementation added;
  };

  // What only a program may declare: what a chain of primitives stores on the way, and that its
  // framework makes its gradients.
  static void take_facts(const Json& op, Found* found) {
    found->added.element_roundings = op.value("roundings", 0);
    found->added.is_differentiated = op.value("differentiated", false);
    if (found->added.is_differentiated)
      found->kernel.before = find_pass(*found->kernel.op, "forward");
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw UsageError(fmt::format("--impl-from {}: {}: {}", path_, text_, what));
  }

  Found& found_of(const std::string& name, const std::string& implementation) {
    const size_t dot = std::min(name.find('.'), name.size() - 1);
    const OpSpec* op = find_op(name.substr(0, dot));
    const Pass* pass = op != nullptr ? find_pass(*op, name.substr(dot + 1)) : nullptr;
    if (pass == nullptr) fail("this tigon has no op of that name");
    for (Found& f : found_)
      if (f.kernel.pass == pass && f.added.name == implementation) return f;
    if (find_implementation(*pass, implementation) != nullptr)
      fail("another library has an implementation of that name; give this one another");
    Found& found = found_.emplace_back();
    found.kernel.op = op;
    found.kernel.pass = pass;
    found.added.name = implementation;
    return found;
  }

  void require_device(int device) const {
    const bool here = (device == TIGON_DEVICE_CUDA) == (default_executor() == "cuda");
    if (here) return;
    fail(device == TIGON_DEVICE_CUDA
             ? "it is for a GPU (TIGON_DEVICE_CUDA) and this is a host build; use ./tigon "
               "--device cuda"
             : "it is for the host (TIGON_DEVICE_HOST) and this is a CUDA build; use "
               "./tigon --device host");
  }

  DType policy_of(const OpSpec& op, int code) const {
    for (const DType t : op.policies)
      if (static_cast<int>(t) == code) return t;
    fail(fmt::format("{} has no dtype of code {}", op.name, code));
  }

  const std::string& path_;
  std::shared_ptr<PluginProcess> process_;
  std::vector<Found> found_;
  std::string text_;
};

void add_library(const std::string& path, UsedPlugin* used) {
  const std::string file = existing_file(path);
  const auto process = std::make_shared<PluginProcess>(file);
  process->set_limit(is_program(file) ? kLoadProgramSeconds : kLoadSeconds);
  Json description;
  try {
    description = process->description();
  } catch (const ImplementationFault& fault) {
    throw std::runtime_error(fmt::format("--impl-from {}: {}", path, fault.what()));
  }
  process->set_limit(0);  // whoever asks for cases has a limit for each
  used->path += (used->path.empty() ? "" : ",") + file;
  used->sandbox = description.at("sandbox");
  Adder adder(path, process);
  size_t index = 0;
  for (const Json& op : description.at("ops")) adder.take(op, index++);
  adder.add_all(used);
}

}  // namespace

UsedPlugin use_plugin(const std::string& paths) {
  UsedPlugin used;
  hide_process();
  for (size_t begin = 0; begin <= paths.size();) {
    const size_t end = std::min(paths.find(',', begin), paths.size());
    add_library(paths.substr(begin, end - begin), &used);
    begin = end + 1;
  }
  return used;
}

void use_plugin_of_child(int argc, char** argv) {
  for (int i = 2; i + 1 < argc; ++i)
    if (std::strcmp(argv[i], "--impl-from") == 0) use_plugin(argv[i + 1]);
}

std::shared_ptr<Proxy> proxy_of(const std::string& op, const std::string& pass,
                                const std::string& implementation) {
  const auto found = proxies().find({op, pass, implementation});
  return found == proxies().end() ? nullptr : found->second;
}

}  // namespace tigon::plugin
