// SPDX-License-Identifier: Apache-2.0
// The primitives on a GPU: cuDNN for whole tensors, cuBLAS for products, kernels of index.cu where
// targets are indices.
#include <cublas_v2.h>

#include <algorithm>
#include <limits>

#include "kernels/device/runtime.h"
#include "reference/naive/cudnn_pointwise.h"
#include "reference/naive/index.h"

namespace tigon::naive {
namespace {

using tigon::naive::check;  // of cuDNN's status

void check(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS)
    fail(Status::kLaunchFailed, std::string(what) + ": " + cublasGetStatusString(status));
}

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess)
    fail(Status::kLaunchFailed, std::string(what) + ": " + cudaGetErrorString(error));
}

cublasHandle_t cublas_handle(Stream stream) {
  // Never destroyed: at the end of a thread the driver may be gone.
  thread_local cublasHandle_t handle = nullptr;
  if (handle == nullptr) check(cublasCreate(&handle), "cublasCreate");
  check(cublasSetStream(handle, stream), "cublasSetStream");
  return handle;
}

cudnnPointwiseMode_t mode_of(Unary op) {
  switch (op) {
    case Unary::kCopy:
      return CUDNN_POINTWISE_IDENTITY;
    case Unary::kNegate:
      return CUDNN_POINTWISE_NEG;
    case Unary::kRsqrt:
      return CUDNN_POINTWISE_RSQRT;
    case Unary::kExp:
      return CUDNN_POINTWISE_EXP;
    case Unary::kLog:
      return CUDNN_POINTWISE_LOG;
    case Unary::kTanh:
      return CUDNN_POINTWISE_TANH_FWD;
    case Unary::kSilu:
      return CUDNN_POINTWISE_SWISH_FWD;
  }
  fail(Status::kUnsupported, "naive: unknown unary step");
}

cudnnPointwiseMode_t mode_of(Binary op) {
  switch (op) {
    case Binary::kAdd:
      return CUDNN_POINTWISE_ADD;
    case Binary::kSub:
      return CUDNN_POINTWISE_SUB;
    case Binary::kMul:
      return CUDNN_POINTWISE_MUL;
    case Binary::kDiv:
      return CUDNN_POINTWISE_DIV;
    case Binary::kMax:
      return CUDNN_POINTWISE_MAX;
    case Binary::kSiluBackward:
      return CUDNN_POINTWISE_SWISH_BWD;
    case Binary::kTanhBackward:
      return CUDNN_POINTWISE_TANH_BWD;
  }
  fail(Status::kUnsupported, "naive: unknown binary step");
}

// The stride of a dimension of size 1 has no meaning and may be 0: dense there.
Operand operand(const Tensor& t) {
  Operand o{t.type, t.data, {t.shape.begin(), t.shape.end()}, {0, 0, 1}, false};
  for (int i = 1; i >= 0; --i)
    o.strides[i] = t.shape[i] == 1 ? o.strides[i + 1] * t.shape[i + 1] : t.stride[i];
  return o;
}

Operand number(const float* value) { return {DType::kF32, value, {1, 1, 1}, {1, 1, 1}, true}; }

// Library kernels may index with 32 bits and deal heads' tokens to a grid's z: some tokens at a
// time, as eager frameworks do.
constexpr int64_t kMostTokensOfHeads = 32768;

struct Slab {
  int dimension;  // of the tokens
  int64_t begin, count;
  // These tokens of a tensor; a dimension of size 1 is repeated.
  Tensor of(const Tensor& t) const {
    return t.shape[dimension] == 1 ? t : t.slice(dimension, begin, count);
  }
};

template <class F>
void in_slabs(const Tensor& y, F&& f) {
  const bool heads = y.shape[0] != 1;
  const int64_t row = std::max<int64_t>({1, y.shape[2], y.stride[1]});
  const int64_t most =
      heads ? kMostTokensOfHeads : std::max<int64_t>(1, std::numeric_limits<int32_t>::max() / row);
  const int dimension = heads ? 0 : 1;
  for (int64_t begin = 0; begin < y.shape[dimension]; begin += most)
    f(Slab{dimension, begin, std::min(most, y.shape[dimension] - begin)});
}

class LegacyMatrix {
 public:
  LegacyMatrix(int64_t rows, int64_t columns, cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    check(cudnnCreateTensorDescriptor(&raw_), "cudnnCreateTensorDescriptor");
    check(cudnnSetTensor4dDescriptor(raw_, CUDNN_TENSOR_NCHW, type, static_cast<int>(rows),
                                     static_cast<int>(columns), 1, 1),
          "cudnnSetTensor4dDescriptor");
  }
  ~LegacyMatrix() {
    if (raw_ != nullptr) cudnnDestroyTensorDescriptor(raw_);
  }
  LegacyMatrix(const LegacyMatrix&) = delete;
  LegacyMatrix& operator=(const LegacyMatrix&) = delete;
  cudnnTensorDescriptor_t raw() const { return raw_; }

 private:
  cudnnTensorDescriptor_t raw_ = nullptr;
};

// Never destroyed, as the handle.
cudnnReduceTensorDescriptor_t sum_descriptor() {
  static const cudnnReduceTensorDescriptor_t descriptor = [] {
    cudnnReduceTensorDescriptor_t d = nullptr;
    check(cudnnCreateReduceTensorDescriptor(&d), "cudnnCreateReduceTensorDescriptor");
    check(cudnnSetReduceTensorDescriptor(d, CUDNN_REDUCE_TENSOR_ADD, CUDNN_DATA_FLOAT,
                                         CUDNN_PROPAGATE_NAN, CUDNN_REDUCE_TENSOR_NO_INDICES,
                                         CUDNN_32BIT_INDICES),
          "cudnnSetReduceTensorDescriptor");
    return d;
  }();
  return descriptor;
}

constexpr float kOne = 1.0f, kZero = 0.0f;

cudnnDataType_t cudnn_type(DType type) {
  return type == DType::kBF16  ? CUDNN_DATA_BFLOAT16
         : type == DType::kF16 ? CUDNN_DATA_HALF
                               : CUDNN_DATA_FLOAT;
}

cudaDataType_t cublas_type(DType type) {
  return type == DType::kBF16 ? CUDA_R_16BF : type == DType::kF16 ? CUDA_R_16F : CUDA_R_32F;
}

void library_softmax(cudnnSoftmaxAlgorithm_t algorithm, const Tensor& x, const Tensor& y,
                     Stream stream) {
  in_slabs(x, [&](const Slab& slab) {
    const LegacyMatrix shape(slab.count, x.shape[2], cudnn_type(x.type));
    check(cudnnSoftmaxForward(cudnn_handle(stream), algorithm, CUDNN_SOFTMAX_MODE_INSTANCE, &kOne,
                              shape.raw(), slab.of(x).data, &kZero, shape.raw(), slab.of(y).data),
          "cudnnSoftmaxForward");
  });
}

void library_softmax_backward(cudnnSoftmaxAlgorithm_t algorithm, const Tensor& y, const Tensor& dy,
                              const Tensor& dx, Stream stream) {
  in_slabs(y, [&](const Slab& slab) {
    const LegacyMatrix shape(slab.count, y.shape[2], cudnn_type(y.type));
    check(cudnnSoftmaxBackward(cudnn_handle(stream), algorithm, CUDNN_SOFTMAX_MODE_INSTANCE, &kOne,
                               shape.raw(), slab.of(y).data, shape.raw(), slab.of(dy).data, &kZero,
                               shape.raw(), slab.of(dx).data),
          "cudnnSoftmaxBackward");
  });
}

}  // namespace

// In units of 2^-24, so 2^-15: cuDNN approximates tanh, and where t is near 1 a softcapped gradient
// takes that error times 1 / (1 - t^2).
double tanh_error() { return 512; }

void Eager::unary(Unary op, const Tensor& x, const Tensor& y) const {
  in_slabs(y, [&](const Slab& slab) {
    run({mode_of(op), false, {operand(slab.of(x)), operand(slab.of(y))}}, stream_);
  });
}

void Eager::binary(Binary op, const Tensor& a, const Tensor& b, const Tensor& y) const {
  const bool derivative = op == Binary::kSiluBackward || op == Binary::kTanhBackward;
  in_slabs(y, [&](const Slab& slab) {
    run({mode_of(op), derivative, {operand(slab.of(a)), operand(slab.of(b)), operand(slab.of(y))}},
        stream_);
  });
}

void Eager::binary(Binary op, const Tensor& a, float b, const Tensor& y) const {
  in_slabs(y, [&](const Slab& slab) {
    run({mode_of(op), false, {operand(slab.of(a)), number(&b), operand(slab.of(y))}}, stream_);
  });
}

// The older API, because it is documented to give the same bits in every run; the backend API's
// engine accepts a sum only when it need not be deterministic (cuDNN 9.19).
void Eager::sum(const Tensor& x, Over over, float scale, const Tensor& y) const {
  if (x.size() == y.size()) return binary(Binary::kMul, x, scale, y);  // cuDNN refuses these
  const auto reduce = [&](const Tensor& from, const Tensor& to) {
    const LegacyMatrix in(from.shape[1], from.shape[2]), out(to.shape[1], to.shape[2]);
    const cudnnHandle_t handle = cudnn_handle(stream_);
    size_t bytes = 0;
    check(cudnnGetReductionWorkspaceSize(handle, sum_descriptor(), in.raw(), out.raw(), &bytes),
          "cudnnGetReductionWorkspaceSize");
    const Tensor workspace = empty(DType::kU8, {1, 1, static_cast<int64_t>(bytes)});
    check(cudnnReduceTensor(handle, sum_descriptor(), nullptr, 0, workspace.data, bytes, &scale,
                            in.raw(), from.data, &kZero, out.raw(), to.data),
          "cudnnReduceTensor");
  };
  if (over == Over::kTokens) return reduce(x, y);
  in_slabs(x, [&](const Slab& slab) { reduce(slab.of(x), slab.of(y)); });
}

Tensor Eager::log_softmax(const Tensor& logits) const {
  const bool gaps = logits.stride[1] != logits.shape[2] && logits.shape[1] > 1;
  const Tensor x = gaps ? unary(Unary::kCopy, logits) : logits;
  const Tensor y = empty(DType::kF32, x.shape);
  library_softmax(CUDNN_SOFTMAX_LOG, x, y, stream_);
  return y;
}

void Eager::log_softmax_backward(const Tensor& y, const Tensor& dy, const Tensor& dx) const {
  library_softmax_backward(CUDNN_SOFTMAX_LOG, y, dy, dx, stream_);
}

void Eager::softmax(const Tensor& x, const Tensor& y) const {
  library_softmax(CUDNN_SOFTMAX_ACCURATE, x, y, stream_);
}

void Eager::softmax_backward(const Tensor& y, const Tensor& dy, const Tensor& dx) const {
  library_softmax_backward(CUDNN_SOFTMAX_ACCURATE, y, dy, dx, stream_);
}

// cuBLAS is column-major: c^T [n, m] = op(b)^T op(a)^T.
void Eager::multiply(const Tensor& a, bool transpose_a, const Tensor& b, bool transpose_b,
                     const Tensor& c) const {
  const auto m = static_cast<int>(c.shape[1]), n = static_cast<int>(c.shape[2]);
  const auto k = static_cast<int>(transpose_a ? a.shape[1] : a.shape[2]);
  const cudaDataType_t type = cublas_type(a.type);
  check(cublasGemmEx(cublas_handle(stream_), transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N,
                     transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N, n, m, k, &kOne, b.data, type,
                     static_cast<int>(b.stride[1]), a.data, type, static_cast<int>(a.stride[1]),
                     &kZero, c.data, type, static_cast<int>(c.stride[1]), CUBLAS_COMPUTE_32F,
                     CUBLAS_GEMM_DEFAULT),
        "cublasGemmEx");
}

Tensor Eager::not_ignored(const Targets& target, int64_t ignore_index) const {
  const Tensor y = empty(DType::kF32, {1, target.shape[0], 1});
  check(index::not_ignored(target, ignore_index, y, stream_), "not_ignored");
  return y;
}

Tensor Eager::gather(const Tensor& x, const Targets& target) const {
  const Tensor y = empty(DType::kF32, {1, x.shape[1], 1});
  check(index::gather(x, target, y, stream_), "gather");
  return y;
}

void Eager::take_rows(const Tensor& x, const int64_t* row, const Tensor& y) const {
  check(index::take_rows(x, row, y, stream_), "take_rows");
}

void Eager::scatter(const Tensor& y, const Targets& target, const Tensor& value) const {
  check(index::scatter(y, target, value, stream_), "scatter");
}

void Eager::log_sum_exp(const Tensor& x, const Tensor& log_softmax, const Tensor& lse) const {
  check(index::log_sum_exp(x, log_softmax, lse, stream_), "log_sum_exp");
}

void Eager::zero_ignored(const Tensor& y, const Targets& target, int64_t ignore_index) const {
  check(index::zero_ignored(y, target, ignore_index, stream_), "zero_ignored");
}

}  // namespace tigon::naive
