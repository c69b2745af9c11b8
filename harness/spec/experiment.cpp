// SPDX-License-Identifier: Apache-2.0
// Relations between the outputs of two calls.
#include "harness/spec/experiment.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>

namespace tigon {

namespace {

bool same_bits(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

void require_same_shape(const std::string& name, const HostTensor& got, const HostTensor& want) {
  if (got.shape != want.shape || got.values.size() != want.values.size())
    throw Violation(
        fmt::format("{} has {} elements and {}", name, got.values.size(), want.values.size()));
}

// Throws when any element fails, naming the first.
template <class Passes>
void expect_each(const std::string& name, const HostTensor& got, const HostTensor& want,
                 const std::string& got_when, const std::string& want_when, Passes passes) {
  require_same_shape(name, got, want);
  size_t failing = 0, first = 0;
  for (size_t i = 0; i < want.values.size(); ++i)
    if (!passes(i) && failing++ == 0) first = i;
  if (failing == 0) return;
  throw Violation(fmt::format("{}[{}] is {:.9g} {}, {:.9g} {}; {} of {} elements", name,
                              indices_of(want, first), got.values[first], got_when,
                              want.values[first], want_when, failing, want.values.size()));
}

}  // namespace

const HostTensors& Experiment::base_outputs() {
  if (base_outputs_.empty()) base_outputs_ = run(base());
  return base_outputs_;
}

std::string indices_of(const HostTensor& t, size_t i) {
  std::string text;
  for (size_t d = t.shape.size(); d-- > 0;) {
    const auto length = static_cast<size_t>(t.shape[d]);
    text = fmt::format("{}{}{}", i % length, text.empty() ? "" : ",", text);
    i /= length;
  }
  return text;
}

void expect_same(const std::string& name, const HostTensor& got, const HostTensor& want,
                 const std::string& got_when, const std::string& want_when) {
  expect_each(name, got, want, got_when, want_when,
              [&](size_t i) { return same_bits(got.values[i], want.values[i]); });
}

void expect_all_same(const HostTensors& got, const HostTensors& want, const std::string& got_when,
                     const std::string& want_when) {
  for (const auto& [name, tensor] : want)
    expect_same(name, got.at(name), tensor, got_when, want_when);
}

std::vector<double> sum(std::vector<double> a, const std::vector<double>& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] += b.at(i);
  return a;
}

void expect_close(const std::string& name, const HostTensor& got, const HostTensor& want,
                  const std::vector<double>& allowed, const std::string& got_when,
                  const std::string& want_when) {
  expect_each(name, got, want, got_when, want_when, [&](size_t i) {
    return same_bits(got.values[i], want.values[i]) ||
           std::abs(got.values[i] - want.values[i]) <= allowed.at(i);
  });
}

}  // namespace tigon
