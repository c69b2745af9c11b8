// SPDX-License-Identifier: Apache-2.0
// Errors of functions, sums and products in units of what the budget allows.
#include "harness/measure/rounding.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "harness/json/json.h"
#include "harness/judge/budget.h"
#include "harness/measure/require.h"
#include "harness/measure/rounding_kernels.h"
#include "harness/run/executor.h"
#include "harness/run/inputs/inputs.h"
#include "harness/run/memory/convert.h"
#include "kernels/device/gemm.h"
#include "kernels/device/runtime.h"

namespace tigon {

namespace {

constexpr double kUnit = kAccumulatorRoundoff;
constexpr int64_t kArguments = 1 << 21;  // per function, evenly over the floats of the range

template <class T>
DeviceBuffer uploaded(const std::vector<T>& values) {
  DeviceBuffer buffer(values.size() * sizeof(T));
  device_upload(buffer.data(), values.data(), values.size() * sizeof(T));
  return buffer;
}

template <class T>
std::vector<T> downloaded(const DeviceBuffer& buffer) {
  std::vector<T> values(buffer.bytes() / sizeof(T));
  device_download(values.data(), buffer.data(), buffer.bytes());
  return values;
}

// ---- c0 -----------------------------------------------------------------------------------------

struct Function {
  Elementary id;
  const char* name;
  float low, high;
  double (*exact)(double);
  // What an error of one unit in S is: |f| and what its argument's rounding adds.
  double (*scale)(double x, double f);
  const char* unit;
  double allowed;  // c0 of the contracts that use it
};

double relative(double, double f) { return std::abs(f); }
double with_argument(double x, double f) { return std::abs(f) * (1 + std::abs(x)); }
// A logarithm is added to a maximum: its error counts beside 1.
double beside_one(double, double f) { return std::max(std::abs(f), 1.0); }

const Function kFunctions[] = {
    {Elementary::kExp, "exp", -87, 88, [](double x) { return std::exp(x); }, with_argument,
     "u_acc (1 + |x|) e^x", 16},
    {Elementary::kExpFlushed, "exp_flushed", -87, 88, [](double x) { return std::exp(x); },
     with_argument, "u_acc (1 + |x|) e^x", 16},
    {Elementary::kExp2, "exp2", -126, 127, [](double x) { return std::exp2(x); }, relative,
     "u_acc 2^x", 16},
    {Elementary::kLog, "log", 1, 262144, [](double x) { return std::log(x); }, beside_one,
     "u_acc max(1, log x)", 16},
    {Elementary::kRsqrt, "rsqrt", 0x1p-100f, 0x1p100f, [](double x) { return 1 / std::sqrt(x); },
     relative, "u_acc / sqrt(x)", 8},
    {Elementary::kTanh, "tanh", -10, 10, [](double x) { return std::tanh(x); }, relative,
     "u_acc |tanh x|", 24},
    {Elementary::kSigmoid, "sigmoid", -80, 80, [](double x) { return 1 / (1 + std::exp(-x)); },
     with_argument, "u_acc (1 + |x|) sigmoid(x)", 40},
    {Elementary::kReciprocal, "1/x", 0x1p-100f, 0x1p100f, [](double x) { return 1 / x; }, relative,
     "u_acc / x", 8},
};

// Floats in their order: as many between 1e-3 and 1e-2 as between 1e-2 and 1e-1.
std::vector<float> arguments(const Function& f) {
  const auto ordered = [](float v) {
    const auto bits = std::bit_cast<int32_t>(v);
    return int64_t{bits < 0 ? std::numeric_limits<int32_t>::min() - int64_t{bits} : bits};
  };
  const int64_t low = ordered(f.low), high = ordered(f.high);
  std::vector<float> x(kArguments);
  for (int64_t i = 0; i < kArguments; ++i) {
    const auto at = low + static_cast<int64_t>(static_cast<double>(high - low) *
                                               static_cast<double>(i) / (kArguments - 1));
    const auto bits = at < 0 ? std::numeric_limits<int32_t>::min() - at : at;
    x[static_cast<size_t>(i)] = std::bit_cast<float>(static_cast<int32_t>(bits));
  }
  return x;
}

RoundingResult measure(const Function& f) {
  RoundingResult r;
  r.name = f.name;
  r.group = "elementary";
  r.range = fmt::format("[{:g}, {:g}]", f.low, f.high);
  r.unit = f.unit;
  r.allowed = f.allowed;
  r.samples = kArguments;
  const std::vector<float> x = arguments(f);
  const DeviceBuffer device_x = uploaded(x), out(x.size() * sizeof(float));
  require(elementary(f.id, device_x.as<float>(), out.as<float>(), kArguments, nullptr));
  const auto got = downloaded<float>(out);
  for (size_t i = 0; i < x.size(); ++i) {
    const double want = f.exact(x[i]), scale = kUnit * f.scale(x[i], want);
    const double error = scale > 0 ? std::abs(got[i] - want) / scale : std::abs(got[i] - want);
    if (std::isnan(r.worst) || error <= r.worst) continue;  // NaN is the worst and stays
    r.worst = error;
    r.worst_at = x[i];
  }
  return r;
}

// ---- lambda -------------------------------------------------------------------------------------

// |sum - exact| / (sqrt(n) u sum |terms|), the worst of many rows.
RoundingResult measure_sums(int64_t n, bool squares) {
  const int64_t rows = std::max<int64_t>(4, (int64_t{1} << 22) / n);
  RoundingResult r;
  r.name = squares ? "sum of squares" : "sum";
  r.group = "sum";
  r.range = fmt::format("n = {}", n);
  r.unit = "sqrt(n) u_acc sum |terms|";
  r.allowed = kSumFactor;
  r.samples = rows;
  std::vector<float> x(static_cast<size_t>(rows * n));
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(random_normal(stream_key(1, "sums"), i));
  const DeviceBuffer device_x = uploaded(x), out(static_cast<size_t>(rows) * sizeof(float));
  require(row_sums(device_x.as<float>(), out.as<float>(), rows, n, squares, nullptr));
  const auto got = downloaded<float>(out);
  for (int64_t row = 0; row < rows; ++row) {
    double sum = 0, scale = 0;
    for (int64_t i = 0; i < n; ++i) {
      const double v = x[static_cast<size_t>(row * n + i)], term = squares ? v * v : v;
      sum += term;
      scale += std::abs(term);
    }
    const double error = std::abs(got[static_cast<size_t>(row)] - sum) /
                         (std::sqrt(static_cast<double>(n)) * kUnit * scale);
    if (std::isnan(r.worst) || error <= r.worst) continue;
    r.worst = error;
    r.worst_at = static_cast<double>(row);
  }
  return r;
}

// The same for products x w^T of exact inputs, with fp32 results.
RoundingResult measure_product(DType type, int64_t k) {
  constexpr int64_t kRows = 128, kColumns = 128;
  RoundingResult r;
  r.name = fmt::format("{} product", name_of(type));
  r.group = "product";
  r.range = fmt::format("k = {}", k);
  r.unit = "sqrt(k) u_acc sum |a b|";
  r.allowed = kSumFactor;
  r.samples = kRows * kColumns;
  const auto values = [&](const char* name, int64_t rows) {
    std::vector<double> v(static_cast<size_t>(rows * k));
    for (size_t i = 0; i < v.size(); ++i) v[i] = random_normal(stream_key(1, name), i);
    const auto bytes = narrow(v, type);
    return std::pair(bytes, widen(bytes.data(), v.size(), type));
  };
  const auto [a_bytes, a] = values("a", kRows);
  const auto [b_bytes, b] = values("b", kColumns);
  const DeviceBuffer device_a = uploaded(a_bytes), device_b = uploaded(b_bytes);
  const DeviceBuffer c(kRows * kColumns * sizeof(float));
  Gemm g{.m = kRows, .n = kColumns, .k = k, .in_type = type};
  g.a = device_a.data();
  g.b = device_b.data();
  g.c = c.data();
  g.lda = g.ldb = k;
  g.ldc = kColumns;
  g.transpose_b = true;
  const DeviceBuffer scratch(std::max<size_t>(gemm_workspace(g), 1));
  require(gemm(g, {scratch.data(), scratch.bytes()}, nullptr));
  const auto got = downloaded<float>(c);
  for (int64_t row = 0; row < kRows; ++row)
    for (int64_t column = 0; column < kColumns; ++column) {
      double sum = 0, scale = 0;
      for (int64_t i = 0; i < k; ++i) {
        const double term =
            a[static_cast<size_t>(row * k + i)] * b[static_cast<size_t>(column * k + i)];
        sum += term;
        scale += std::abs(term);
      }
      const auto at = static_cast<size_t>(row * kColumns + column);
      const double error =
          std::abs(got[at] - sum) / (std::sqrt(static_cast<double>(k)) * kUnit * scale);
      if (std::isnan(r.worst) || error <= r.worst) continue;
      r.worst = error;
      r.worst_at = static_cast<double>(at);
    }
  return r;
}

}  // namespace

void measure_rounding(const std::function<void(const RoundingResult&)>& sink) {
  for (const Function& f : kFunctions) sink(measure(f));
  for (const int64_t n : {32, 1024, 4096, 131072, 1048576})
    for (const bool squares : {false, true}) sink(measure_sums(n, squares));
  for (const DType type : {DType::kF32, DType::kBF16, DType::kF16})
    for (const int64_t k : {64, 4096, 32768}) sink(measure_product(type, k));
}

Json to_json(const RoundingResult& r) {
  return {{"name", r.name},
          {"group", r.group},
          {"executor", this_executor()},
          {"range", r.range},
          {"unit", r.unit},
          {"samples", r.samples},
          {"worst", r.worst},
          {"worst_at", r.worst_at},
          {"allowed", r.allowed},
          {"device", device_info().name}};
}

}  // namespace tigon
