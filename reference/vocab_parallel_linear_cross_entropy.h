// SPDX-License-Identifier: Apache-2.0
// Oracle of vocab_parallel_linear_cross_entropy: that of linear_cross_entropy, whatever the shards
// are.
#pragma once
#include "kernels/vocab_parallel_linear_cross_entropy/vocab_parallel_linear_cross_entropy.h"
#include "reference/linear_cross_entropy.h"
