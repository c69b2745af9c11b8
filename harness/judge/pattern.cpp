// SPDX-License-Identifier: Apache-2.0
// Patterns of failing elements by row and by column.
#include "harness/judge/pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

namespace tigon {

namespace {

struct Indices {
  std::vector<int64_t> sorted;  // distinct, ascending
  explicit Indices(std::vector<int64_t> all) : sorted(std::move(all)) {
    std::sort(sorted.begin(), sorted.end());
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  }
  int64_t first() const { return sorted.front(); }
  int64_t last() const { return sorted.back(); }
  int64_t count() const { return static_cast<int64_t>(sorted.size()); }
  bool contiguous() const { return last() - first() + 1 == count(); }
  // The greatest common distance.
  int64_t step() const {
    int64_t step = 0;
    for (size_t i = 1; i < sorted.size(); ++i) step = std::gcd(step, sorted[i] - sorted[i - 1]);
    return step;
  }
};

std::string ordinal(int64_t n) {
  const bool teen = n / 10 % 10 == 1;
  const char* const kEndings[] = {"th", "st", "nd", "rd"};
  return fmt::format("{}{}", n, teen || n % 10 > 3 ? "th" : kEndings[n % 10]);
}

constexpr int64_t kWarp = 32;

// The lane that has `width` neighbouring elements of every `period`, if a warp of 32 fits it.
std::string lane_text(int64_t period, int64_t first, int64_t width) {
  if (period != kWarp * width || first % width != 0) return "";
  if (width == 1) return fmt::format(" (lane {} of a warp)", first);
  return fmt::format(" (lane {} of a warp, {} elements a lane)", first / width, width);
}

// The same few neighbours of every 2^k, and all of them: "only columns 4 to 7 of every 128".
std::string periodic(const char* what, const Indices& indices, int64_t length) {
  for (int64_t period = 4; period <= length / 2; period *= 2) {
    std::vector<int64_t> residues;
    for (int64_t i : indices.sorted) residues.push_back(i % period);
    const Indices places(std::move(residues));
    if (!places.contiguous() || places.count() > period / 2) continue;
    int64_t there = 0;  // indices at these places
    for (int64_t i = places.first(); i <= places.last(); ++i)
      there += (length - i + period - 1) / period;
    if (there != indices.count()) continue;
    return fmt::format("only {}s {} to {} of every {}{}", what, places.first(), places.last(),
                       period, lane_text(period, places.first(), places.count()));
  }
  return "";
}

// "only columns >= 120 of 127" and the like; empty when they are spread all over the dimension.
std::string one_dimension(const char* what, const Indices& indices, int64_t length) {
  const int64_t first = indices.first(), last = indices.last(), count = indices.count();
  if (count == length || length == 1) return "";
  if (count == 1) return fmt::format("only {} {} of {}", what, first, length);
  if (indices.contiguous()) {
    if (last + 1 == length) return fmt::format("only {}s >= {} of {}", what, first, length);
    if (first == 0) return fmt::format("only {}s < {} of {}", what, count, length);
    return fmt::format("only {}s {} to {} of {}", what, first, last, length);
  }
  if (const int64_t step = indices.step(); step > 1 && count >= 3)
    return fmt::format("only every {} {} from {}{}", ordinal(step), what, first % step,
                       lane_text(step, first % step, 1));
  return periodic(what, indices, length);
}

// Rows that share an index of one of the dimensions before the last, e.g. a head: "only dim-1 slice
// 3 of 8".
std::string by_leading_dimension(const Indices& rows, const std::vector<int64_t>& shape) {
  std::string text;
  int64_t stride = 1;
  for (size_t d = shape.size() - 1; d-- > 0; stride *= shape[d]) {
    std::vector<int64_t> at;
    for (int64_t row : rows.sorted) at.push_back(row / stride % shape[d]);
    const std::string what = fmt::format("dim-{} slice", d);
    const std::string one = one_dimension(what.c_str(), Indices(std::move(at)), shape[d]);
    if (!one.empty()) text = text.empty() ? one : one + ", " + text;
  }
  return text;
}

}  // namespace

std::string failure_pattern(const std::vector<int64_t>& failing,
                            const std::vector<int64_t>& shape) {
  const int64_t size =
      std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<int64_t>());
  if (failing.empty() || size <= 1) return "";
  if (static_cast<int64_t>(failing.size()) == size) return "every element";
  const int64_t columns = shape.back();
  std::vector<int64_t> row_of, column_of;
  for (int64_t i : failing) {
    row_of.push_back(i / columns);
    column_of.push_back(i % columns);
  }
  const Indices rows(row_of), cols(column_of);
  if (shape.size() == 1) return one_dimension("element", cols, columns);
  std::string text = shape.size() > 2 ? by_leading_dimension(rows, shape) : "";
  if (text.empty()) text = one_dimension("row", rows, size / columns);
  const std::string by_column = one_dimension("column", cols, columns);
  if (!text.empty() && !by_column.empty()) text += ", ";
  text += by_column;
  // Kernels that see a tensor as one long row.
  return text.empty() ? one_dimension("element", Indices(failing), size) : text;
}

}  // namespace tigon
