// A plug-in library in the host program: loaded, and every field of its description checked before
// it is used.
#pragma once
#include <stdexcept>
#include <string>

#include "harness/plugin/protocol.h"
#include "harness/plugin/tigon_plugin.h"

namespace tigon::plugin {

// What is wrong with a library: one line.
struct BadLibrary : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Library {
 public:
  // Throws BadLibrary.
  explicit Library(const std::string& path);

  const tigon_kernel& kernel(size_t i) const { return *plugin_->kernels[i]; }
  size_t kernels() const { return static_cast<size_t>(plugin_->kernel_count); }
  // Name, version and kernels, for the judge.
  Json description() const;

 private:
  const tigon_plugin* plugin_ = nullptr;
};

}  // namespace tigon::plugin
