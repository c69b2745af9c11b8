// SPDX-License-Identifier: Apache-2.0
// Which kernels were launched, and which there are.
#include "kernels/simt/launched.h"

#include <map>
#include <mutex>
#include <set>

#include "kernels/simt/simt.h"
#include "kernels/simt/symbolize.h"

namespace tigon::simt {

namespace {

std::mutex launched_mutex;  // guards `launched`
std::set<const void*> launched;

}  // namespace

void note_launch(const void* kernel) {
  const std::lock_guard lock(launched_mutex);
  launched.insert(kernel);
}

std::vector<std::string> take_launched() {
  std::set<const void*> taken;
  {
    const std::lock_guard lock(launched_mutex);
    taken.swap(launched);
  }
  std::set<std::string> names;
  for (const void* kernel : taken) names.insert(kernel_name(kernel));
  return {names.begin(), names.end()};
}

std::vector<Kernel> kernels() {
  const std::vector<Function> all = functions("_kernel");
  std::vector<const void*> inside;  // as of a return address
  for (const Function& f : all) inside.push_back(static_cast<const char*>(f.address) + 1);
  resolve(inside);
  std::map<std::string, std::string> files;
  for (size_t i = 0; i < all.size(); ++i)
    if (const std::string file = source_line(inside[i]).file; file.starts_with("kernels/"))
      files[all[i].name] = file;
  std::vector<Kernel> found;
  for (const auto& [name, file] : files) found.push_back({name, file});
  return found;
}

}  // namespace tigon::simt
