// SPDX-License-Identifier: Apache-2.0
// A tigon_call between processes.
#include "harness/worker/shared_call.h"

namespace tigon::worker {

Json to_json(const SharedCall& call) {
  Json tensors = Json::array(), options = Json::array();
  for (const auto& t : call.tensors) {
    if (!t) {
      tensors.push_back(nullptr);
      continue;
    }
    tensors.push_back(
        {{"at", t->at}, {"dtype", t->dtype}, {"sizes", t->sizes}, {"strides", t->strides}});
  }
  for (const tigon_option& o : call.options)
    options.push_back({{"index", o.index}, {"value", o.value}});
  return {{"tensors", std::move(tensors)},
          {"options", std::move(options)},
          {"scratch_at", call.scratch_at},
          {"scratch_bytes", call.scratch_bytes}};
}

SharedCall shared_call_of(const Json& json) {
  SharedCall call;
  for (const Json& t : json.at("tensors")) {
    auto& tensor = call.tensors.emplace_back();
    if (!t.is_null()) tensor = {t.at("at"), t.at("dtype"), t.at("sizes"), t.at("strides")};
  }
  for (const Json& o : json.at("options"))
    call.options.push_back({o.at("index"), 0, o.at("value")});
  call.scratch_at = json.at("scratch_at");
  call.scratch_bytes = json.at("scratch_bytes");
  return call;
}

MappedCall::MappedCall(SharedCall call, char* memory) : shared_(std::move(call)) {
  for (const auto& t : shared_.tensors) {
    tigon_tensor& tensor = tensors_.emplace_back();
    if (t)
      tensor = {memory + t->at, t->sizes.data(), t->strides.data(), t->dtype,
                static_cast<int32_t>(t->sizes.size())};
  }
  call_.tensors = tensors_.data();
  call_.options = shared_.options.data();
  if (shared_.scratch_bytes > 0) call_.scratch = memory + shared_.scratch_at;
  call_.scratch_bytes = shared_.scratch_bytes;
  call_.tensor_count = static_cast<int32_t>(tensors_.size());
  call_.option_count = static_cast<int32_t>(shared_.options.size());
}

}  // namespace tigon::worker
