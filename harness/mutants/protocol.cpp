// SPDX-License-Identifier: Apache-2.0
// The fault in a request line, and those that its answer tells of.
#include "harness/mutants/protocol.h"

#include "harness/json/json.h"

namespace tigon {

std::string with_fault(const std::string& request, const std::string& fault) {
  Json line = Json::parse(request);
  line["fault"] = fault;
  return line.dump();
}

std::string fault_of(const std::string& line) { return Json::parse(line).at("fault"); }

std::string with_reached(const std::string& answer, const std::vector<uint32_t>& faults) {
  if (faults.empty()) return answer;
  Json line = Json::parse(answer);
  line["reached"] = faults;
  return line.dump();
}

std::vector<uint32_t> reached_of(const std::string& line) {
  const Json answer = Json::parse(line);
  return answer.contains("reached") ? answer.at("reached").get<std::vector<uint32_t>>()
                                    : std::vector<uint32_t>{};
}

}  // namespace tigon
