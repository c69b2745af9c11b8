// SPDX-License-Identifier: Apache-2.0
// A call of a pass with memory of its own, filled by name: shapes come from the signature, and rows
// of matrices have a gap between them, so that every test also checks strides.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/signature/signature.h"

namespace tigon::reference {

using Values = std::map<std::string, std::vector<double>>;

inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kInf = std::numeric_limits<double>::infinity();

template <class Args>
class Call {
 public:
  using S = typename Args::Elem;

  // `setting` has axes and options that differ from their default, `inputs` the values of inputs.
  // An optional input that is not in `inputs`, an output on request that is not in `setting` and
  // every tensor in `absent` is left out. Other tensors start as NaN.
  Call(Binding setting, const Values& inputs, const std::set<std::string>& absent = {})
      : setting_(std::move(setting)) {
    for_each_option<Args>([&]<class Owner, class Value>(const Option<Owner, Value>& o) {
      if (setting_.count(o.name)) args.*o.member = static_cast<Value>(setting_.at(o.name));
      setting_[o.name] = static_cast<double>(args.*o.member);
    });
    for_each_field<Args>([&](const auto& f) {
      const bool is_input = f.role == Role::kIn || f.role == Role::kInOut;
      if (f.is_optional && is_input && !inputs.count(f.name)) return;
      if (f.is_on_request && !is_input && !setting_.count(f.name)) return;
      if (absent.count(f.name)) return;
      allocate(f);
      if (is_input) set(f.name, inputs.at(f.name));
    });
  }
  Call(const Call&) = delete;

  Args args;

  S& at(const std::string& name, int64_t i) {
    return floats_.at(name)[static_cast<size_t>(place_.at(name)[static_cast<size_t>(i)])];
  }

  // The values of a tensor in row-major order.
  std::vector<S> get(const std::string& name) {
    std::vector<S> out;
    for (size_t i = 0; i < place_.at(name).size(); ++i) out.push_back(at(name, int64_t(i)));
    return out;
  }

  int64_t size(const std::string& name) const { return int64_t(place_.at(name).size()); }

 private:
  template <class T, int N>
  void allocate(const Field<Args, View<T, N>>& f) {
    View<T, N>& v = args.*f.member;
    int64_t stride = 1;
    for (int i = N - 1; i >= 0; --i) {
      v.shape[i] = Expr(f.shape[size_t(i)]).integer(setting_);
      v.stride[i] = stride;
      stride *= v.shape[i] + (N > 1 && i > 0 ? kGap : 0);
    }
    auto& place = place_[f.name];
    for (int64_t i = 0; i < v.size(); ++i) {
      int64_t offset = 0, rest = i;
      for (int d = N - 1; d >= 0; rest /= v.shape[d--]) offset += rest % v.shape[d] * v.stride[d];
      place.push_back(offset);
    }
    if constexpr (std::is_same_v<std::remove_const_t<T>, int64_t>) {
      integers_[f.name].assign(size_t(stride) + 1, 0);  // + 1: data() of no element may be null
      v.data = integers_[f.name].data();
    } else {
      floats_[f.name].assign(size_t(stride) + 1, S(kNaN));
      v.data = floats_[f.name].data();
    }
  }

  void set(const std::string& name, const std::vector<double>& values) {
    const auto& place = place_.at(name);
    if (values.size() != place.size())
      throw std::invalid_argument(name + " has " + std::to_string(values.size()) +
                                  " values, should have " + std::to_string(place.size()));
    for (size_t i = 0; i < place.size(); ++i)
      if (integers_.count(name))
        integers_[name][size_t(place[i])] = int64_t(values[i]);
      else
        floats_[name][size_t(place[i])] = S(values[i]);
  }

  static constexpr int64_t kGap = 3;
  Binding setting_;
  std::map<std::string, std::vector<S>> floats_;
  std::map<std::string, std::vector<int64_t>> integers_;
  std::map<std::string, std::vector<int64_t>> place_;  // offset of every element
};

// Normal random numbers that are exact in fp32.
class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  std::vector<double> normal(int64_t n, double scale = 1) {
    std::vector<double> v(static_cast<size_t>(n));
    std::normal_distribution<double> d(0, scale);
    for (double& x : v) x = static_cast<float>(d(engine_));
    return v;
  }
  // Classes below `vocabulary`; every third one is `ignored`.
  std::vector<double> targets(int64_t n, int64_t vocabulary, double ignored) {
    std::vector<double> v(static_cast<size_t>(n));
    for (size_t i = 0; i < v.size(); ++i)
      v[i] =
          i % 3 == 1 ? ignored : static_cast<double>(engine_() % static_cast<unsigned>(vocabulary));
    return v;
  }

 private:
  std::mt19937 engine_;
};

// Every element within `relative` of the tensor's largest; NaN and infinity only where expected.
inline void expect_close(const std::vector<double>& got, const std::vector<double>& expected,
                         double relative, const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  double largest = 0;
  for (double e : expected)
    if (std::isfinite(e)) largest = std::max(largest, std::abs(e));
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(expected[i])) {
      EXPECT_TRUE(std::isnan(got[i])) << what << "[" << i << "] is " << got[i] << ", not NaN";
    } else if (std::isinf(expected[i])) {
      EXPECT_EQ(got[i], expected[i]) << what << "[" << i << "]";
    } else {
      EXPECT_LE(std::abs(got[i] - expected[i]), relative * largest)
          << what << "[" << i << "] is " << got[i] << ", should be " << expected[i];
    }
  }
}

inline std::vector<double> as_double(const std::vector<float>& v) { return {v.begin(), v.end()}; }

// The formula in fp32 stays inside the budget (4 sqrt(n) + c0) 2^-24 S, which allows a rounding of
// the value.
inline void expect_budget(const std::vector<double>& value, const std::vector<double>& scale,
                          const std::vector<double>& in_fp32, double n, double c0,
                          const std::string& what) {
  ASSERT_EQ(value.size(), scale.size()) << what;
  const double factor = 4 * std::sqrt(n) + c0;
  for (size_t i = 0; i < value.size(); ++i) {
    EXPECT_GE(factor * scale[i], std::abs(value[i])) << what << "[" << i << "]";
    const double budget = factor * 0x1p-24 * scale[i] + 0x1p-149;
    EXPECT_LE(std::abs(in_fp32[i] - value[i]), budget)
        << what << "[" << i << "] is " << value[i] << ", S " << scale[i];
  }
}

// The same, and S bounds the value.
inline void expect_scale(const std::vector<double>& value, const std::vector<double>& scale,
                         const std::vector<double>& in_fp32, double n, double c0,
                         const std::string& what) {
  expect_budget(value, scale, in_fp32, n, c0, what);
  for (size_t i = 0; i < value.size(); ++i)
    EXPECT_GE(scale[i], std::abs(value[i]) * (1 - 1e-12)) << what << "[" << i << "]";
}

}  // namespace tigon::reference
