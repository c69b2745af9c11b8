// SPDX-License-Identifier: Apache-2.0
// tigon-checked: the children of the executor "checked". `tigon` starts it.
#include <cstdio>
#include <cstring>

#include "harness/run/process/child.h"

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "child") == 0) return tigon::child_main(argc, argv);
  std::fprintf(stderr,
               "tigon-checked: started by ./tigon check --executor checked, not by itself\n");
  return tigon::kExitUsage;
}
