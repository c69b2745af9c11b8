// SPDX-License-Identifier: Apache-2.0
// The model's forward pass once more in double, in plain loops: the oracle of losses and, over the
// numbers of tape.h, of gradients.
#pragma once
#include <cmath>
#include <numbers>
#include <vector>

#include "convergence/model.h"
#include "convergence/tape.h"

namespace tigon::convergence {

using Doubles = std::vector<double>;

class ReferenceModel {
 public:
  explicit ReferenceModel(const ModelConfig& config) : c_(config), layout_(config) {}

  // Mean loss of a batch for weights in the order of ParameterLayout.
  double loss(const Doubles& w, const Batch& batch) const {
    double sum = 0;
    for (size_t i = 0; i < sequences(batch); ++i) sum += loss_of_sequence(w, batch, i);
    return sum;
  }

  // Its derivatives by the weights.
  Doubles gradient(const Doubles& w, const Batch& batch) const {
    Doubles sum(w.size(), 0.0);
    Tape tape;
    for (size_t i = 0; i < sequences(batch); ++i) {
      tape.clear();  // of one sequence: those of several would not fit
      std::vector<Var> variables;
      for (double x : w) variables.push_back(tape.variable(x));
      const Doubles part = tape.gradient(loss_of_sequence(variables, batch, i), w.size());
      for (size_t j = 0; j < sum.size(); ++j) sum[j] += part[j];
    }
    return sum;
  }

 private:
  template <class S>
  using Values = std::vector<S>;

  static size_t at(int64_t i) { return static_cast<size_t>(i); }
  size_t sequences(const Batch& batch) const { return batch.input.size() / at(c_.sequence); }

  // Its share of the batch's mean.
  template <class S>
  S loss_of_sequence(const Values<S>& w, const Batch& batch, size_t sequence) const {
    const size_t n = at(c_.sequence), first = sequence * n;
    Values<S> x;
    for (size_t t = first; t < first + n; ++t)
      for (int j = 0; j < c_.hidden; ++j)
        x.push_back(w[at(layout_.embedding + batch.input[t] * c_.hidden + j)]);
    for (const auto& block : layout_.blocks) x = layer(w, block, x);
    const Values<S> normed = norm(w, layout_.final_norm, x);
    S sum = 0;
    if (!c_.frozen) sum += head_loss(w, layout_.head, normed, batch, first, 0);
    for (int k = 0; k < c_.medusa; ++k) {
      const auto& head = layout_.medusa[at(k)];
      Values<S> own = normed;
      const Values<S> before = linear(w, head.residual, c_.hidden, normed, c_.hidden);
      for (size_t i = 0; i < own.size(); ++i) own[i] += before[i] * sigmoid(before[i]);
      sum += S(std::pow(0.8, k + 1)) * head_loss(w, head.head, own, batch, first, k + 1);
    }
    return sum;
  }

  // The target so many places on within the sequence.
  int64_t target_of(const Batch& batch, size_t t, int ahead) const {
    const bool inside = t % at(c_.sequence) + at(ahead) < at(c_.sequence);
    return inside ? batch.target[t + at(ahead)] : kIgnored;
  }

  // Of the targets so many places on; the share of the mean over those that are learnt.
  template <class S>
  S head_loss(const Values<S>& w, int64_t head, const Values<S>& x, const Batch& batch,
              size_t first, int ahead) const {
    using std::exp, std::log, std::tanh;
    const Values<S> logits = linear(w, head, c_.vocabulary, x, c_.hidden);
    const size_t n = at(c_.sequence);
    S sum = 0;
    for (size_t t = first; t < first + n; ++t) {
      const int64_t target = target_of(batch, t, ahead);
      if (target == kIgnored) continue;
      Values<S> row(
          logits.begin() + static_cast<std::ptrdiff_t>((t - first) * at(c_.vocabulary)),
          logits.begin() + static_cast<std::ptrdiff_t>((t - first + 1) * at(c_.vocabulary)));
      const S cap = static_cast<double>(c_.softcap);
      if (c_.softcap > 0)
        for (S& logit : row) logit = cap * tanh(logit / cap);
      S total = 0;
      for (const S& logit : row) total += exp(logit);
      sum += log(total) - row[at(target)];
    }
    int64_t learnt = 0;
    for (size_t t = 0; t < batch.target.size(); ++t)
      learnt += target_of(batch, t, ahead) != kIgnored;
    return sum / S(static_cast<double>(learnt));
  }

  template <class S>
  static S sigmoid(const S& x) {
    using std::exp;
    return S(1.0) / (S(1.0) + exp(-x));
  }

  template <class S>
  S activation(const S& x) const {
    using std::erf, std::tanh;
    if (c_.activation == Activation::kSwiglu) return x * sigmoid(x);
    const S phi = c_.activation == Activation::kGegluTanh
                      ? tanh(S(std::sqrt(2 / std::numbers::pi)) * (x + S(0.044715) * x * x * x))
                      : erf(x / S(std::numbers::sqrt2));
    return S(0.5) * x * (S(1.0) + phi);
  }

  template <class S>
  S root(const S& mean_square) const {
    using std::sqrt;
    return S(1.0) / sqrt(mean_square + S(static_cast<double>(c_.norm_eps)));
  }

  // RMSNorm of n numbers in place.
  template <class S>
  void rms_norm(const Values<S>& w, int64_t weight, S* x, size_t n) const {
    S square = 0;
    for (size_t j = 0; j < n; ++j) square += x[j] * x[j];
    const S rstd = root(square / S(static_cast<double>(n)));
    for (size_t j = 0; j < n; ++j)
      x[j] = x[j] * rstd * (w[at(weight) + j] + S(static_cast<double>(c_.norm_offset)));
  }

  template <class S>
  void layer_norm(const Values<S>& w, const NormOffsets& offsets, S* x, size_t n) const {
    const S count = static_cast<double>(n);
    S sum = 0, square = 0;
    for (size_t j = 0; j < n; ++j) sum += x[j];
    const S mean = sum / count;
    for (size_t j = 0; j < n; ++j) square += (x[j] - mean) * (x[j] - mean);
    const S rstd = root(square / count);
    for (size_t j = 0; j < n; ++j)
      x[j] = (x[j] - mean) * rstd * w[at(offsets.weight) + j] + w[at(offsets.bias) + j];
  }

  template <class S>
  Values<S> norm(const Values<S>& w, const NormOffsets& offsets, const Values<S>& x) const {
    Values<S> y = x;
    for (size_t row = 0; row < x.size(); row += at(c_.hidden))
      if (c_.norm == NormKind::kRmsNorm)
        rms_norm(w, offsets.weight, &y[row], at(c_.hidden));
      else
        layer_norm(w, offsets, &y[row], at(c_.hidden));
    return y;
  }

  template <class S>
  void head_norms(const Values<S>& w, const ParameterLayout::Block& block, Values<S>& qkv) const {
    for (size_t row = 0; row < qkv.size(); row += at(c_.qkv_size()))
      for (int head = 0; head < c_.heads + c_.kv_heads; ++head)
        rms_norm(w, head < c_.heads ? block.q_norm : block.k_norm,
                 &qkv[row + at(head * c_.head_size)], at(c_.head_size));
  }

  // x [n, in] times a matrix [out, in] transposed.
  template <class S>
  static Values<S> linear(const Values<S>& w, int64_t weight, int64_t out, const Values<S>& x,
                          int64_t in) {
    Values<S> y;
    for (size_t row = 0; row < x.size(); row += at(in)) {
      const Values<S> part = dots(&x[row], &w[at(weight)], at(out), at(in));
      y.insert(y.end(), part.begin(), part.end());
    }
    return y;
  }

  template <class S>
  void rotate(Values<S>& qkv) const {
    const size_t row = at(c_.qkv_size()), half = at((c_.rotary > 0 ? c_.rotary : c_.head_size) / 2);
    for (size_t t = 0; t < qkv.size() / row; ++t)
      for (int head = 0; head < c_.heads + c_.kv_heads; ++head)
        for (size_t j = 0; j < half; ++j) {
          const double angle =
              static_cast<double>(t) *
              std::pow(c_.rope_theta, -static_cast<double>(j) / static_cast<double>(half));
          const size_t begin = t * row + at(head * c_.head_size);
          S& first = qkv[begin + (c_.rotary_interleaved ? 2 * j : j)];
          S& second = qkv[begin + (c_.rotary_interleaved ? 2 * j + 1 : half + j)];
          const S a = first, b = second, cosine = std::cos(angle), sine = std::sin(angle);
          first = a * cosine - b * sine;
          second = b * cosine + a * sine;
        }
  }

  template <class S>
  Values<S> attention(const Values<S>& qkv) const {
    using std::exp, std::tanh;
    const size_t row = at(c_.qkv_size()), d = at(c_.head_size);
    const double scale = 1 / std::sqrt(static_cast<double>(d));
    const S cap = static_cast<double>(c_.attention_softcap);
    Values<S> out(qkv.size() / row * at(c_.q_size()), S(0.0));
    for (size_t t = 0; t < qkv.size() / row; ++t)
      for (int head = 0; head < c_.heads; ++head) {
        const size_t kv = at(head / (c_.heads / c_.kv_heads));
        const size_t k_column = at(c_.q_size()) + kv * d, v_column = k_column + at(c_.kv_size());
        const S* q = &qkv[t * row + at(head) * d];
        S* to = &out[t * at(c_.q_size()) + at(head) * d];
        S total = 0;
        for (size_t key = 0; key <= t; ++key) {
          S score = 0;
          for (size_t j = 0; j < d; ++j) score += q[j] * qkv[key * row + k_column + j];
          score = score * S(scale);
          if (c_.attention_softcap > 0) score = cap * tanh(score / cap);
          const S p = exp(score);
          total += p;
          for (size_t j = 0; j < d; ++j) to[j] += p * qkv[key * row + v_column + j];
        }
        for (size_t j = 0; j < d; ++j) to[j] /= total;
      }
    return out;
  }

  template <class S>
  Values<S> layer(const Values<S>& w, const ParameterLayout::Block& block,
                  const Values<S>& x) const {
    Values<S> qkv = linear(w, block.qkv, c_.qkv_size(), norm(w, block.norm1, x), c_.hidden);
    if (c_.qk_norm) head_norms(w, block, qkv);
    rotate(qkv);
    const Values<S> branch = linear(w, block.o, c_.hidden, attention(qkv), c_.q_size());
    Values<S> middle(x.size());
    for (size_t i = 0; i < x.size(); ++i) middle[i] = x[i] + branch[i];
    const Values<S> gate_up = linear(w, block.gate_up, int64_t{2} * c_.intermediate,
                                     norm(w, block.norm2, middle), c_.hidden);
    Values<S> activated;
    const size_t f = at(c_.intermediate);
    for (size_t row = 0; row < gate_up.size(); row += 2 * f)
      for (size_t j = 0; j < f; ++j)
        activated.push_back(activation(gate_up[row + j]) * gate_up[row + f + j]);
    const Values<S> down = linear(w, block.down, c_.hidden, activated, c_.intermediate);
    for (size_t i = 0; i < x.size(); ++i) middle[i] += down[i];
    return middle;
  }

  ModelConfig c_;
  ParameterLayout layout_;
};

}  // namespace tigon::convergence
