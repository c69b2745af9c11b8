// The model's forward pass once more in double, in plain loops, for gradients by differences.
#pragma once
#include <cmath>
#include <vector>

#include "convergence/model.h"

namespace tigon::convergence {

using Doubles = std::vector<double>;

class ReferenceModel {
 public:
  explicit ReferenceModel(const ModelConfig& config) : c_(config), layout_(config) {}

  // Mean loss of a batch for weights in the order of ParameterLayout.
  double loss(const Doubles& w, const Batch& batch) const {
    const size_t n = batch.input.size();
    Doubles x;
    for (int64_t id : batch.input)
      for (int j = 0; j < c_.hidden; ++j)
        x.push_back(w[at(layout_.embedding + id * c_.hidden + j)]);
    for (const auto& block : layout_.blocks) x = layer(w, block, x);
    const Doubles logits = linear(w, layout_.head, c_.vocabulary, norm(w, layout_.final_norm, x));
    double sum = 0;
    for (size_t t = 0; t < n; ++t) {
      const double* row = &logits[t * at(c_.vocabulary)];
      double total = 0;
      for (int v = 0; v < c_.vocabulary; ++v) total += std::exp(row[v]);
      sum += std::log(total) - row[batch.target[t]];
    }
    return sum / static_cast<double>(n);
  }

 private:
  static size_t at(int64_t i) { return static_cast<size_t>(i); }

  Doubles norm(const Doubles& w, int64_t weight, const Doubles& x) const {
    Doubles y(x.size());
    for (size_t row = 0; row < x.size(); row += at(c_.hidden)) {
      double square = 0;
      for (size_t j = 0; j < at(c_.hidden); ++j) square += x[row + j] * x[row + j];
      const double rstd = 1 / std::sqrt(square / c_.hidden + static_cast<double>(c_.norm_eps));
      for (size_t j = 0; j < at(c_.hidden); ++j) y[row + j] = x[row + j] * rstd * w[at(weight) + j];
    }
    return y;
  }

  // x [n, in] times a matrix [out, in] transposed.
  static Doubles linear(const Doubles& w, int64_t weight, int64_t out, const Doubles& x,
                        int64_t in) {
    Doubles y;
    for (size_t row = 0; row < x.size(); row += at(in))
      for (int64_t o = 0; o < out; ++o) {
        double sum = 0;
        for (int64_t j = 0; j < in; ++j) sum += x[row + at(j)] * w[at(weight + o * in + j)];
        y.push_back(sum);
      }
    return y;
  }
  Doubles linear(const Doubles& w, int64_t weight, int64_t out, const Doubles& x) const {
    return linear(w, weight, out, x, c_.hidden);
  }

  void rotate(Doubles& qkv) const {
    const size_t row = at(c_.qkv_size()), half = at(c_.head_size / 2);
    for (size_t t = 0; t < qkv.size() / row; ++t)
      for (int head = 0; head < c_.heads + c_.kv_heads; ++head)
        for (size_t j = 0; j < half; ++j) {
          const double angle =
              static_cast<double>(at(t) % at(c_.sequence)) *
              std::pow(c_.rope_theta, -static_cast<double>(j) / static_cast<double>(half));
          double& first = qkv[t * row + at(head * c_.head_size) + j];
          double& second = qkv[t * row + at(head * c_.head_size) + half + j];
          const double a = first, b = second;
          first = a * std::cos(angle) - b * std::sin(angle);
          second = b * std::cos(angle) + a * std::sin(angle);
        }
  }

  Doubles attention(const Doubles& qkv) const {
    const size_t row = at(c_.qkv_size()), d = at(c_.head_size), s = at(c_.sequence);
    Doubles out(qkv.size() / row * at(c_.q_size()));
    for (size_t t = 0; t < qkv.size() / row; ++t)
      for (int head = 0; head < c_.heads; ++head) {
        const size_t kv = at(head / (c_.heads / c_.kv_heads));
        const size_t k_column = at(c_.q_size()) + kv * d, v_column = k_column + at(c_.kv_size());
        const double* q = &qkv[t * row + at(head) * d];
        double* to = &out[t * at(c_.q_size()) + at(head) * d];
        double total = 0;
        for (size_t key = t / s * s; key <= t; ++key) {
          double score = 0;
          for (size_t j = 0; j < d; ++j) score += q[j] * qkv[key * row + k_column + j];
          const double p = std::exp(score / std::sqrt(static_cast<double>(d)));
          total += p;
          for (size_t j = 0; j < d; ++j) to[j] += p * qkv[key * row + v_column + j];
        }
        for (size_t j = 0; j < d; ++j) to[j] /= total;
      }
    return out;
  }

  Doubles layer(const Doubles& w, const ParameterLayout::Block& block, const Doubles& x) const {
    Doubles qkv = linear(w, block.qkv, c_.qkv_size(), norm(w, block.norm1, x));
    rotate(qkv);
    const Doubles branch = linear(w, block.o, c_.hidden, attention(qkv), c_.q_size());
    Doubles middle(x.size());
    for (size_t i = 0; i < x.size(); ++i) middle[i] = x[i] + branch[i];
    const Doubles gate_up =
        linear(w, block.gate_up, int64_t{2} * c_.intermediate, norm(w, block.norm2, middle));
    Doubles activated;
    const size_t f = at(c_.intermediate);
    for (size_t row = 0; row < gate_up.size(); row += 2 * f)
      for (size_t j = 0; j < f; ++j)
        activated.push_back(gate_up[row + j] / (1 + std::exp(-gate_up[row + j])) *
                            gate_up[row + f + j]);
    const Doubles down = linear(w, block.down, c_.hidden, activated, c_.intermediate);
    for (size_t i = 0; i < x.size(); ++i) middle[i] += down[i];
    return middle;
  }

  ModelConfig c_;
  ParameterLayout layout_;
};

}  // namespace tigon::convergence
