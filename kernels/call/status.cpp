// SPDX-License-Identifier: Apache-2.0
// What an op of tigon.h answers.
#include "kernels/call/status.h"

#include <map>
#include <mutex>

#include "kernels/call/describe.h"
#include "kernels/call/explain.h"
#include "kernels/call/typed.h"  // its codes are those of Status

namespace tigon::call {

namespace {

const OpState& state_of(const tigon_op* op) { return *static_cast<const OpState*>(op->state); }

}  // namespace

tigon_status failed(const tigon_op* op, int32_t code, const std::string& reason) {
  static thread_local std::string message;
  message = std::string(op->name) + ": " + reason;
  return {code, message.c_str()};
}

tigon_status refused(const tigon_op* op, const tigon_call& call, const char* reason) {
  const std::string why = explain(state_of(op).info, call);
  return failed(op, TIGON_INVALID, why.empty() ? reason : why);
}

tigon_status answer(const tigon_op* op, const tigon_call& call, const Status& status) {
  if (status.ok()) return {TIGON_OK, ""};
  if (status.code == Status::kInvalidArgument) return refused(op, call, status.reason);
  return failed(op, status.code, status.reason);
}

const char* description(const tigon_op* op) {
  static std::mutex mutex;
  static std::map<const tigon_op*, std::string> known;
  const std::lock_guard lock(mutex);
  std::string& text = known[op];
  if (text.empty()) text = describe(*op, state_of(op));
  return text.c_str();
}

}  // namespace tigon::call
