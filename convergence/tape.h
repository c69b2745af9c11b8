// SPDX-License-Identifier: Apache-2.0
// Doubles that remember how they were made: the gradient of any function of them in one sweep back
// (reverse mode). The oracle of the model's gradients is the model's formula over these.
#pragma once
#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

namespace tigon::convergence {

class Tape;

// A constant, or a value on a tape.
struct Var {
  double value = 0;
  int32_t node = -1;
  Tape* tape = nullptr;
  Var() = default;
  Var(double constant) : value(constant) {}  // NOLINT: mixes with doubles as a double does
  Var(double v, int32_t n, Tape* t) : value(v), node(n), tape(t) {}
};

class Tape {
 public:
  // Starts anew in the memory that it has.
  void clear() {
    nodes_.clear();
    operands_.clear();
    dots_.clear();
  }

  Var variable(double value) { return push(value, {}, 0, {}, 0); }

  // A value whose derivatives by a and b are da and db.
  Var push(double value, const Var& a, double da, const Var& b, double db) {
    nodes_.push_back({a.node, b.node, da, db});
    return {value, static_cast<int32_t>(nodes_.size() - 1), this};
  }

  // Values that several dot products have in common.
  size_t operand(const Var* x, size_t n) {
    operands_.insert(operands_.end(), x, x + n);
    return operands_.size() - n;
  }

  // The dot product of an operand and n variables that follow each other on the tape: one node.
  Var dot(size_t operand, const Var* w, size_t n) {
    double sum = 0;
    for (size_t j = 0; j < n; ++j) sum += operands_[operand + j].value * w[j].value;
    nodes_.push_back({kDot, static_cast<int32_t>(dots_.size()), 0, 0});
    dots_.push_back({operand, w, n});
    return {sum, static_cast<int32_t>(nodes_.size() - 1), this};
  }

  // Derivatives of `of` by the first `count` variables of the tape.
  std::vector<double> gradient(const Var& of, size_t count) const {
    std::vector<double> by(nodes_.size(), 0.0);
    if (of.node >= 0) by[static_cast<size_t>(of.node)] = 1;
    for (size_t i = nodes_.size(); i-- > 0;) {
      const Node& n = nodes_[i];
      if (n.a == kDot) {
        add_dot(dots_[static_cast<size_t>(n.b)], by[i], by);
        continue;
      }
      if (n.a >= 0) by[static_cast<size_t>(n.a)] += by[i] * n.da;
      if (n.b >= 0) by[static_cast<size_t>(n.b)] += by[i] * n.db;
    }
    by.resize(count);
    return by;
  }

 private:
  static constexpr int32_t kDot = -2;  // in place of a node: b is the dot product's index
  struct Node {
    int32_t a, b;
    double da, db;
  };
  struct Dot {
    size_t operand;
    const Var* w;  // outlives the tape's use
    size_t n;
  };

  void add_dot(const Dot& dot, double by_sum, std::vector<double>& by) const {
    if (by_sum == 0) return;
    const Var* const x = &operands_[dot.operand];
    double* const by_w = &by[static_cast<size_t>(dot.w->node)];
    for (size_t j = 0; j < dot.n; ++j) {
      by_w[j] += by_sum * x[j].value;
      if (x[j].node >= 0) by[static_cast<size_t>(x[j].node)] += by_sum * dot.w[j].value;
    }
  }

  std::vector<Node> nodes_;
  std::vector<Var> operands_;
  std::vector<Dot> dots_;
};

// Dot products of one vector with many: of doubles, and of values on a tape in one node each.
inline std::vector<double> dots(const double* x, const double* w, size_t rows, size_t n) {
  std::vector<double> y(rows, 0.0);
  for (size_t o = 0; o < rows; ++o)
    for (size_t j = 0; j < n; ++j) y[o] += x[j] * w[o * n + j];
  return y;
}
inline std::vector<Var> dots(const Var* x, const Var* w, size_t rows, size_t n) {
  std::vector<Var> y;
  Tape& tape = *w->tape;
  const size_t operand = tape.operand(x, n);
  for (size_t o = 0; o < rows; ++o) y.push_back(tape.dot(operand, w + o * n, n));
  return y;
}

inline Var make(double value, const Var& a, double da, const Var& b = {}, double db = 0) {
  Tape* const tape = a.tape != nullptr ? a.tape : b.tape;
  return tape != nullptr ? tape->push(value, a, da, b, db) : Var(value);
}

inline Var operator+(const Var& a, const Var& b) { return make(a.value + b.value, a, 1, b, 1); }
inline Var operator-(const Var& a, const Var& b) { return make(a.value - b.value, a, 1, b, -1); }
inline Var operator*(const Var& a, const Var& b) {
  return make(a.value * b.value, a, b.value, b, a.value);
}
inline Var operator/(const Var& a, const Var& b) {
  const double q = a.value / b.value;
  return make(q, a, 1 / b.value, b, -q / b.value);
}
inline Var operator-(const Var& a) { return make(-a.value, a, -1); }
inline Var& operator+=(Var& a, const Var& b) { return a = a + b; }
inline Var& operator/=(Var& a, const Var& b) { return a = a / b; }

inline Var exp(const Var& a) {
  const double e = std::exp(a.value);
  return make(e, a, e);
}
inline Var log(const Var& a) { return make(std::log(a.value), a, 1 / a.value); }
inline Var sqrt(const Var& a) {
  const double s = std::sqrt(a.value);
  return make(s, a, 0.5 / s);
}
inline Var erf(const Var& a) {
  const double slope = 2 / std::sqrt(std::numbers::pi) * std::exp(-a.value * a.value);
  return make(std::erf(a.value), a, slope);
}
inline Var tanh(const Var& a) {
  const double t = std::tanh(a.value);
  return make(t, a, 1 - t * t);
}

}  // namespace tigon::convergence
