// Isolation: cases run in child processes, so that a crash, a hang or a sticky CUDA error costs one
// verdict and never the run.
#pragma once
#include <memory>
#include <string>

#include "harness/run/check.h"

namespace tigon {

// The other side of Child: `tigon child --result-fd N --executor NAME --threads N`. main() calls it
// first thing when argv[1] is "child". Reads one JSON request per line from stdin, writes one JSON
// line per result to the descriptor.
int child_main(int argc, char** argv);

}  // namespace tigon
