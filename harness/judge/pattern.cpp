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
    return fmt::format("only every {} {} from {}", ordinal(step), what, first % step);
  return "";
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
  std::string text = one_dimension("row", rows, size / columns);
  const std::string by_column = one_dimension("column", cols, columns);
  if (!text.empty() && !by_column.empty()) text += ", ";
  return text + by_column;
}

}  // namespace tigon
