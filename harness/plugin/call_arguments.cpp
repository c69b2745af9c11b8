// A tigon_call made from the judge's request.
#include "harness/plugin/call_arguments.h"

namespace tigon::plugin {

const char* CallArguments::keep(const Json& text) {
  return texts_.emplace_back(text.get<std::string>()).c_str();
}

std::vector<tigon_value> CallArguments::values_of(const Json& list) {
  std::vector<tigon_value> values;
  for (const Json& v : list)
    values.push_back({keep(v.at(0)), v.at(1).get<double>(), keep(v.at(2))});
  return values;
}

CallArguments::CallArguments(const Json& request, char* memory, void* stream) {
  for (const Json& t : request.at("tensors")) {
    const auto& shape = numbers_.emplace_back(t.at("shape").get<std::vector<int64_t>>());
    const auto& stride = numbers_.emplace_back(t.at("stride").get<std::vector<int64_t>>());
    const auto at = t.at("at").get<int64_t>();  // -1: left out
    tensors_.push_back({keep(t.at("name")), t.at("role"), t.at("dtype"),
                        static_cast<int32_t>(shape.size()), 0, at < 0 ? nullptr : memory + at,
                        shape.data(), stride.data()});
  }
  axes_ = values_of(request.at("axes"));
  options_ = values_of(request.at("options"));
  const auto workspace_bytes = request.at("workspace_bytes").get<size_t>();
  call_.size = sizeof call_;
  call_.op = keep(request.at("op"));
  call_.pass = keep(request.at("pass"));
  call_.dtype = request.at("dtype");
  call_.device = request.at("device");
  call_.tensor_count = static_cast<int32_t>(tensors_.size());
  call_.axis_count = static_cast<int32_t>(axes_.size());
  call_.option_count = static_cast<int32_t>(options_.size());
  call_.tensors = tensors_.data();
  call_.axes = axes_.data();
  call_.options = options_.data();
  call_.workspace =
      workspace_bytes > 0 ? memory + request.at("workspace_at").get<int64_t>() : nullptr;
  call_.workspace_bytes = workspace_bytes;
  call_.stream = stream;
}

}  // namespace tigon::plugin
