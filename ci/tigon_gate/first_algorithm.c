/* SPDX-License-Identifier: Apache-2.0 */
/* Stands before cuBLASLt, so that a program which times algorithms has only the library's first choice to time. */
#define _GNU_SOURCE
#include <dlfcn.h>

typedef int heuristic(void*, void*, void*, void*, void*, void*, void*, int, void*, int*);

int cublasLtMatmulAlgoGetHeuristic(void* handle, void* operation, void* a, void* b, void* c, void* d, void* preference,
                                   int requested, void* results, int* found) {
  heuristic* library = (heuristic*)dlsym(RTLD_NEXT, "cublasLtMatmulAlgoGetHeuristic");
  return library(handle, operation, a, b, c, d, preference, requested < 1 ? requested : 1, results, found);
}
