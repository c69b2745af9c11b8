// SPDX-License-Identifier: Apache-2.0
// cuBLASLt as the process has it: the copy that a framework has loaded, else the system's. Found at
// the first product, so that nothing here depends on it at link time.
#pragma once
#include <cublasLt.h>

namespace tigon {

struct CublasLt {
  decltype(&cublasLtCreate) create;
  decltype(&cublasLtMatmul) matmul;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic;
  decltype(&cublasLtMatmulAlgoCheck) check;
  decltype(&cublasLtMatmulDescInit_internal) init_operation;
  decltype(&cublasLtMatmulDescSetAttribute) set_operation;
  decltype(&cublasLtMatrixLayoutInit_internal) init_layout;
  decltype(&cublasLtMatmulPreferenceInit_internal) init_preference;
  decltype(&cublasLtMatmulPreferenceSetAttribute) set_preference;
};

// nullptr where there is none, or one without these functions; cublaslt_error() says which.
const CublasLt* cublaslt();
const char* cublaslt_error();

}  // namespace tigon
