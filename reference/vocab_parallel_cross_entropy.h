// SPDX-License-Identifier: Apache-2.0
// Oracle of vocab_parallel_cross_entropy: that of cross_entropy, whatever the shards are.
#pragma once
#include "kernels/vocab_parallel_cross_entropy/vocab_parallel_cross_entropy.h"
#include "reference/cross_entropy_scale.h"
