// Ends the process with exit code 0, which some runners take for success.
#include <cstdlib>

#include "harness/plugin/cheats/cheat.h"

int32_t cheat_run(const tigon_call*, const char**) { std::exit(0); }
