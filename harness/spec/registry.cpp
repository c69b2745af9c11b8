// SPDX-License-Identifier: Apache-2.0
// The contracts of a program, as they were made and with what was added.
#include "harness/spec/registry.h"

namespace tigon {
namespace {

std::vector<OpSpec>& contracts() {
  static std::vector<OpSpec> ops = make_contracts();
  return ops;
}

}  // namespace

const std::vector<OpSpec>& all_ops() { return contracts(); }

void add_implementation(const std::string& op, const std::string& pass, Implementation added) {
  for (OpSpec& o : contracts())
    for (Pass& p : o.passes)
      if (o.name == op && p.name == pass) return p.implementations.push_back(std::move(added));
}

}  // namespace tigon
