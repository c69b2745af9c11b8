// SPDX-License-Identifier: Apache-2.0
// cuDNN's LSTM layers of one shape: their weights' places, forward and backward over a window.
#pragma once
#include <cudnn.h>

#include <vector>

#include "convergence/next_action/lstm_window.h"
#include "kernels/device/runtime.h"

namespace tigon::convergence::next_action {

// Windows of `window` steps over `lanes` lanes; rows are (step, lane), as in LstmShard. Everything
// throws naive::Failure when cuDNN fails, and runs on the default stream.
class CudnnCells {
 public:
  CudnnCells(const LstmLayout& layout, int lanes, int window);
  ~CudnnCells();
  CudnnCells(const CudnnCells&) = delete;
  CudnnCells& operator=(const CudnnCells&) = delete;

  // Floats of all weights of the layers, and where in them each of LstmLayout's from
  // layers[0].input to the head goes: the weight at layers[0].input + i is at place(i).
  int64_t floats() const { return static_cast<int64_t>(weight_bytes_ / sizeof(float)); }
  const std::vector<int64_t>& places() const { return places_; }

  // What lanes remember from one window to the next.
  void forget();
  void forget(int lane);
  // After forward() and backward() of a window.
  void carry();

  // x [rows, embedding] to y [rows, hidden]; weights [floats()].
  void forward(const float* weights, const float* x, float* y);
  // Of the window that forward() ran last: dx from dy; dweights become the gradient.
  void backward(const float* weights, const float* x, const float* y, const float* dy, float* dx,
                float* dweights);

 private:
  void find_places(const LstmLayout& layout);

  int lanes_, layers_, hidden_;
  cudnnRNNDescriptor_t rnn_ = nullptr;
  cudnnDropoutDescriptor_t dropout_ = nullptr;
  cudnnRNNDataDescriptor_t x_ = nullptr, y_ = nullptr;
  cudnnTensorDescriptor_t state_ = nullptr;
  size_t weight_bytes_ = 0;
  std::vector<int64_t> places_;
  DeviceBuffer lengths_, work_, reserve_;
  DeviceBuffer h_, c_, next_h_, next_c_;  // [layers, lanes, hidden]
};

}  // namespace tigon::convergence::next_action
