// Which shape of a kernel's launch table a row takes where that has been measured on this machine
// (`tigon tune`). Host side. Empty unless a tool fills it: then the first shape that holds the row.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace tigon {

class LaunchTable {
 public:
  // Name of the kernel's table, and pieces of the row (row_lanes.h).
  using Key = std::pair<std::string, int64_t>;
  struct Question {
    Key key;
    size_t first = 0, count = 0;  // shapes `first` to `count` - 1 hold the row
  };

  size_t shape(const char* name, int64_t pieces, size_t first, size_t count) {
    if (!in_use_) return first;
    last_ = {{name, pieces}, first, count};
    const auto chosen = choices_.find(last_.key);
    return chosen != choices_.end() && chosen->second >= first && chosen->second < count
               ? chosen->second
               : first;
  }

  // Only between launches.
  void choose(const Key& key, size_t shape) {
    in_use_ = true;
    choices_[key] = shape;
  }
  void forget(const Key& key) { choices_.erase(key); }
  // From now on last_question() says what the last launch asked.
  void listen() { in_use_ = true; }
  const Question& last_question() const { return last_; }

 private:
  bool in_use_ = false;
  std::map<Key, size_t> choices_;
  Question last_;
};

inline LaunchTable& launch_table() {
  static LaunchTable table;
  return table;
}

}  // namespace tigon
