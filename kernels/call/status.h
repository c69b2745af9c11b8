// SPDX-License-Identifier: Apache-2.0
// What an op of tigon.h answers: a code, and a sentence that names the op, the tensor and the axis.
#pragma once
#include <string>

#include "kernels/call/tigon.h"
#include "kernels/signature/status.h"

namespace tigon::call {

#if defined(TIGON_CUDA)
inline constexpr int32_t kDevice = TIGON_DEVICE_CUDA;
#else
inline constexpr int32_t kDevice = TIGON_DEVICE_HOST;
#endif

// Of a launcher's status. One that says the arguments are wrong is explained by the signature where
// that can; else the launcher's own reason stands.
tigon_status answer(const tigon_op* op, const tigon_call& call, const Status& status);

// TIGON_INVALID with the signature's explanation, else with `reason`.
tigon_status refused(const tigon_op* op, const tigon_call& call, const char* reason);

// "rms_norm.forward: reason", which lives until the thread's next call.
tigon_status failed(const tigon_op* op, int32_t code, const std::string& reason);

// As tigon_describe(), of an op that make_op() made.
const char* description(const tigon_op* op);

}  // namespace tigon::call
