// SPDX-License-Identifier: Apache-2.0
// A model that trains in a second or two, its text, and its verdict with some ops on the fused
// side.
#pragma once
#include <type_traits>
#include <vector>

#include "convergence/compare.h"
#include "convergence/judge.h"
#include "convergence/train.h"

namespace tigon::convergence {

// Small enough for 40 steps in a second or two.
inline ModelConfig small_config() {
  ModelConfig c;
  c.name = "small";
  c.hidden = 64;
  c.heads = 2;
  c.kv_heads = 1;
  c.head_size = 32;
  c.intermediate = 160;
  c.vocabulary = 512;
  c.sequence = 64;
  c.batch = 2;
  c.steps = 40;
  c.warm_up = 5;
  c.held_out_batches = 2;
  c.logits_bytes = 48 * 512 * 4;  // three chunks, the last one shorter
  return c;
}

// Text with structure: each word is followed by one of three.
inline const TokenData& small_data() {
  static const TokenData data = [] {
    std::string text;
    uint64_t word = 0;
    for (uint64_t i = 0; i < 12000; ++i) {
      word = random_bits(4, word, random_bits(5, 0, i) % 3) % 300;
      for (uint64_t n = 0; n < 2 + word % 5; ++n)
        text += static_cast<char>('a' + random_bits(6, word, n) % 26);
      text += ' ';
    }
    Corpus corpus;
    corpus.train = text;
    corpus.held_out = text.substr(0, text.size() / 10);
    return TokenData(corpus, 512, 64);
  }();
  return data;
}

inline TrainSettings settings_of(Side side, int twin, int steps) {
  TrainSettings s;
  s.side = side;
  s.twin = twin;
  s.steps = s.horizon = steps;
  return s;
}

template <class P>
constexpr bool kIsF32 = std::is_same_v<P, F32>;

template <class P>
RunReport run(const Ops<P>& ops, Side side, int pair = 0) {
  const ModelConfig config = small_config();
  TrainSettings settings = settings_of(side, pair, config.steps);
  settings.seed += static_cast<uint64_t>(pair);
  if (side == Side::kNoise) settings.steps = kF32TwinSteps;
  return train<P>(config, ops, small_data(), settings);
}

// The naive run of each pair, and f32's twin, once for all tests.
template <class P>
const std::vector<RunReport>& naive_runs() {
  static const std::vector<RunReport> runs = [] {
    std::vector<RunReport> all;
    for (int i = 0; i < (kIsF32<P> ? kF32Pairs : kBF16Pairs); ++i)
      all.push_back(run<P>(naive_ops<P>(), Side::kNaive, i));
    if (kIsF32<P>) all.push_back(run<P>(naive_ops<P>(), Side::kNoise));
    return all;
  }();
  return runs;
}

template <class P>
VerdictReport verdict_of(const Ops<P>& fused) {
  const std::vector<RunReport>& naive = naive_runs<P>();
  std::vector<RunReport> runs;
  for (int i = 0; i < (kIsF32<P> ? kF32Pairs : kBF16Pairs); ++i)
    runs.push_back(run<P>(fused, Side::kFused, i));
  Trial trial;
  for (size_t i = 0; i < runs.size(); ++i) trial.pairs.push_back({&naive[i], &runs[i]});
  if (kIsF32<P>) trial.twin = &naive.back();
  return judge(trial);
}

}  // namespace tigon::convergence
