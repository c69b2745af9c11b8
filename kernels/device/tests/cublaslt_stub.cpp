// SPDX-License-Identifier: Apache-2.0
// A library of cuBLASLt's name with the functions that are asked for; nobody calls them.
extern "C" {
#ifndef WITHOUT_MATMUL
void cublasLtMatmul() {}
#endif
void cublasLtCreate() {}
void cublasLtMatmulAlgoCheck() {}
void cublasLtMatmulAlgoGetHeuristic() {}
void cublasLtMatmulDescInit_internal() {}
void cublasLtMatmulDescSetAttribute() {}
void cublasLtMatrixLayoutInit_internal() {}
void cublasLtMatmulPreferenceInit_internal() {}
void cublasLtMatmulPreferenceSetAttribute() {}
}
