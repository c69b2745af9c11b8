// Shapes that a kernel can be launched in, and which one a launch takes where that has been
// measured on this machine (`tigon tune`). Host side. Nothing is chosen unless a tool does: then a
// launch takes the shape that its kernel's own rule says.
#pragma once
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace tigon {

// One entry of a kernel's table. Fields that a kernel has no use for keep their defaults.
struct LaunchShape {
  int lanes;        // threads that share a row: part of a warp, a warp or a block. A block has 128
                    // threads at least. Elementwise kernels: the threads of a block
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
    if (listens_) ask({name, size}, shapes, count, usual, can_take);
    if (choices_.empty()) return usual;
    const auto chosen = choices_.find({name, size});
    if (chosen == choices_.end()) return usual;
    for (size_t i = 0; i < count; ++i)
      if (shapes[i] == chosen->second && can_take(i)) return i;
    return usual;
  }

  // Only between launches.
  void choose(const Key& key, const LaunchShape& shape) { choices_.insert_or_assign(key, shape); }
  void forget(const Key& key) { choices_.erase(key); }
  // heard() is what the last launch since listen() asked; its key has no name when none did.
  void listen() {
    listens_ = true;
    last_ = {};
  }
  Question heard() {
    listens_ = false;
    return last_;
  }

 private:
  template <class CanTake>
  void ask(Key key, const LaunchShape* shapes, size_t count, size_t usual,
           const CanTake& can_take) {
    last_ = {std::move(key), shapes[usual], {}};
    for (size_t i = 0; i < count; ++i)
      if (i != usual && can_take(i)) last_.others.push_back(shapes[i]);
  }

  bool listens_ = false;
  std::map<Key, LaunchShape> choices_;
  Question last_;
};

inline LaunchTable& launch_table() {
  static LaunchTable table;
  return table;
}

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
