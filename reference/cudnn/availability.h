// Whether this program can call cuDNN's fused engines.
#pragma once

namespace tigon::cudnn {

// Why it cannot and the cure, in one line; empty where it can. What is declared in this folder then
// returns kUnsupported with the same words.
const char* absent();

}  // namespace tigon::cudnn
