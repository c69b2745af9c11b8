// Launches nothing, and hopes that the right answer is still in the output.
#include "harness/plugin/cheats/cuda/cheat_cuda.h"

int32_t cheat_run(const tigon_call*, const char**) { return TIGON_OK; }
