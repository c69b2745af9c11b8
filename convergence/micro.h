// SPDX-License-Identifier: Apache-2.0
// A model of a few thousand parameters and made-up batches: tests, gradients against the oracle,
// and the planted faults of --controls.
#pragma once
#include <string>

#include "convergence/model.h"
#include "convergence/text_data.h"

namespace tigon::convergence {

inline ModelConfig micro_config(bool tied) {
  ModelConfig c;
  c.name = "micro";
  c.layers = 2;
  c.hidden = 32;
  c.heads = 4;
  c.kv_heads = 2;
  c.head_size = 32;
  c.intermediate = 40;
  c.vocabulary = 48;
  c.sequence = 7;
  c.batch = 2;
  c.tied = tied;
  c.logits_bytes = 5 * 48 * 4;  // several chunks, the last one shorter
  return c;
}

// A text with repetitions and few different tokens.
inline TokenData micro_data(const ModelConfig& config) {
  Corpus corpus;
  for (int i = 0; i < 400; ++i)
    corpus.train.push_back(static_cast<char>(random_bits(5, 5, static_cast<uint64_t>(i)) % 48));
  corpus.held_out = corpus.train;
  return TokenData(corpus, 1, config.sequence);
}

inline Batch micro_batch(const ModelConfig& config, int64_t step) {
  return micro_data(config).train(3, step, config.batch);
}

}  // namespace tigon::convergence
