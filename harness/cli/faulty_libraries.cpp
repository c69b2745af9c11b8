// SPDX-License-Identifier: Apache-2.0
// Writes the sources, has Python compile them as it does for `tigon try`, and loads the right ones.
#include "harness/cli/faulty_libraries.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "harness/cli/python.h"
#include "harness/mutants/mutate.h"
#include "harness/mutants/user_faults.h"
#include "harness/plugin/use_plugin.h"
#include "harness/run/check.h"

namespace tigon::cli {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& folder, const std::string& name, const std::string& text) {
  fs::create_directories(folder);
  if (!(std::ofstream(folder / name, std::ios::binary) << text).flush())
    throw std::runtime_error((folder / name).string() + ": cannot be written");
}

std::string requested_dtypes(const MutantRequest& request) {
  std::vector<std::string> names;
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16})
    if (request.dtypes.empty() || std::count(request.dtypes.begin(), request.dtypes.end(), dtype))
      names.push_back(name_of(dtype));
  return fmt::format("{}", fmt::join(names, ","));
}

// Every op and pass of a fault must be one of the source's.
void check_targets(const std::string& source, const MutantRequest& request) {
  const auto& names = request.libraries->implementations.at(default_executor());
  for (const Mutant& m : request.faults)
    for (const MutantTarget& target : m.targets)
      for (const std::string& pass : target.passes) {
        const Pass& wanted = *find_pass(*find_op(target.op), pass);
        if (std::any_of(names.begin(), names.end(), [&](const std::string& name) {
              return find_implementation(wanted, name) != nullptr;
            }))
          continue;
        throw UsageError(fmt::format("{}:{}: {}: {} has no {} {}", m.source, m.line, m.name, source,
                                     target.op, pass));
      }
}

}  // namespace

int build_faulty_libraries(const std::string& source, MutantRequest* request) {
  std::set<const Mutant*> faults;
  for (const MutantResult& r : select_mutants(*request)) faults.insert(r.mutant);
  if (faults.empty()) return kExitOk;
  const fs::path build = fs::read_symlink("/proc/self/exe").parent_path().parent_path();
  const std::string name = fs::path(source).filename(), text = source_text(source);
  MutantLibraries libraries{.folder = build / "own_faults" / "in" / name};
  fs::remove_all(libraries.folder);
  std::vector<std::string> words = {"tigon_try.faulty", build, source, requested_dtypes(*request)};
  const auto add = [&](const std::string& fault, const std::string& changed) {
    words.push_back(libraries.folder_of(fault));
    write(words.back(), name, changed);
  };
  add("", text);
  for (const Mutant* m : faults) add(m->name, with_one_fault(text, *m));
  const int code = run_python(words, {"harness/try", "harness/trees", "reports"}, "python3");
  if (code != kExitOk) return code;
  for (const char* executor : {"fast", "checked", "cuda"})
    if (const fs::path library = libraries.library_of("", executor); fs::exists(library))
      libraries.implementations[executor] = plugin::use_plugin(library).implementations;
  request->libraries = std::move(libraries);
  check_targets(source, *request);
  return kExitOk;
}

}  // namespace tigon::cli
