// SPDX-License-Identifier: Apache-2.0
// Checkpoints in safetensors, in pieces through a small host buffer.
#include "convergence/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>

#include "convergence/safetensors.h"
#include "kernels/device/runtime.h"

namespace tigon::convergence {
namespace {

constexpr size_t kPiece = size_t{8} << 20;
constexpr const char* kLosses = "losses";

const char* type_name(DType type) { return type == DType::kBF16 ? "BF16" : "F32"; }

std::vector<TensorEntry> entries_of(const std::vector<StateTensor>& state, size_t steps) {
  const auto count = static_cast<int64_t>(steps);
  std::vector<TensorEntry> entries = {
      {kLosses, "F64", {count}, count * static_cast<int64_t>(sizeof(double))}};
  for (const StateTensor& t : state)
    entries.push_back(
        {t.name, type_name(t.type), {t.rows, t.columns}, static_cast<int64_t>(t.bytes())});
  return entries;
}

// f(address, bytes) for each piece of the tensor.
template <class F>
void for_each_piece(const StateTensor& t, F&& f) {
  for (size_t at = 0; at < t.bytes(); at += kPiece)
    f(static_cast<char*>(t.data) + at, std::min(kPiece, t.bytes() - at));
}

bool same(const TensorEntry& a, const TensorEntry& b) {
  return a.name == b.name && a.type == b.type && a.shape == b.shape && a.bytes == b.bytes;
}

}  // namespace

size_t StateTensor::bytes() const {
  return static_cast<size_t>(rows * columns) * (type == DType::kBF16 ? 2 : 4);
}

void save_checkpoint(const std::filesystem::path& path, const std::vector<StateTensor>& state,
                     const Progress& progress) {
  SafetensorsWriter out(path, entries_of(state, progress.loss.size()),
                        {{"format", "tigon checkpoint 1"},
                         {"step", std::to_string(progress.loss.size())},
                         {"training", progress.identity}});
  out.write(progress.loss.data(), progress.loss.size() * sizeof(double));
  std::vector<char> piece(kPiece);
  for (const StateTensor& t : state)
    for_each_piece(t, [&](char* data, size_t bytes) {
      device_download(piece.data(), data, bytes);
      out.write(piece.data(), bytes);
    });
  out.commit();
}

Progress load_checkpoint(const std::filesystem::path& path, const std::vector<StateTensor>& state,
                         const std::string& identity) {
  SafetensorsReader in(path);
  const auto found = in.metadata().find("training");
  if (found == in.metadata().end() || found->second != identity)
    throw ConvergeError(
        2, fmt::format("{} is a checkpoint of another training: {}, not {}; move it away to start "
                       "anew",
                       path.string(), found == in.metadata().end() ? "unknown" : found->second,
                       identity));
  const std::vector<TensorEntry>& there = in.entries();
  const size_t steps =
      there.empty() ? 0 : static_cast<size_t>(there.front().bytes) / sizeof(double);
  const std::vector<TensorEntry> here = entries_of(state, steps);
  if (!std::equal(there.begin(), there.end(), here.begin(), here.end(), same))
    throw ConvergeError(2, fmt::format("{} holds other tensors than this training has; move it "
                                       "away to start anew",
                                       path.string()));
  Progress progress{identity, std::vector<double>(steps)};
  in.read(progress.loss.data(), steps * sizeof(double));
  std::vector<char> piece(kPiece);
  for (const StateTensor& t : state)
    for_each_piece(t, [&](char* data, size_t bytes) {
      in.read(piece.data(), bytes);
      device_upload(data, piece.data(), bytes);
    });
  device_synchronize();
  return progress;
}

}  // namespace tigon::convergence
