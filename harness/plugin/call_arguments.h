// A tigon_call made from the judge's request.
#pragma once
#include <deque>
#include <string>
#include <vector>

#include "harness/plugin/protocol.h"
#include "harness/plugin/tigon_plugin.h"

namespace tigon::plugin {

class CallArguments {
 public:
  // `memory`: where byte 0 of the mirror lies.
  CallArguments(const Json& request, char* memory, void* stream);
  CallArguments(const CallArguments&) = delete;
  CallArguments& operator=(const CallArguments&) = delete;

  const tigon_call* get() const { return &call_; }

 private:
  const char* keep(const Json& text);
  std::vector<tigon_value> values_of(const Json& list);

  std::deque<std::string> texts_;             // never move
  std::deque<std::vector<int64_t>> numbers_;  // shapes and strides
  std::vector<tigon_tensor> tensors_;
  std::vector<tigon_value> axes_, options_;
  tigon_call call_ = {};
};

}  // namespace tigon::plugin
