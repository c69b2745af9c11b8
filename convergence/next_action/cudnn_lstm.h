// SPDX-License-Identifier: Apache-2.0
// The LSTM on a GPU: cuDNN's cells, our kernels for the tables, the loss and Adam. Without a GPU
// build there is none (cudnn_lstm_absent.cpp).
#pragma once
#include <memory>

#include "convergence/next_action/lstm.h"

namespace tigon::convergence::next_action {

// Begins with the weights that Lstm has. cuDNN's cells cannot forget inside of a window, so
// settings.align must be settings.window. Null in a build without cuDNN. Throws ConvergeError with
// exit code 5 when the device or cuDNN fails.
std::unique_ptr<LstmPredictor> cudnn_lstm(int32_t vocabulary, const LstmSettings& settings);

}  // namespace tigon::convergence::next_action
