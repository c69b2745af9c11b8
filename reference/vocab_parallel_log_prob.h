// SPDX-License-Identifier: Apache-2.0
// Oracle of vocab_parallel_log_prob: that of log_prob, whatever the shards are.
#pragma once
#include "kernels/vocab_parallel_log_prob/vocab_parallel_log_prob.h"
#include "reference/log_prob.h"
