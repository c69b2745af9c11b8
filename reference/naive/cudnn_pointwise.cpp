// SPDX-License-Identifier: Apache-2.0
// Descriptors of cuDNN's backend API: tensors, one operation, a graph of it, an engine that the
// heuristic proposes, a plan.
#include "reference/naive/cudnn_pointwise.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace tigon::naive {

namespace {

// Whether the device still works after a failed call, as it does when a launch was only refused:
// for a grid that is too large, say. After a fault of a kernel every call fails.
bool device_works() {
  cudaGetLastError();  // forgets what can be forgotten
  return cudaDeviceSynchronize() == cudaSuccess;
}

bool cannot_do(cudnnStatus_t status) {
  const int kind = status / 1000 * 1000;
  if (kind == CUDNN_STATUS_NOT_SUPPORTED) return true;
  return kind == CUDNN_STATUS_EXECUTION_FAILED && device_works();
}

}  // namespace

void check(cudnnStatus_t status, const char* what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  char detail[512] = "";
  cudnnGetLastErrorString(detail, sizeof detail);
  fail(cannot_do(status) ? Status::kUnsupported : Status::kLaunchFailed,
       std::string(what) + ": " + cudnnGetErrorString(status) + " " + detail);
}

cudnnHandle_t cudnn_handle(Stream stream) {
  // Never destroyed: at the end of a thread the driver may be gone.
  thread_local cudnnHandle_t handle = nullptr;
  if (handle == nullptr) check(cudnnCreate(&handle), "cudnnCreate");
  check(cudnnSetStream(handle, stream), "cudnnSetStream");
  return handle;
}

namespace {

class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type) {
    check(cudnnBackendCreateDescriptor(type, &raw_), "cudnnBackendCreateDescriptor");
  }
  ~Descriptor() {
    if (raw_ != nullptr) cudnnBackendDestroyDescriptor(raw_);
  }
  Descriptor(Descriptor&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}

  cudnnBackendDescriptor_t raw() const { return raw_; }
  template <class T>
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T& value) {
    check(cudnnBackendSetAttribute(raw_, name, type, 1, &value), "cudnnBackendSetAttribute");
  }
  void set(cudnnBackendAttributeName_t name, const Descriptor& value) {
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, value.raw_);
  }
  template <class T>
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
           const std::vector<T>& values) {
    check(cudnnBackendSetAttribute(raw_, name, type, static_cast<int64_t>(values.size()),
                                   values.data()),
          "cudnnBackendSetAttribute");
  }
  void finalize(const char* what) { check(cudnnBackendFinalize(raw_), what); }

 private:
  cudnnBackendDescriptor_t raw_ = nullptr;
};

cudnnDataType_t cudnn_type(DType type) {
  switch (type) {
    case DType::kF32:
      return CUDNN_DATA_FLOAT;
    case DType::kBF16:
      return CUDNN_DATA_BFLOAT16;
    case DType::kF16:
      return CUDNN_DATA_HALF;
    default:
      fail(Status::kUnsupported, std::string("naive: tensors of ") + name_of(type));
  }
}

// Bytes, at most 16.
int64_t alignment(const void* p) {
  const auto address = reinterpret_cast<uintptr_t>(p);
  return static_cast<int64_t>(std::min<uintptr_t>(16, address & (~address + 1)));
}

// Operand i has id i + 1 in graph and plan.
int64_t id_of(size_t operand) { return static_cast<int64_t>(operand) + 1; }

Descriptor tensor(const Operand& o, int64_t id) {
  Descriptor d(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  d.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, id);
  d.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, cudnn_type(o.type));
  d.set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, o.sizes);
  d.set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, o.strides);
  d.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, alignment(o.data));
  if (o.by_value) d.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, true);
  d.finalize("cuDNN tensor");
  return d;
}

Descriptor node(const Pointwise& o, const std::vector<Descriptor>& tensors) {
  Descriptor mode(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  mode.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, o.mode);
  mode.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  mode.finalize("cuDNN pointwise mode");
  Descriptor d(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  d.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, mode);
  d.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, tensors.front());
  if (tensors.size() == 3)
    d.set(
        o.derivative ? CUDNN_ATTR_OPERATION_POINTWISE_DYDESC : CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
        tensors[1]);
  d.set(o.derivative ? CUDNN_ATTR_OPERATION_POINTWISE_DXDESC : CUDNN_ATTR_OPERATION_POINTWISE_YDESC,
        tensors.back());
  d.finalize("cuDNN pointwise operation");
  return d;
}

struct Plan {
  std::vector<Descriptor> kept;  // what the plan was made from
  Descriptor plan;
  int64_t workspace_bytes;
};

// The heuristic's proposals, best first.
std::vector<Descriptor> proposals(const Descriptor& graph) {
  constexpr int64_t kMost = 8;
  Descriptor heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, CUDNN_HEUR_MODE_A);
  heuristic.finalize("cuDNN heuristic");
  std::vector<Descriptor> configs;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (int64_t i = 0; i < kMost; ++i)
    raw.push_back(configs.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).raw());
  int64_t count = 0;
  check(cudnnBackendGetAttribute(heuristic.raw(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, kMost, &count, raw.data()),
        "cuDNN heuristic");
  while (static_cast<int64_t>(configs.size()) > count) configs.pop_back();
  return configs;
}

// Nothing when the engine cannot do it after all.
std::optional<Plan> plan_with(cudnnHandle_t handle, const Descriptor& config) {
  Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
  if (cudnnBackendFinalize(plan.raw()) != CUDNN_STATUS_SUCCESS) return std::nullopt;
  int64_t bytes = 0, count = 0;
  check(cudnnBackendGetAttribute(plan.raw(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                 CUDNN_TYPE_INT64, 1, &count, &bytes),
        "cuDNN workspace size");
  return Plan{{}, std::move(plan), bytes};
}

Plan compile(const Pointwise& o, cudnnHandle_t handle) {
  std::vector<Descriptor> kept;
  for (size_t i = 0; i < o.operands.size(); ++i) kept.push_back(tensor(o.operands[i], id_of(i)));
  kept.push_back(node(o, kept));
  Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, kept.back());
  graph.finalize("cuDNN graph");
  for (Descriptor& config : proposals(graph))
    if (std::optional<Plan> plan = plan_with(handle, config)) {
      kept.push_back(std::move(graph));
      kept.push_back(std::move(config));
      plan->kept = std::move(kept);
      return std::move(*plan);
    }
  std::string what = "cuDNN has no engine for pointwise mode " + std::to_string(o.mode) + " of";
  for (const Operand& operand : o.operands) {
    what += std::string(" ") + name_of(operand.type) + "[";
    for (int64_t s : operand.sizes) what += std::to_string(s) + " ";
    what.back() = ']';
  }
  fail(Status::kUnsupported, what);
}

using PlanOrRefusal = std::variant<Plan, Failure>;

// Other failures, as of a device without memory, pass through: they may not come again.
PlanOrRefusal plan_or_refusal(const Pointwise& o, cudnnHandle_t handle) {
  try {
    return compile(o, handle);
  } catch (const Failure& failure) {
    if (failure.status.code != Status::kUnsupported) throw;
    return failure;
  }
}

// All that a plan depends on.
std::vector<int64_t> key_of(const Pointwise& o) {
  std::vector<int64_t> key{o.mode};
  for (const Operand& operand : o.operands) {
    key.push_back(static_cast<int64_t>(operand.type));
    key.push_back(alignment(operand.data));
    key.push_back(operand.by_value);
    key.insert(key.end(), operand.sizes.begin(), operand.sizes.end());
    key.insert(key.end(), operand.strides.begin(), operand.strides.end());
  }
  return key;
}

}  // namespace

void run(const Pointwise& operation, Stream stream) {
  const cudnnHandle_t handle = cudnn_handle(stream);
  // Kept as the handle is. What cuDNN refuses is asked for once, too: to look for an engine takes
  // longer than to run one.
  thread_local auto& plans = *new std::map<std::vector<int64_t>, PlanOrRefusal>;
  const std::vector<int64_t> key = key_of(operation);
  auto found = plans.find(key);
  if (found == plans.end()) found = plans.emplace(key, plan_or_refusal(operation, handle)).first;
  if (const auto* refusal = std::get_if<Failure>(&found->second)) throw *refusal;
  const Plan& plan = std::get<Plan>(found->second);

  std::vector<int64_t> ids;
  std::vector<void*> pointers;
  for (size_t i = 0; i < operation.operands.size(); ++i) {
    ids.push_back(id_of(i));
    pointers.push_back(const_cast<void*>(operation.operands[i].data));
  }
  Tensor workspace;
  if (plan.workspace_bytes > 0)
    workspace = Eager(stream).empty(DType::kU8, {1, 1, plan.workspace_bytes});
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, ids);
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, pointers);
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace.data);
  pack.finalize("cuDNN variant pack");
  check(cudnnBackendExecute(handle, plan.plan.raw(), pack.raw()), "cudnnBackendExecute");
}

}  // namespace tigon::naive
