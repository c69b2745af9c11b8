// The fault in a request line.
#include "harness/mutants/protocol.h"

#include <nlohmann/json.hpp>

namespace tigon {

std::string with_fault(const std::string& request, const std::string& fault) {
  nlohmann::ordered_json line = nlohmann::ordered_json::parse(request);
  line["fault"] = fault;
  return line.dump();
}

std::string fault_of(const std::string& line) {
  return nlohmann::ordered_json::parse(line).at("fault");
}

}  // namespace tigon
