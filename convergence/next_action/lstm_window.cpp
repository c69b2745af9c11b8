// SPDX-License-Identifier: Apache-2.0
// z = x Wx + h' Wh + b;  i, f, o = sigmoid, g = tanh;  c = f c' + i g;  h = o tanh(c)
#include "convergence/next_action/lstm_window.h"

#include <algorithm>
#include <cmath>

namespace tigon::convergence::next_action {
namespace {

using Weights = Eigen::Map<const Matrix>;
using Gradients = Eigen::Map<Matrix>;
using Row = Eigen::RowVectorXf;

}  // namespace

LstmLayout::LstmLayout(int32_t v, const LstmSettings& s)
    : vocabulary(v), embedding_width(s.embedding), hidden(s.hidden) {
  const auto take = [&](int64_t count) {
    const int64_t at = total;
    total += count;
    return at;
  };
  embedding = take(vocabulary * embedding_width);
  for (int l = 0; l < s.layers; ++l) {
    Layer layer{};
    layer.inputs = l == 0 ? embedding_width : hidden;
    layer.input = take(layer.inputs * 4 * hidden);
    layer.recurrent = take(hidden * 4 * hidden);
    layer.bias = take(4 * hidden);
    layers.push_back(layer);
  }
  head = take(vocabulary * hidden);
  head_bias = take(vocabulary);
}

LstmShard::LstmShard(const LstmLayout& layout, int lanes, int window)
    : layout_(layout), lanes_(lanes), window_(window), layers_(layout.layers.size()) {
  const int64_t rows = int64_t{lanes} * window, h = layout.hidden;
  for (size_t l = 0; l < layers_.size(); ++l) {
    Layer& layer = layers_[l];
    layer.x.setZero(rows, layout.layers[l].inputs);
    layer.z.setZero(rows, 4 * h);
    for (Matrix* m : {&layer.h, &layer.c, &layer.h_before, &layer.c_before}) m->setZero(rows, h);
  }
  forget();
}

void LstmShard::forget() {
  for (Layer& layer : layers_) {
    layer.h_carried.setZero(lanes_, layout_.hidden);
    layer.c_carried.setZero(lanes_, layout_.hidden);
  }
}

void LstmShard::forward(const float* w, const std::vector<LaneStep>& steps) {
  const Weights embedding(w + layout_.embedding, layout_.vocabulary, layout_.embedding_width);
  for (size_t i = 0; i < steps.size(); ++i)
    layers_[0].x.row(static_cast<int64_t>(i)) = embedding.row(steps[i].input);
  for (size_t l = 0; l < layers_.size(); ++l) {
    if (l > 0) layers_[l].x = layers_[l - 1].h;
    forward_layer(w, layout_.layers[l], layers_[l], steps);
  }
}

void LstmShard::forward_layer(const float* w, const LstmLayout::Layer& at, Layer& layer,
                              const std::vector<LaneStep>& steps) {
  const int64_t h = layout_.hidden;
  const Weights recurrent(w + at.recurrent, h, 4 * h);
  layer.z.noalias() = layer.x * Weights(w + at.input, at.inputs, 4 * h);
  layer.z.rowwise() += Eigen::Map<const Row>(w + at.bias, 4 * h);
  for (int t = 0; t < window_; ++t) {
    const int64_t first = int64_t{t} * lanes_;
    const auto now = [&](Matrix& m) { return m.middleRows(first, lanes_); };
    auto h_before = now(layer.h_before), c_before = now(layer.c_before);
    h_before = layer.h_carried;
    c_before = layer.c_carried;
    for (int lane = 0; lane < lanes_; ++lane)
      if (steps[static_cast<size_t>(first + lane)].fresh) {
        h_before.row(lane).setZero();
        c_before.row(lane).setZero();
      }
    auto z = now(layer.z);
    z.noalias() += h_before * recurrent;
    z.leftCols(2 * h) = z.leftCols(2 * h).array().logistic();
    z.middleCols(2 * h, h) = z.middleCols(2 * h, h).array().tanh();
    z.rightCols(h) = z.rightCols(h).array().logistic();
    layer.c_carried = z.middleCols(h, h).cwiseProduct(c_before) +
                      z.leftCols(h).cwiseProduct(z.middleCols(2 * h, h));
    layer.h_carried = z.rightCols(h).array() * layer.c_carried.array().tanh();
    now(layer.c) = layer.c_carried;
    now(layer.h) = layer.h_carried;
  }
}

double LstmShard::backward(const float* w, const std::vector<LaneStep>& steps, float scale,
                           Floats& gradient) {
  Matrix dh;
  const double loss = head_backward(w, steps, scale, dh, gradient);
  for (size_t l = layers_.size(); l-- > 0;)
    backward_layer(w, layout_.layers[l], layers_[l], steps, dh, gradient);
  Gradients embedding(gradient.data() + layout_.embedding, layout_.vocabulary,
                      layout_.embedding_width);
  for (size_t i = 0; i < steps.size(); ++i)
    embedding.row(steps[i].input) += dh.row(static_cast<int64_t>(i));
  return loss;
}

// Block by block, so that logits stay in the cache.
double LstmShard::head_backward(const float* w, const std::vector<LaneStep>& steps, float scale,
                                Matrix& dh, Floats& gradient) {
  constexpr int64_t kRows = 64;
  const int64_t v = layout_.vocabulary, h = layout_.hidden;
  const Weights head(w + layout_.head, v, h);
  const Eigen::Map<const Row> bias(w + layout_.head_bias, v);
  Gradients dhead(gradient.data() + layout_.head, v, h);
  Eigen::Map<Row> dbias(gradient.data() + layout_.head_bias, v);
  const auto rows = static_cast<int64_t>(steps.size());
  dh.setZero(rows, h);
  Matrix p;
  double loss = 0;
  for (int64_t first = 0; first < rows; first += kRows) {
    const int64_t count = std::min(kRows, rows - first);
    const auto x = top().middleRows(first, count);
    p.noalias() = x * head.transpose();
    p.rowwise() += bias;
    for (int64_t i = 0; i < count; ++i) {
      const int32_t target = steps[static_cast<size_t>(first + i)].target;
      auto row = p.row(i).array();
      if (target < 0) {
        row.setZero();
        continue;
      }
      row -= row.maxCoeff();
      const float logit = row(target);
      row = row.exp();
      const float sum = row.sum();
      loss += std::log(static_cast<double>(sum)) - static_cast<double>(logit);
      row *= scale / sum;
      row(target) -= scale;
    }
    dh.middleRows(first, count).noalias() = p * head;
    dhead.noalias() += p.transpose() * x;
    dbias += p.colwise().sum();
  }
  return loss;
}

void LstmShard::backward_layer(const float* w, const LstmLayout::Layer& at, const Layer& layer,
                               const std::vector<LaneStep>& steps, Matrix& dh, Floats& gradient) {
  const int64_t h = layout_.hidden;
  const Weights recurrent(w + at.recurrent, h, 4 * h);
  Matrix dz(layer.z.rows(), 4 * h);
  Matrix dh_after = Matrix::Zero(lanes_, h), dc_after = dh_after;  // from the step after
  for (int t = window_ - 1; t >= 0; --t) {
    const int64_t first = int64_t{t} * lanes_;
    const auto z = layer.z.middleRows(first, lanes_).array();
    const auto i = z.leftCols(h), f = z.middleCols(h, h), g = z.middleCols(2 * h, h),
               o = z.rightCols(h);
    auto d = dz.middleRows(first, lanes_).array();
    const Matrix dh_now = dh.middleRows(first, lanes_) + dh_after;
    const Matrix tanh_c = layer.c.middleRows(first, lanes_).array().tanh();
    const Matrix dc = dc_after.array() + dh_now.array() * o * (1 - tanh_c.array().square());
    const auto c_before = layer.c_before.middleRows(first, lanes_).array();
    d.leftCols(h) = dc.array() * g * i * (1 - i);
    d.middleCols(h, h) = dc.array() * c_before * f * (1 - f);
    d.middleCols(2 * h, h) = dc.array() * i * (1 - g.square());
    d.rightCols(h) = dh_now.array() * tanh_c.array() * o * (1 - o);
    dc_after = dc.array() * f;
    dh_after.noalias() = dz.middleRows(first, lanes_) * recurrent.transpose();
    for (int lane = 0; lane < lanes_; ++lane)
      if (steps[static_cast<size_t>(first + lane)].fresh) {
        dh_after.row(lane).setZero();
        dc_after.row(lane).setZero();
      }
  }
  const auto add = [&](int64_t offset, const Matrix& x) {
    Gradients(gradient.data() + offset, x.cols(), 4 * h).noalias() += x.transpose() * dz;
  };
  add(at.input, layer.x);
  add(at.recurrent, layer.h_before);
  Eigen::Map<Row>(gradient.data() + at.bias, 4 * h) += dz.colwise().sum();
  dh.noalias() = dz * Weights(w + at.input, at.inputs, 4 * h).transpose();
}

}  // namespace tigon::convergence::next_action
