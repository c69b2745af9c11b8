// SPDX-License-Identifier: Apache-2.0
// cuDNN's API for recurrent networks, version 8 and later.
#include "convergence/next_action/cudnn_cells.h"

#include "reference/naive/cudnn_pointwise.h"

namespace tigon::convergence::next_action {
namespace {

using naive::check;

constexpr int kGates = 4;  // in the order i, f, g, o, ours and cuDNN's

cudnnRNNDataDescriptor_t rows_of(int lanes, int window, int64_t width) {
  cudnnRNNDataDescriptor_t d = nullptr;
  check(cudnnCreateRNNDataDescriptor(&d), "cudnnCreateRNNDataDescriptor");
  const std::vector<int> lengths(static_cast<size_t>(lanes), window);
  check(cudnnSetRNNDataDescriptor(d, CUDNN_DATA_FLOAT, CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED,
                                  window, lanes, static_cast<int>(width), lengths.data(), nullptr),
        "cudnnSetRNNDataDescriptor");
  return d;
}

// Not TF32.
void describe(cudnnRNNDescriptor_t rnn, const LstmLayout& layout,
              cudnnDropoutDescriptor_t dropout) {
  const auto hidden = static_cast<int32_t>(layout.hidden);
  check(cudnnSetRNNDescriptor_v8(
            rnn, CUDNN_RNN_ALGO_STANDARD, CUDNN_LSTM, CUDNN_RNN_SINGLE_INP_BIAS,
            CUDNN_UNIDIRECTIONAL, CUDNN_LINEAR_INPUT, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT,
            CUDNN_FMA_MATH, static_cast<int32_t>(layout.embedding_width), hidden, hidden,
            static_cast<int32_t>(layout.layers.size()), dropout, CUDNN_RNN_PADDED_IO_DISABLED),
        "cudnnSetRNNDescriptor_v8");
}

}  // namespace

CudnnCells::CudnnCells(const LstmLayout& layout, int lanes, int window)
    : lanes_(lanes),
      layers_(static_cast<int>(layout.layers.size())),
      hidden_(static_cast<int>(layout.hidden)) {
  const cudnnHandle_t handle = naive::cudnn_handle(nullptr);
  check(cudnnCreateDropoutDescriptor(&dropout_), "cudnnCreateDropoutDescriptor");
  check(cudnnSetDropoutDescriptor(dropout_, handle, 0.0f, nullptr, 0, 0),
        "cudnnSetDropoutDescriptor");
  check(cudnnCreateRNNDescriptor(&rnn_), "cudnnCreateRNNDescriptor");
  describe(rnn_, layout, dropout_);
  x_ = rows_of(lanes, window, layout.embedding_width);
  y_ = rows_of(lanes, window, layout.hidden);
  check(cudnnCreateTensorDescriptor(&state_), "cudnnCreateTensorDescriptor");
  const int sizes[] = {layers_, lanes_, hidden_}, strides[] = {lanes_ * hidden_, hidden_, 1};
  check(cudnnSetTensorNdDescriptor(state_, CUDNN_DATA_FLOAT, 3, sizes, strides),
        "cudnnSetTensorNdDescriptor");
  check(cudnnGetRNNWeightSpaceSize(handle, rnn_, &weight_bytes_), "cudnnGetRNNWeightSpaceSize");
  size_t work = 0, reserve = 0;
  check(cudnnGetRNNTempSpaceSizes(handle, rnn_, CUDNN_FWD_MODE_TRAINING, x_, &work, &reserve),
        "cudnnGetRNNTempSpaceSizes");
  work_ = DeviceBuffer(work);
  reserve_ = DeviceBuffer(reserve);
  const std::vector<int32_t> lengths(static_cast<size_t>(lanes), window);
  lengths_ = DeviceBuffer(lengths.size() * sizeof(int32_t));
  device_upload(lengths_.data(), lengths.data(), lengths_.bytes());
  for (DeviceBuffer* b : {&h_, &c_, &next_h_, &next_c_})
    *b = DeviceBuffer(static_cast<size_t>(layers_) * lanes_ * hidden_ * sizeof(float));
  find_places(layout);
  forget();
}

CudnnCells::~CudnnCells() {
  if (state_ != nullptr) cudnnDestroyTensorDescriptor(state_);
  for (cudnnRNNDataDescriptor_t d : {x_, y_})
    if (d != nullptr) cudnnDestroyRNNDataDescriptor(d);
  if (rnn_ != nullptr) cudnnDestroyRNNDescriptor(rnn_);
  if (dropout_ != nullptr) cudnnDestroyDropoutDescriptor(dropout_);
}

// cuDNN has a matrix [hidden, inputs] for each gate, we have one [inputs, 4 hidden] for all.
void CudnnCells::find_places(const LstmLayout& layout) {
  const int64_t h = hidden_, begin = layout.layers.front().input;
  places_.assign(static_cast<size_t>(layout.head - begin), -1);
  const DeviceBuffer space(weight_bytes_);
  cudnnTensorDescriptor_t matrix = nullptr, bias = nullptr;
  check(cudnnCreateTensorDescriptor(&matrix), "cudnnCreateTensorDescriptor");
  check(cudnnCreateTensorDescriptor(&bias), "cudnnCreateTensorDescriptor");
  for (int l = 0; l < layers_; ++l) {
    const LstmLayout::Layer& layer = layout.layers[static_cast<size_t>(l)];
    for (int id = 0; id < 2 * kGates; ++id) {
      void *m = nullptr, *b = nullptr;
      check(cudnnGetRNNWeightParams(naive::cudnn_handle(nullptr), rnn_, l, weight_bytes_,
                                    space.data(), id, matrix, &m, bias, &b),
            "cudnnGetRNNWeightParams");
      const auto offset = [&](const void* p) {
        return static_cast<const float*>(p) - space.as<float>();
      };
      const int64_t gate = id % kGates, inputs = id < kGates ? layer.inputs : h;
      const int64_t from = (id < kGates ? layer.input : layer.recurrent) - begin;
      for (int64_t i = 0; i < inputs; ++i)
        for (int64_t j = 0; j < h; ++j)
          places_[static_cast<size_t>(from + i * kGates * h + gate * h + j)] =
              offset(m) + j * inputs + i;
      for (int64_t j = 0; j < h && id < kGates; ++j)
        places_[static_cast<size_t>(layer.bias - begin + gate * h + j)] = offset(b) + j;
    }
  }
  cudnnDestroyTensorDescriptor(matrix);
  cudnnDestroyTensorDescriptor(bias);
}

void CudnnCells::forget() {
  for (const DeviceBuffer* b : {&h_, &c_}) device_fill(b->data(), 0, b->bytes());
}

void CudnnCells::forget(int lane) {
  for (const DeviceBuffer* b : {&h_, &c_})
    for (int l = 0; l < layers_; ++l)
      device_fill(b->as<float>() + (int64_t{l} * lanes_ + lane) * hidden_, 0,
                  static_cast<size_t>(hidden_) * sizeof(float));
}

void CudnnCells::carry() {
  device_copy(h_.data(), next_h_.data(), h_.bytes());
  device_copy(c_.data(), next_c_.data(), c_.bytes());
}

void CudnnCells::forward(const float* weights, const float* x, float* y) {
  check(cudnnRNNForward(naive::cudnn_handle(nullptr), rnn_, CUDNN_FWD_MODE_TRAINING,
                        lengths_.as<int32_t>(), x_, x, y_, y, state_, h_.data(), next_h_.data(),
                        state_, c_.data(), next_c_.data(), weight_bytes_, weights, work_.bytes(),
                        work_.data(), reserve_.bytes(), reserve_.data()),
        "cudnnRNNForward");
}

void CudnnCells::backward(const float* weights, const float* x, const float* y, const float* dy,
                          float* dx, float* dweights) {
  const cudnnHandle_t handle = naive::cudnn_handle(nullptr);
  check(cudnnRNNBackwardData_v8(handle, rnn_, lengths_.as<int32_t>(), y_, y, dy, x_, dx, state_,
                                h_.data(), nullptr, nullptr, state_, c_.data(), nullptr, nullptr,
                                weight_bytes_, weights, work_.bytes(), work_.data(),
                                reserve_.bytes(), reserve_.data()),
        "cudnnRNNBackwardData_v8");
  device_fill(dweights, 0, weight_bytes_);  // what follows adds
  check(cudnnRNNBackwardWeights_v8(handle, rnn_, CUDNN_WGRAD_MODE_ADD, lengths_.as<int32_t>(), x_,
                                   x, state_, h_.data(), y_, y, weight_bytes_, dweights,
                                   work_.bytes(), work_.data(), reserve_.bytes(), reserve_.data()),
        "cudnnRNNBackwardWeights_v8");
}

}  // namespace tigon::convergence::next_action
