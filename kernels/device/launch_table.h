// SPDX-License-Identifier: Apache-2.0
// Shapes that a kernel can be launched in, and which of them a launch takes. Without a tuned table
// (`tigon tune`) a launch takes the kernel's default shape. Host side.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <shared_mutex>
#include <string>
#include <utility>
#include <vector>

namespace tigon {

// One entry of a kernel's table. Fields that a kernel has no use for keep their defaults.
struct LaunchShape {
  int lanes;        // threads that share a row: part of a warp, a warp or a block. A block has 128
                    // threads at least. No power of two: at most so many (is_fitted()).
                    // Elementwise kernels: the threads of a block
  int vectors = 0;  // of 16 bytes that a thread holds of a row; elements where rows are unaligned
  int blocks_per_sm;  // that must fit on a multiprocessor at once: bounds a thread's registers
  int stages = 1;     // rows in flight to shared memory while a row is worked on
  int cluster = 1;    // blocks that share a row; 1 where the device has no clusters

  friend constexpr bool operator==(const LaunchShape&, const LaunchShape&) = default;
};

constexpr size_t no_shared_bytes(const LaunchShape&) { return 0; }

// The shapes of one kernel, under the name that a launch table knows.
template <size_t kCount>
struct ShapeTable {
  const char* name;
  LaunchShape shapes[kCount];
  size_t (*shared_bytes)(const LaunchShape&) = no_shared_bytes;  // that a launch asks for
};

// Which shapes were chosen, for all devices of the process. Safe from several threads; a launch
// asks for those of its current device.
class LaunchTable {
 public:
  // Name of the kernel's table, and length of the row in the unit of that kernel (16-byte
  // vectors, mostly).
  using Key = std::pair<std::string, int64_t>;
  struct Question {
    Key key;
    LaunchShape usual{};              // by the kernel's own rule
    std::vector<LaunchShape> others;  // that could be taken, too
  };

  // Index of the shape to take of a kernel's `count` shapes: `usual`, or the one that was chosen
  // for the key if can_take(index) says so.
  template <class CanTake>
  size_t shape(const char* name, int64_t size, const LaunchShape* shapes, size_t count,
               size_t usual, const CanTake& can_take) {
    if (listens()) ask({name, size}, shapes, count, usual, can_take);
    const std::optional<LaunchShape> chosen = choice(name, size);
    for (size_t i = 0; chosen && i < count; ++i)
      if (shapes[i] == *chosen && can_take(i)) return i;
    return usual;
  }

  // Of the current device, or of all devices of that name.
  void choose(const Key& key, const LaunchShape& shape);
  void choose(const std::string& device, const Key& key, const LaunchShape& shape);
  void forget(const Key& key);

  // heard() is what the last launch of this thread since listen() asked; its key has no name when
  // none did.
  void listen();
  Question heard();

 private:
  template <class CanTake>
  void ask(Key key, const LaunchShape* shapes, size_t count, size_t usual,
           const CanTake& can_take) {
    Question asked{std::move(key), shapes[usual], {}};
    for (size_t i = 0; i < count; ++i)
      if (i != usual && can_take(i)) asked.others.push_back(shapes[i]);
    hear(std::move(asked));
  }
  bool listens() const;
  void hear(Question asked);
  std::optional<LaunchShape> choice(const char* name, int64_t size) const;

  std::atomic<bool> any_ = false;  // most processes choose nothing, and their launches take no lock
  mutable std::shared_mutex mutex_;
  std::map<std::pair<std::string, Key>, LaunchShape> choices_;  // by device
};

LaunchTable& launch_table();

// Index of the shape to take of kTable, which is `usual` by itself. `name` tells passes apart that
// share a table.
template <const auto& kTable, class CanTake>
size_t chosen_shape(int64_t size, size_t usual, const CanTake& can_take,
                    const char* name = kTable.name) {
  return launch_table().shape(name, size, kTable.shapes, std::size(kTable.shapes), usual, can_take);
}

// Index of the first shape from `first` on that can_take(index); their number: none.
template <const auto& kTable, class CanTake>
size_t first_shape(const CanTake& can_take, size_t first = 0) {
  while (first < std::size(kTable.shapes) && !can_take(first)) ++first;
  return first;
}
// Returns run.operator()<shape>() of shape `index` of the table.
template <const auto& kTable, size_t kIndex = 0, class Run>
auto with_shape(size_t index, const Run& run) {
  if constexpr (kIndex + 1 == std::size(kTable.shapes))
    return run.template operator()<kTable.shapes[kIndex]>();
  else
    return index == kIndex ? run.template operator()<kTable.shapes[kIndex]>()
                           : with_shape<kTable, kIndex + 1>(index, run);
}

}  // namespace tigon
