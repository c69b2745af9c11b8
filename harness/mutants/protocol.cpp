// SPDX-License-Identifier: Apache-2.0
// The fault in a request line.
#include "harness/mutants/protocol.h"

#include "harness/json/json.h"

namespace tigon {

std::string with_fault(const std::string& request, const std::string& fault) {
  Json line = Json::parse(request);
  line["fault"] = fault;
  return line.dump();
}

std::string fault_of(const std::string& line) { return Json::parse(line).at("fault"); }

}  // namespace tigon
