// The model's forward pass once more in double, in plain loops: the oracle of losses and, over the
// numbers of tape.h, of gradients.
#pragma once
#include <algorithm>
#include <cmath>
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
    for (size_t i = 0; i < sequences(batch); ++i) {
      Tape tape;  // of one sequence: those of several would not fit
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
    using std::exp, std::log;
    const size_t n = at(c_.sequence), first = sequence * n;
    Values<S> x;
    for (size_t t = first; t < first + n; ++t)
      for (int j = 0; j < c_.hidden; ++j)
        x.push_back(w[at(layout_.embedding + batch.input[t] * c_.hidden + j)]);
    for (const auto& block : layout_.blocks) x = layer(w, block, x);
    const Values<S> logits =
        linear(w, layout_.head, c_.vocabulary, norm(w, layout_.final_norm, x), c_.hidden);
    S sum = 0;
    for (size_t t = 0; t < n; ++t) {
      if (batch.target[first + t] == kIgnored) continue;
      const S* row = &logits[t * at(c_.vocabulary)];
      S total = 0;
      for (int v = 0; v < c_.vocabulary; ++v) total += exp(row[v]);
      sum += log(total) - row[batch.target[first + t]];
    }
    const auto counted = static_cast<double>(
        batch.target.size() -
        static_cast<size_t>(std::count(batch.target.begin(), batch.target.end(), kIgnored)));
    return sum / S(counted);
  }

  template <class S>
  Values<S> norm(const Values<S>& w, int64_t weight, const Values<S>& x) const {
    using std::sqrt;
    Values<S> y(x.size());
    const auto h = static_cast<double>(c_.hidden);
    for (size_t row = 0; row < x.size(); row += at(c_.hidden)) {
      S square = 0;
      for (size_t j = 0; j < at(c_.hidden); ++j) square += x[row + j] * x[row + j];
      const S rstd = S(1.0) / sqrt(square / S(h) + S(static_cast<double>(c_.norm_eps)));
      for (size_t j = 0; j < at(c_.hidden); ++j) y[row + j] = x[row + j] * rstd * w[at(weight) + j];
    }
    return y;
  }

  // x [n, in] times a matrix [out, in] transposed.
  template <class S>
  static Values<S> linear(const Values<S>& w, int64_t weight, int64_t out, const Values<S>& x,
                          int64_t in) {
    Values<S> y;
    for (size_t row = 0; row < x.size(); row += at(in))
      for (int64_t o = 0; o < out; ++o) {
        S sum = 0;
        for (int64_t j = 0; j < in; ++j) sum += x[row + at(j)] * w[at(weight + o * in + j)];
        y.push_back(sum);
      }
    return y;
  }

  template <class S>
  void rotate(Values<S>& qkv) const {
    const size_t row = at(c_.qkv_size()), half = at(c_.head_size / 2);
    for (size_t t = 0; t < qkv.size() / row; ++t)
      for (int head = 0; head < c_.heads + c_.kv_heads; ++head)
        for (size_t j = 0; j < half; ++j) {
          const double angle =
              static_cast<double>(t) *
              std::pow(c_.rope_theta, -static_cast<double>(j) / static_cast<double>(half));
          S& first = qkv[t * row + at(head * c_.head_size) + j];
          S& second = qkv[t * row + at(head * c_.head_size) + half + j];
          const S a = first, b = second, cosine = std::cos(angle), sine = std::sin(angle);
          first = a * cosine - b * sine;
          second = b * cosine + a * sine;
        }
  }

  template <class S>
  Values<S> attention(const Values<S>& qkv) const {
    using std::exp;
    const size_t row = at(c_.qkv_size()), d = at(c_.head_size);
    const double scale = 1 / std::sqrt(static_cast<double>(d));
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
          const S p = exp(score * S(scale));
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
    using std::exp;
    Values<S> qkv = linear(w, block.qkv, c_.qkv_size(), norm(w, block.norm1, x), c_.hidden);
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
        activated.push_back(gate_up[row + j] / (S(1.0) + exp(-gate_up[row + j])) *
                            gate_up[row + f + j]);
    const Values<S> down = linear(w, block.down, c_.hidden, activated, c_.intermediate);
    for (size_t i = 0; i < x.size(); ++i) middle[i] += down[i];
    return middle;
  }

  ModelConfig c_;
  ParameterLayout layout_;
};

}  // namespace tigon::convergence
