// SPDX-License-Identifier: Apache-2.0
// tigon-mutants: children over kernels with planted faults. `tigon mutants` starts them.
#include <cstdio>
#include <cstring>

#include "harness/mutants/protocol.h"
#include "harness/mutants/switch.h"
#include "harness/run/process/child.h"

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "child") == 0)
    return tigon::child_main(
        argc, argv, [](const std::string& line) { tigon::plant(tigon::fault_of(line).c_str()); },
        [](const std::string& answer) {
          return tigon::with_reached(answer, tigon::take_reached());
        });
  std::fprintf(stderr, "tigon-mutants: started by ./tigon mutants, not by itself\n");
  return tigon::kExitUsage;
}
