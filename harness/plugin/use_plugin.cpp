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
#include "harness/plugin/tigon_plugin.h"
#include "harness/run/check.h"
#include "harness/spec/registry.h"

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

template <class Range, class Name>
std::string known(const Range& range, Name name) {
  std::vector<std::string> names;
  for (const auto& x : range) names.emplace_back(name(x));
  return fmt::format("{}", fmt::join(names, ", "));
}

void add_name(std::vector<std::string>* names, const std::string& name) {
  if (std::find(names->begin(), names->end(), name) == names->end()) names->push_back(name);
}

// A kernel's description with the contract it belongs to.
class Adder {
 public:
  Adder(const std::string& path, std::shared_ptr<PluginProcess> process)
      : path_(path), process_(std::move(process)) {}

  void add(const Json& kernel, size_t index) {
    text_ = fmt::format("kernel {} ({} {} {})", index, kernel.at("op").get<std::string>(),
                        kernel.at("pass").get<std::string>(), kernel.at("name").get<std::string>());
    const OpSpec& op = op_of(kernel.at("op"));
    const Pass& pass = pass_of(op, kernel.at("pass"));
    require_device(kernel.at("device"));
    Implementation added;
    added.name = kPrefix + kernel.at("name").get<std::string>();
    added.on_own_stream = true;
    if (find_implementation(pass, added.name) != nullptr) fail("the library has two of that name");
    for (const Json& code : kernel.at("dtypes")) added.policies.push_back(policy_of(op, code));
    // What a chain of primitives stores on the way, as its author declares it; only programs may.
    if (is_program(path_)) added.element_roundings = kernel.value("roundings", 0);
    const KernelOf of = {
        index, &op, &pass, kernel.at("device"), kernel.at("workspace"), kernel.at("prepare")};
    const auto proxy = std::make_shared<Proxy>(process_, of);
    added.run = [proxy](DType t, const Bound& b, Stream) { return proxy->run(t, b); };
    if (of.has_workspace)
      added.workspace = [proxy](DType t, const Bound& b) { return proxy->workspace(t, b); };
    if (of.has_prepare)
      added.prepare = [proxy](DType t, const Bound& b) { return proxy->prepare(t, b); };
    proxies()[{op.name, pass.name, added.name}] = proxy;
    add_implementation(op.name, pass.name, std::move(added));
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw UsageError(fmt::format("--impl-from {}: {}: {}", path_, text_, what));
  }

  const OpSpec& op_of(const std::string& name) const {
    const OpSpec* op = find_op(name);
    if (op == nullptr)
      fail(fmt::format("no op '{}'; known: {}", name,
                       known(all_ops(), [](const OpSpec& o) { return o.name; })));
    return *op;
  }

  const Pass& pass_of(const OpSpec& op, const std::string& name) const {
    const Pass* pass = find_pass(op, name);
    if (pass == nullptr)
      fail(fmt::format("{} has no pass '{}'; known: {}", op.name, name,
                       known(op.passes, [](const Pass& p) { return p.name; })));
    return *pass;
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
    fail(fmt::format("{} has no dtype of code {} ({}); known: {}", op.name, code,
                     name_of(static_cast<DType>(code)),
                     known(op.policies, [](DType t) { return name_of(t); })));
  }

  const std::string& path_;
  std::shared_ptr<PluginProcess> process_;
  std::string text_;
};

}  // namespace

namespace {

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
  const auto join = [](std::string* to, const std::string& text) {
    *to += to->empty() || text.empty() ? text : "," + text;
  };
  join(&used->path, file);
  join(&used->name, description.at("name"));
  join(&used->version, description.at("version"));
  used->sandbox = description.at("sandbox");
  Adder adder(path, process);
  size_t index = 0;
  for (const Json& kernel : description.at("kernels")) {
    adder.add(kernel, index++);
    add_name(&used->ops, kernel.at("op"));
    add_name(&used->implementations, kPrefix + kernel.at("name").get<std::string>());
  }
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
