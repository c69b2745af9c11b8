// SPDX-License-Identifier: Apache-2.0
// A build without cuDNN.
#include "convergence/next_action/cudnn_lstm.h"

namespace tigon::convergence::next_action {

std::unique_ptr<LstmPredictor> cudnn_lstm(int32_t, const LstmSettings&) { return nullptr; }

}  // namespace tigon::convergence::next_action
