// SPDX-License-Identifier: Apache-2.0
// The functions of tigon.h.
#include "kernels/call/tigon.h"

#include <cstring>

#include "kernels/call/build_info.h"
#include "kernels/call/default_launch_table.h"
#include "kernels/call/explain.h"
#include "kernels/call/op_list.h"
#include "kernels/call/registry.h"

namespace {

using tigon::call::all_ops;
using tigon::call::OpState;
using tigon::call::PassInfo;

static_assert(static_cast<int>(tigon::DType::kF64) == TIGON_F64 &&
              static_cast<int>(tigon::DType::kF32) == TIGON_F32 &&
              static_cast<int>(tigon::DType::kBF16) == TIGON_BF16 &&
              static_cast<int>(tigon::DType::kF16) == TIGON_F16 &&
              static_cast<int>(tigon::DType::kI64) == TIGON_I64 &&
              static_cast<int>(tigon::DType::kI32) == TIGON_I32 &&
              static_cast<int>(tigon::DType::kU8) == TIGON_U8);

const PassInfo& info_of(const tigon_op* op) { return static_cast<const OpState*>(op->state)->info; }

template <class Items>
int32_t index_of(const Items& items, const char* name) {
  for (size_t i = 0; i < items.size(); ++i)
    if (std::strcmp(items[i].name, name) == 0) return static_cast<int32_t>(i);
  return -1;
}

constexpr tigon_status kNoOp = {TIGON_INVALID,
                                "the op is NULL: tigon_find() knows no op of that name and dtype"};

// Whether a call can be made at all: there is an op, and a launch table that was asked for is
// right.
bool is_ready(const tigon_op* op, tigon_status* status) {
  if (op == nullptr) {
    *status = kNoOp;
    return false;
  }
  const std::string& error = tigon::call::default_launch_table_error();
  if (!error.empty()) *status = tigon::call::failed(op, TIGON_INVALID, error);
  return error.empty();
}

}  // namespace

const tigon_op* tigon_find(const char* name, int32_t dtype) {
  return tigon::call::find(all_ops(), name, dtype);
}

const tigon_op* tigon_op_at(int32_t index) {
  const bool there = index >= 0 && index < static_cast<int32_t>(all_ops().size());
  return there ? &all_ops()[static_cast<size_t>(index)] : nullptr;
}

size_t tigon_workspace(const tigon_op* op, const tigon_call* call) {
  tigon_status status;
  return is_ready(op, &status) && op->workspace != nullptr ? op->workspace(op, call) : 0;
}

tigon_status tigon_prepare(const tigon_op* op, const tigon_call* call) {
  tigon_status status;
  if (!is_ready(op, &status)) return status;
  return op->prepare != nullptr ? op->prepare(op, call) : tigon_status{TIGON_OK, ""};
}

tigon_status tigon_run(const tigon_op* op, const tigon_call* call, void* stream) {
  tigon_status status;
  return is_ready(op, &status) ? op->run(op, call, stream) : status;
}

const char* tigon_describe(const tigon_op* op) {
  return op != nullptr && op->describe != nullptr ? op->describe(op) : "";
}

int32_t tigon_tensor_index(const tigon_op* op, const char* name) {
  return op != nullptr ? index_of(info_of(op).tensors, name) : -1;
}

int32_t tigon_option_index(const tigon_op* op, const char* name) {
  return op != nullptr ? index_of(info_of(op).options, name) : -1;
}

tigon_status tigon_shape(const tigon_op* op, const tigon_call* call, int32_t tensor,
                         int64_t sizes[TIGON_MAX_RANK], int32_t* rank) {
  if (op == nullptr) return kNoOp;
  const PassInfo& info = info_of(op);
  if (tensor < 0 || tensor >= static_cast<int32_t>(info.tensors.size()))
    return tigon::call::failed(op, TIGON_INVALID, "there is no tensor " + std::to_string(tensor));
  const auto known = tigon::call::sizes_of(info, *call, static_cast<size_t>(tensor));
  if (!known)
    return tigon::call::failed(op, TIGON_INVALID,
                               std::string("the call does not say the shape of ") +
                                   info.tensors[static_cast<size_t>(tensor)].name +
                                   ": give its other tensors");
  *rank = static_cast<int32_t>(known->size());
  std::memcpy(sizes, known->data(), known->size() * sizeof(int64_t));
  return {TIGON_OK, ""};
}

tigon_status tigon_load_launch_table(const char* path) {
  static thread_local std::string message;
  message = tigon::call::load_launch_table(path);
  return {message.empty() ? TIGON_OK : TIGON_INVALID, message.c_str()};
}

const char* tigon_build_info(void) { return tigon::call::kBuildInfo; }
