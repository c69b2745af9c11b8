// SPDX-License-Identifier: Apache-2.0
// Where a norm rounds to the element type.
#pragma once

namespace tigon::norm {

// What forward rounds to the element type beside y. llama: x * rstd, before the weight multiplies
// it, as Hugging Face's LlamaRMSNorm does. gemma: nothing, as its GemmaRMSNorm. none: all that it
// would store if each step ran in the element type, without a cast to float: rstd, x * rstd and
// offset + w. In all three the sum is in float and the saved rstd is not rounded; eps and offset
// are taken as given.
enum class Casting : int { kLlama, kGemma, kNone };

}  // namespace tigon::norm
