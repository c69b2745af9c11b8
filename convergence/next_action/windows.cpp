// SPDX-License-Identifier: Apache-2.0
// Cutting and padding of windows.
#include "convergence/next_action/windows.h"

#include <algorithm>

#include "kernels/loss/options.h"

namespace tigon::convergence::next_action {

std::vector<Window> training_windows(const std::vector<Sequence>& learners, int sequence,
                                     uint64_t seed, uint64_t epoch) {
  constexpr uint64_t kCuts = 1 << 11, kOrder = 1 << 12;  // streams of random bits
  std::vector<Window> all;
  for (size_t i = 0; i < learners.size(); ++i) {
    const auto length = static_cast<int64_t>(learners[i].size()) - 1;
    auto end = 1 + static_cast<int64_t>(random_bits(seed, kCuts + epoch, i) %
                                        static_cast<uint64_t>(sequence));
    for (int64_t begin = 0; begin < length; begin = end, end += sequence)
      all.push_back({i, begin, std::min(end, length) - begin, 0});
  }
  std::vector<Window> mixed;
  for (size_t at : random_order(all.size(), seed, kOrder + epoch)) mixed.push_back(all[at]);
  return mixed;
}

std::vector<Window> scoring_windows(const std::vector<Sequence>& learners, int sequence) {
  std::vector<Window> all;
  const int64_t half = sequence / 2;
  for (size_t i = 0; i < learners.size(); ++i) {
    const auto length = static_cast<int64_t>(learners[i].size()) - 1;
    for (int64_t begin = 0; begin == 0 || begin + half < length; begin += sequence - half)
      all.push_back({i, begin, std::min<int64_t>(sequence, length - begin), begin == 0 ? 0 : half});
  }
  return all;
}

Batch batch_of(const std::vector<Sequence>& learners, const std::vector<Window>& windows,
               size_t first, int batch, int sequence) {
  constexpr int64_t kIgnored = LossOptions{}.ignore_index;
  Batch b;
  for (size_t i = first; i < first + static_cast<size_t>(batch); ++i) {
    const Window w = i < windows.size() ? windows[i] : Window{};
    for (int64_t t = 0; t < sequence; ++t) {
      const bool real = t < w.inputs;
      const auto at = static_cast<size_t>(w.begin + t);
      b.input.push_back(real ? learners[w.learner][at] : 0);
      b.target.push_back(real && t >= w.counted ? learners[w.learner][at + 1] : kIgnored);
    }
  }
  b.list_equal_tokens();
  return b;
}

}  // namespace tigon::convergence::next_action
