// The primitives on a GPU: cuDNN for whole tensors, cuBLAS for products, kernels of index.cu where
// targets are indices.
#include <cublas_v2.h>

#include <algorithm>
#include <limits>

#include "kernels/device/runtime.h"
#include "reference/naive/cudnn_operation.h"
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

// cuDNN reduces over the first and second dimension of four.
Operand matrix(const Tensor& t) {
  const int64_t rows = t.shape[1], columns = t.shape[2];
  return {t.type, t.data, {rows, columns, 1, 1}, {columns, 1, columns, columns}, false};
}

// Library kernels may index with 32 bits: rows of a matrix at a time, as eager frameworks do.
template <class F>
void in_slabs(const Tensor& y, F&& f) {
  const int64_t row = std::max<int64_t>(1, std::max(y.shape[2], y.stride[1]));
  const int64_t most = std::max<int64_t>(1, std::numeric_limits<int32_t>::max() / row);
  if (y.shape[0] != 1) return f(0, y.shape[1]);
  for (int64_t begin = 0; begin < y.shape[1]; begin += most)
    f(begin, std::min(most, y.shape[1] - begin));
}

// Rows of a slab; a tensor of one row is repeated.
Tensor slab(const Tensor& t, int64_t begin, int64_t rows) {
  return t.shape[1] == 1 ? t : t.slice(1, begin, rows);
}

class LegacyMatrix {
 public:
  LegacyMatrix(int64_t rows, int64_t columns) {
    check(cudnnCreateTensorDescriptor(&raw_), "cudnnCreateTensorDescriptor");
    check(cudnnSetTensor4dDescriptor(raw_, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT,
                                     static_cast<int>(rows), static_cast<int>(columns), 1, 1),
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

constexpr float kOne = 1.0f, kZero = 0.0f;

cudaDataType_t cublas_type(DType type) {
  return type == DType::kBF16 ? CUDA_R_16BF : type == DType::kF16 ? CUDA_R_16F : CUDA_R_32F;
}

}  // namespace

void Eager::unary(Unary op, const Tensor& x, const Tensor& y) const {
  in_slabs(y, [&](int64_t begin, int64_t rows) {
    run({Operation::kPointwise,
         mode_of(op),
         {operand(slab(x, begin, rows)), operand(slab(y, begin, rows))}},
        stream_);
  });
}

void Eager::binary(Binary op, const Tensor& a, const Tensor& b, const Tensor& y) const {
  const bool backward = op == Binary::kSiluBackward || op == Binary::kTanhBackward;
  const auto kind = backward ? Operation::kPointwiseBackward : Operation::kPointwise;
  in_slabs(y, [&](int64_t begin, int64_t rows) {
    run({kind,
         mode_of(op),
         {operand(slab(a, begin, rows)), operand(slab(b, begin, rows)),
          operand(slab(y, begin, rows))}},
        stream_);
  });
}

void Eager::binary(Binary op, const Tensor& a, float b, const Tensor& y) const {
  in_slabs(y, [&](int64_t begin, int64_t rows) {
    run({Operation::kPointwise,
         mode_of(op),
         {operand(slab(a, begin, rows)), number(&b), operand(slab(y, begin, rows))}},
        stream_);
  });
}

void Eager::sum(const Tensor& x, Over over, const Tensor& y) const {
  const auto reduce = [&](const Tensor& from, const Tensor& to) {
    run({Operation::kReduction, CUDNN_REDUCE_TENSOR_ADD, {matrix(from), matrix(to)}}, stream_);
  };
  if (over == Over::kTokens) return reduce(x, y);
  in_slabs(
      x, [&](int64_t begin, int64_t rows) { reduce(slab(x, begin, rows), slab(y, begin, rows)); });
}

Tensor Eager::log_softmax(const Tensor& x) const {
  const Tensor y = empty(DType::kF32, x.shape);
  in_slabs(x, [&](int64_t begin, int64_t rows) {
    const LegacyMatrix shape(rows, x.shape[2]);
    check(cudnnSoftmaxForward(cudnn_handle(stream_), CUDNN_SOFTMAX_LOG, CUDNN_SOFTMAX_MODE_INSTANCE,
                              &kOne, shape.raw(), slab(x, begin, rows).data, &kZero, shape.raw(),
                              slab(y, begin, rows).data),
          "cudnnSoftmaxForward");
  });
  return y;
}

void Eager::log_softmax_backward(const Tensor& y, const Tensor& dy, const Tensor& dx) const {
  in_slabs(y, [&](int64_t begin, int64_t rows) {
    const LegacyMatrix shape(rows, y.shape[2]);
    check(cudnnSoftmaxBackward(cudnn_handle(stream_), CUDNN_SOFTMAX_LOG,
                               CUDNN_SOFTMAX_MODE_INSTANCE, &kOne, shape.raw(),
                               slab(y, begin, rows).data, shape.raw(), slab(dy, begin, rows).data,
                               &kZero, shape.raw(), slab(dx, begin, rows).data),
          "cudnnSoftmaxBackward");
  });
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
