// SPDX-License-Identifier: Apache-2.0
// GEMM on a GPU by cuBLASLt. A plan (descriptors and algorithm) is made once per shape and kept;
// the algorithm is the library's first choice until gemm_tune() has timed the others. Its fast
// kernels want sizes that are whole vectors of 16 bytes. Others get them in two ways:
// algorithms are asked for sizes rounded up, and the columns of C behind the last whole vector are
// a product of their own.
#include <cuda_runtime.h>

#include <algorithm>
#include <compare>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "kernels/device/cublaslt.h"
#include "kernels/device/gemm.h"
#include "kernels/device/gemm_parts.h"
#include "kernels/device/integer.h"

namespace tigon {
namespace {

constexpr size_t kWorkspaceBytes = size_t{32} << 20;  // what cuBLAS itself takes on Hopper
constexpr int kCandidates = 12;                       // algorithms that gemm_tune() times
constexpr int kRounds = 5;                            // timings of each; the median counts

Status failed(const char* reason) { return {Status::kLaunchFailed, reason}; }

cudaDataType_t cuda_type(DType t) {
  return t == DType::kBF16 ? CUDA_R_16BF : t == DType::kF16 ? CUDA_R_16F : CUDA_R_32F;
}

// Everything that the choice of an algorithm depends on.
struct Key {
  int device;
  int64_t m, n, k, lda, ldb, ldc;
  DType in_type, out_type;
  bool transpose_a, transpose_b, accumulate, bias;
  uint32_t align_a, align_b, align_c;
  auto operator<=>(const Key&) const = default;
};

Key key_of(const Gemm& p, int device) {
  return {device,
          p.m,
          p.n,
          p.k,
          p.lda,
          p.ldb,
          p.ldc,
          p.in_type,
          p.out_type,
          p.transpose_a,
          p.transpose_b,
          p.beta != 0.0f,
          p.bias != nullptr,
          alignment_of(p.a),
          alignment_of(p.b),
          std::min(alignment_of(p.c), alignment_of(p.bias))};
}

struct Described {
  // mutable, because the library reads them through pointers that are not const.
  mutable cublasLtMatmulDescOpaque_t operation;
  mutable cublasLtMatrixLayoutOpaque_t left, right, result;
};

using Algorithms = std::vector<cublasLtMatmulHeuristicResult_t>;

struct Plan : Described {
  Algorithms candidates;
  size_t chosen = 0;
  bool tuned = false;
};

template <class Value>
bool describe_by(cublasLtMatmulDescOpaque_t* operation, cublasLtMatmulDescAttributes_t attribute,
                 Value value) {
  return cublaslt()->set_operation(operation, attribute, &value, sizeof(value)) ==
         CUBLAS_STATUS_SUCCESS;
}

bool describe_bias(const Gemm& p, cublasLtMatmulDescOpaque_t* operation) {
  return p.bias == nullptr ||
         (describe_by(operation, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS) &&
          describe_by(operation, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, cuda_type(p.out_type)) &&
          describe_by(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias));
}

// cuBLASLt is column-major: C = op(A) op(B) by rows is C' = op(B)' op(A)' by columns, so B comes
// first and "transposed" keeps its meaning.
bool describe(const Gemm& p, Described* plan) {
  const cublasOperation_t left = p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t right = p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
  const auto layout = [](cublasLtMatrixLayoutOpaque_t* l, DType t, bool transposed, int64_t rows,
                         int64_t columns, int64_t ld) {
    if (transposed) std::swap(rows, columns);
    return cublaslt()->init_layout(l, sizeof *l, cuda_type(t), rows, columns, ld) ==
           CUBLAS_STATUS_SUCCESS;
  };
  return cublaslt()->init_operation(&plan->operation, sizeof plan->operation, CUBLAS_COMPUTE_32F,
                                    CUDA_R_32F) == CUBLAS_STATUS_SUCCESS &&
         describe_by(&plan->operation, CUBLASLT_MATMUL_DESC_TRANSA, left) &&
         describe_by(&plan->operation, CUBLASLT_MATMUL_DESC_TRANSB, right) &&
         describe_bias(p, &plan->operation) &&
         layout(&plan->left, p.in_type, p.transpose_b, p.n, p.k, p.ldb) &&
         layout(&plan->right, p.in_type, p.transpose_a, p.k, p.m, p.lda) &&
         layout(&plan->result, p.out_type, false, p.n, p.m, p.ldc);
}

template <class Value>
bool prefer(cublasLtMatmulPreferenceOpaque_t* preference,
            cublasLtMatmulPreferenceAttributes_t attribute, Value value) {
  return cublaslt()->set_preference(preference, attribute, &value, sizeof(value)) ==
         CUBLAS_STATUS_SUCCESS;
}

bool limit(const Key& key, cublasLtMatmulPreferenceOpaque_t* preference) {
  // Split sums stay in fp32: the library's other schemes add partial sums in C's type.
  const uint32_t reduction = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  return cublaslt()->init_preference(preference, sizeof *preference) == CUBLAS_STATUS_SUCCESS &&
         prefer(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{kWorkspaceBytes}) &&
         prefer(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reduction) &&
         prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, key.align_b) &&
         prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, key.align_a) &&
         prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, key.align_c) &&
         prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, key.align_c);
}

// What the library proposes, best guess first; empty where it has nothing.
Algorithms proposed(cublasLtHandle_t handle, const Key& key, const Described& d) {
  cublasLtMatmulPreferenceOpaque_t preference;
  Algorithms found(kCandidates);
  int count = 0;
  if (!limit(key, &preference) ||
      cublaslt()->heuristic(handle, &d.operation, &d.left, &d.right, &d.result, &d.result,
                            &preference, kCandidates, found.data(),
                            &count) != CUBLAS_STATUS_SUCCESS)
    count = 0;
  found.resize(static_cast<size_t>(count));
  return found;
}

Gemm rounded_up(Gemm p) {
  for (int64_t* size : {&p.m, &p.n, &p.k}) *size = round_up(*size, vector_of(p));
  return p;
}

bool takes(cublasLtHandle_t handle, const Described& d,
           const cublasLtMatmulHeuristicResult_t& algorithm) {
  cublasLtMatmulHeuristicResult_t checked;
  return cublaslt()->check(handle, &d.operation, &d.left, &d.right, &d.result, &d.result,
                           &algorithm.algo, &checked) == CUBLAS_STATUS_SUCCESS &&
         checked.workspaceSize <= kWorkspaceBytes;
}

// Fills plan->candidates, best guess first: those for the rounded sizes that take these too, and
// those for these.
bool find_algorithms(cublasLtHandle_t handle, const Gemm& p, const Key& key, Plan* plan) {
  Algorithms& all = plan->candidates;
  Described larger;
  const Gemm up = rounded_up(p);
  const bool rounds = up.m != p.m || up.n != p.n || up.k != p.k;
  if (rounds && gemm_check(up).ok() && describe(up, &larger))
    for (const auto& a : proposed(handle, key, larger))
      if (takes(handle, *plan, a)) all.push_back(a);
  for (const auto& a : proposed(handle, key, *plan))
    if (all.size() < kCandidates) all.push_back(a);
  return !all.empty();
}

cublasStatus_t multiply(cublasLtHandle_t handle, const Plan& plan, size_t algorithm, const Gemm& p,
                        void* workspace, Stream stream) {
  cublasLtMatmulDescOpaque_t operation = plan.operation;
  if (!describe_bias(p, &operation)) return CUBLAS_STATUS_INVALID_VALUE;
  return cublaslt()->matmul(handle, &operation, &p.alpha, p.b, &plan.left, p.a, &plan.right,
                            &p.beta, p.c, &plan.result, p.c, &plan.result,
                            &plan.candidates[algorithm].algo, workspace, kWorkspaceBytes, stream);
}

// Handles (one per device) and plans of the process. Handles live as long as the process:
// destroying them from a static destructor would come after the driver's own shutdown.
class Library {
 public:
  static Library& instance() {
    static auto* library = new Library;
    return *library;
  }

  Status handle(int device, cublasLtHandle_t* out) {
    if (cublaslt() == nullptr) return failed(cublaslt_error());
    const std::lock_guard lock(mutex_);
    cublasLtHandle_t& handle = handles_[device];
    if (handle == nullptr && cublaslt()->create(&handle) != CUBLAS_STATUS_SUCCESS) {
      handle = nullptr;
      return failed("gemm: cublasLtCreate failed");
    }
    *out = handle;
    return {};
  }

  // A copy of the plan, so that nobody waits while another thread tunes.
  Status plan(cublasLtHandle_t handle, const Gemm& p, const Key& key,
              std::shared_ptr<const Plan>* out) {
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = plans_.find(key); found != plans_.end()) {
        *out = found->second;
        return {};
      }
    }
    auto fresh = std::make_shared<Plan>();
    if (!describe(p, fresh.get())) return failed("gemm: cuBLASLt refuses the problem's layout");
    if (!find_algorithms(handle, p, key, fresh.get()))
      return unsupported("gemm: cuBLASLt has no algorithm for this problem");
    const std::lock_guard lock(mutex_);
    *out = plans_.try_emplace(key, std::move(fresh)).first->second;
    return {};
  }

  void choose(const Key& key, const Plan& plan, size_t algorithm) {
    auto tuned = std::make_shared<Plan>(plan);
    tuned->chosen = algorithm;
    tuned->tuned = true;
    const std::lock_guard lock(mutex_);
    plans_[key] = std::move(tuned);
  }

 private:
  std::mutex mutex_;
  std::map<int, cublasLtHandle_t> handles_;
  std::map<Key, std::shared_ptr<const Plan>> plans_;
};

struct Prepared {
  cublasLtHandle_t handle = nullptr;
  Key key;
  std::shared_ptr<const Plan> plan;
};

Status prepare(const Gemm& p, Prepared* out) {
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return failed("gemm: no CUDA device");
  out->key = key_of(p, device);
  if (const Status s = Library::instance().handle(device, &out->handle); !s.ok()) return s;
  return Library::instance().plan(out->handle, p, out->key, &out->plan);
}

// Device memory of gemm_tune(), filled with values in (-1, 1): zeros would draw less power and run
// faster than real operands.
class Operand {
 public:
  Operand(DType type, int64_t rows, int64_t ld, uint32_t alignment) {
    const size_t bytes = static_cast<size_t>(rows * ld) * size_of(type);
    if (cudaMalloc(&base_, bytes + alignment) != cudaSuccess) {
      base_ = nullptr;
      return;
    }
    // cudaMalloc aligns to 256 bytes, so this address is aligned to `alignment` and no better.
    data_ = static_cast<char*>(base_) + (alignment < 256 ? alignment : 0);
    fill(type, bytes);
  }
  Operand(const Operand&) = delete;
  Operand& operator=(const Operand&) = delete;
  ~Operand() { cudaFree(base_); }
  void* data() const { return data_; }

 private:
  static std::vector<char> pattern(DType type) {
    std::vector<char> bytes(size_t{1} << 20);
    uint32_t state = 1;
    for (size_t i = 0; i < bytes.size(); i += size_of(type)) {
      state = state * 1664525u + 1013904223u;
      const float value = static_cast<float>(static_cast<int32_t>(state)) * 0x1p-31f;
      const bf16 as_bf16(value);
      const f16 as_f16(value);
      const void* source = &value;
      if (type == DType::kBF16) source = &as_bf16;
      if (type == DType::kF16) source = &as_f16;
      memcpy(&bytes[i], source, size_of(type));
    }
    return bytes;
  }

  void fill(DType type, size_t bytes) {
    const std::vector<char> values = pattern(type);
    char* p = static_cast<char*>(data_);
    for (size_t done = 0; done < bytes; done += values.size())
      cudaMemcpy(p + done, values.data(), std::min(values.size(), bytes - done), cudaMemcpyDefault);
  }

  void* base_ = nullptr;
  void* data_ = nullptr;
};

class Timer {
 public:
  Timer() {
    cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking);
    cudaEventCreate(&start_);
    cudaEventCreate(&stop_);
  }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer() {
    cudaEventDestroy(start_);
    cudaEventDestroy(stop_);
    cudaStreamDestroy(stream_);
  }

  // Milliseconds that `work(stream)` takes on the device; negative when it fails.
  template <class Work>
  float time(Work&& work) {
    float ms = -1.0f;
    cudaEventRecord(start_, stream_);
    const bool ok = work(stream_);
    cudaEventRecord(stop_, stream_);
    if (cudaEventSynchronize(stop_) != cudaSuccess || !ok) return -1.0f;
    return cudaEventElapsedTime(&ms, start_, stop_) == cudaSuccess ? ms : -1.0f;
  }

 private:
  Stream stream_ = nullptr;
  cudaEvent_t start_ = nullptr, stop_ = nullptr;
};

// The algorithm with the smallest median time; their number where none ran. Rounds go over all
// algorithms in turn, so that a drifting clock hits all alike; the first round is a warm-up.
size_t fastest(const Prepared& prepared, const Gemm& p, void* workspace) {
  Timer timer;
  const size_t count = prepared.plan->candidates.size();
  std::vector<std::vector<float>> times(count);
  for (int round = 0; round <= kRounds; ++round) {
    for (size_t i = 0; i < count; ++i) {
      const float ms = timer.time([&](Stream stream) {
        return multiply(prepared.handle, *prepared.plan, i, p, workspace, stream) ==
               CUBLAS_STATUS_SUCCESS;
      });
      if (round > 0 && ms >= 0.0f) times[i].push_back(ms);
    }
  }
  size_t best = count;
  float best_ms = 0.0f;
  for (size_t i = 0; i < count; ++i) {
    auto& t = times[i];
    if (t.size() != static_cast<size_t>(kRounds)) continue;
    std::nth_element(t.begin(), t.begin() + kRounds / 2, t.end());
    if (best == count || t[kRounds / 2] < best_ms) best = i, best_ms = t[kRounds / 2];
  }
  return best;
}

Status multiply(const Gemm& p, void* workspace, Stream stream) {
  Prepared prepared;
  if (const Status s = prepare(p, &prepared); !s.ok()) return s;
  if (multiply(prepared.handle, *prepared.plan, prepared.plan->chosen, p, workspace, stream) !=
      CUBLAS_STATUS_SUCCESS)
    return failed("gemm: cublasLtMatmul failed");
  return {};
}

Status tune(const Gemm& problem) {
  Prepared prepared;
  if (const Status s = prepare(problem, &prepared); !s.ok()) return s;
  if (prepared.plan->tuned) return {};
  const Key& key = prepared.key;
  const Operand a(problem.in_type, problem.transpose_a ? problem.k : problem.m, problem.lda,
                  key.align_a);
  const Operand b(problem.in_type, problem.transpose_b ? problem.n : problem.k, problem.ldb,
                  key.align_b);
  const Operand c(problem.out_type, problem.m, problem.ldc, key.align_c);
  const Operand bias(problem.out_type, 1, problem.bias != nullptr ? problem.n : 1, key.align_c);
  const Operand workspace(DType::kU8, 1, kWorkspaceBytes, 256);
  if (!a.data() || !b.data() || !c.data() || !bias.data() || !workspace.data())
    return failed("gemm_tune: not enough device memory for a copy of A, B and C");
  Gemm p = problem;
  p.a = a.data();
  p.b = b.data();
  p.c = c.data();
  if (problem.bias != nullptr) p.bias = bias.data();
  const size_t best = fastest(prepared, p, workspace.data());
  if (best == prepared.plan->candidates.size()) return failed("gemm_tune: no algorithm ran");
  Library::instance().choose(key, *prepared.plan, best);
  return {};
}

}  // namespace

size_t gemm_workspace(const Gemm&) { return kWorkspaceBytes; }

Status gemm(const Gemm& p, Scratch scratch, Stream stream) {
  if (const Status s = gemm_check(p); !s.ok()) return s;
  if (p.m == 0 || p.n == 0) return {};
  if (p.k == 0) return unsupported("gemm: k must be at least 1");
  if (p.a == nullptr || p.b == nullptr || p.c == nullptr)
    return invalid("gemm: A, B and C must not be null");
  if (scratch.data == nullptr || scratch.bytes < kWorkspaceBytes)
    return invalid("gemm: scratch is smaller than gemm_workspace()");
  return for_parts(p, [&](const Gemm& part) { return multiply(part, scratch.data, stream); });
}

Status gemm_tune(const Gemm& problem) {
  if (const Status s = gemm_check(problem); !s.ok()) return s;
  if (problem.m == 0 || problem.n == 0 || problem.k == 0) return {};
  return for_parts(problem, tune);
}

}  // namespace tigon
