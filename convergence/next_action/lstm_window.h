// SPDX-License-Identifier: Apache-2.0
// Forward and backward of one window of steps over some lanes, by Eigen.
#pragma once
#include <Eigen/Core>
#include <vector>

#include "convergence/next_action/lanes.h"
#include "convergence/next_action/lstm.h"

namespace tigon::convergence::next_action {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// Where each parameter begins in the flat arrays of weights and gradients.
struct LstmLayout {
  struct Layer {
    int64_t inputs;                  // width of what comes from below
    int64_t input, recurrent, bias;  // [inputs, 4H], [H, 4H], [4H]; gates in the order i, f, g, o
  };
  int64_t vocabulary, embedding_width, hidden;
  int64_t embedding;  // [V, E]
  std::vector<Layer> layers;
  int64_t head, head_bias;  // [V, H], [V]
  int64_t total = 0;

  LstmLayout(int32_t vocabulary, const LstmSettings& settings);
};

// Some lanes, walked window by window; what they remember stays from one window to the next.
class LstmShard {
 public:
  LstmShard(const LstmLayout& layout, int lanes, int window);

  void forget();

  // Walks a window whose step (t, lane) is steps[t * lanes + lane] and leaves the last layer's
  // hidden states, row by row as the steps, in top().
  void forward(const float* weights, const std::vector<LaneStep>& steps);
  const Matrix& top() const { return layers_.back().h; }

  // After forward(): adds up the losses of the steps with a target and the gradient of their sum
  // times `scale`.
  double backward(const float* weights, const std::vector<LaneStep>& steps, float scale,
                  Floats& gradient);

 private:
  struct Layer {
    Matrix x, z, h, c;            // [T L, inputs], gates [T L, 4H], [T L, H] and [T L, H]
    Matrix h_before, c_before;    // what each step began with
    Matrix h_carried, c_carried;  // [L, H] from the last window
  };

  void forward_layer(const float* weights, const LstmLayout::Layer& at, Layer& layer,
                     const std::vector<LaneStep>& steps);
  // Replaces dh, the gradient of the layer's output, by that of its input.
  void backward_layer(const float* weights, const LstmLayout::Layer& at, const Layer& layer,
                      const std::vector<LaneStep>& steps, Matrix& dh, Floats& gradient);
  double head_backward(const float* weights, const std::vector<LaneStep>& steps, float scale,
                       Matrix& dh, Floats& gradient);

  const LstmLayout& layout_;
  int lanes_, window_;
  std::vector<Layer> layers_;
};

}  // namespace tigon::convergence::next_action
