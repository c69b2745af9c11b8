// SPDX-License-Identifier: Apache-2.0
// Some rows and columns of tensors in device memory.
#include "harness/measure/sample.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "harness/measure/device_data.h"
#include "harness/run/inputs/inputs.h"
#include "harness/run/memory/convert.h"
#include "kernels/device/runtime.h"

namespace tigon {
namespace {

// What is chosen along one dimension; nullptr: all of it.
const std::vector<int64_t>* chosen_along(const TensorInfo& info, size_t dimension,
                                         const Binding& binding, const Sample& sample) {
  for (const auto& [axis, chosen] : sample)
    if (follows(info.shape[dimension], binding, axis)) return &chosen;
  return nullptr;
}

// Packed bytes of `columns` in each of `rows` rows.
std::vector<std::byte> columns_of(const TensorRef& ref, int64_t rows,
                                  const std::vector<int64_t>& columns) {
  const DeviceBuffer places(columns.size() * sizeof(int64_t));
  device_upload(places.data(), columns.data(), places.bytes());
  std::vector<std::byte> packed(static_cast<size_t>(rows) * columns.size() * size_of(ref.dtype));
  const DeviceBuffer gathered(packed.size());
  const auto count = static_cast<int64_t>(columns.size());
  const Status status = gather_columns(ref.data, size_of(ref.dtype), rows, ref.shape.back(),
                                       places.as<int64_t>(), count, gathered.data(), nullptr);
  if (!status.ok()) throw DeviceError(status.reason);
  device_download(packed.data(), gathered.data(), packed.size());
  return packed;
}

std::vector<std::byte> pick_rows(const std::vector<std::byte>& packed, size_t row_bytes,
                                 const std::vector<int64_t>& rows) {
  std::vector<std::byte> some;
  for (const int64_t row : rows) {
    const auto begin = packed.begin() + row * static_cast<int64_t>(row_bytes);
    some.insert(some.end(), begin, begin + static_cast<int64_t>(row_bytes));
  }
  return some;
}

std::vector<std::byte> download_rows(const TensorRef& ref, size_t row_bytes,
                                     const std::vector<int64_t>& rows) {
  std::vector<std::byte> packed(rows.size() * row_bytes);
  for (size_t i = 0; i < rows.size(); ++i)
    device_download(packed.data() + i * row_bytes,
                    static_cast<const char*>(ref.data) + static_cast<size_t>(rows[i]) * row_bytes,
                    row_bytes);
  return packed;
}

}  // namespace

bool follows(const Expr& size, const Binding& binding, const std::string& axis) {
  Binding longer = binding;
  longer[axis] += 1;
  return size.integer(longer) != size.integer(binding);
}

std::vector<int64_t> choose_indices(int64_t count, int64_t size, uint64_t key) {
  std::vector<int64_t> chosen;
  if (count >= size) {
    chosen.resize(static_cast<size_t>(std::max<int64_t>(0, size)));
    std::iota(chosen.begin(), chosen.end(), 0);
    return chosen;
  }
  chosen = {0, size - 1};
  for (uint64_t i = 2; i < static_cast<uint64_t>(count); ++i)
    chosen.push_back(static_cast<int64_t>(random_bits(key, i) % static_cast<uint64_t>(size)));
  std::sort(chosen.begin(), chosen.end());
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  return chosen;
}

bool has_axis(const TensorInfo& info, const Binding& binding, const std::string& axis) {
  return std::any_of(info.shape.begin(), info.shape.end(),
                     [&](const Expr& size) { return follows(size, binding, axis); });
}

std::vector<double> sampled(const TensorInfo& info, const TensorRef& ref, const Binding& binding,
                            const Sample& sample) {
  const std::vector<int64_t>*rows = nullptr, *columns = nullptr;
  for (size_t d = 0; d < info.shape.size(); ++d) {
    const auto* chosen = chosen_along(info, d, binding, sample);
    if (chosen == nullptr) continue;
    if (d > 0 && d + 1 < info.shape.size())
      throw std::logic_error(fmt::format("{}: a sample in the middle of its sizes", info.name));
    (d == 0 ? rows : columns) = chosen;
  }
  int64_t elements = 1;
  for (const int64_t size : ref.shape) elements *= size;
  if (elements == 0) return {};
  const size_t element = size_of(ref.dtype);
  const size_t row_elements = static_cast<size_t>(elements / (rows ? ref.shape.front() : 1));
  std::vector<std::byte> packed;
  if (columns) {
    packed = columns_of(ref, elements / ref.shape.back(), *columns);
    const size_t kept = row_elements / static_cast<size_t>(ref.shape.back()) * columns->size();
    if (rows) packed = pick_rows(packed, kept * element, *rows);
  } else {
    packed = download_rows(ref, row_elements * element, rows ? *rows : std::vector<int64_t>{0});
  }
  return widen(packed.data(), packed.size() / element, ref.dtype);
}

}  // namespace tigon
