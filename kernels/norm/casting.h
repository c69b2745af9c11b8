// Where a norm rounds to the element type.
#pragma once

namespace tigon::norm {

// Where forward rounds to the element type, beside y: llama x * rstd before it multiplies the
// weight; gemma nowhere; none, which is steps in the element type without a cast to float, each
// that it would store: rstd, x * rstd and offset + w. The sum is in float and the saved rstd not
// rounded with any of them; eps and offset are taken as given.
enum class Casting : int { kLlama, kGemma, kNone };

}  // namespace tigon::norm
