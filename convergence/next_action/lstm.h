// SPDX-License-Identifier: Apache-2.0
// LSTM (Hochreiter and Schmidhuber 1997, with forget gates) over learners' actions: on the cores of
// a CPU, and cuDNN's on a GPU (cudnn_lstm.h).
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "convergence/next_action/floats.h"
#include "convergence/next_action/sequences.h"

namespace tigon::convergence::next_action {

struct LstmSettings {
  int layers = 1;  // 1 or 2
  int embedding = 64;
  int hidden = 64;  // 64 to 256
  int lanes = 16;   // learners side by side; a multiple of the shards
  int shards = 4;   // of lanes, one core each; sums are taken by shard, so results depend on it
  int window = 32;  // steps that gradients go back
  int align = 1;    // learners begin at multiples of so many steps of a lane
  int epochs = 6;
  double rate = 1.5e-2;  // of Adam, for the tables; falls to a twentieth along a cosine
  double clip = 1.0;     // largest norm of a gradient
  uint64_t seed = 1;
};

class LstmPredictor {
 public:
  virtual ~LstmPredictor() = default;

  // Trains on all of it. `on_epoch` hears the epoch, from 0, and its mean loss in nats, and says
  // whether to go on.
  virtual void train(const std::vector<Sequence>& learners,
                     const std::function<bool(int, double)>& on_epoch) = 0;

  virtual std::vector<Hits> score(const std::vector<Sequence>& learners) = 0;

  virtual int64_t parameters() const = 0;
  // Mean loss of one window of the first learners and its gradient in the order of LstmLayout.
  virtual double gradient(const std::vector<Sequence>& learners, Floats& gradient) = 0;
};

class Lstm final : public LstmPredictor {
 public:
  Lstm(int32_t vocabulary, const LstmSettings& settings);
  ~Lstm() override;
  void train(const std::vector<Sequence>& learners,
             const std::function<bool(int, double)>& on_epoch) override;
  std::vector<Hits> score(const std::vector<Sequence>& learners) override;
  int64_t parameters() const override;
  double gradient(const std::vector<Sequence>& learners, Floats& gradient) override;
  Floats& weights();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tigon::convergence::next_action
