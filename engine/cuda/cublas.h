// Cublas: the functions of cuBLAS that ops call. The library is loaded at the first use and not at
// the start of a program: loading takes 0.15 s and 200 MB, which a run on CPUs would pay on every
// rank. Included by files in cuda/ only.
#pragma once

#include <cublas_v2.h>

namespace tw::cuda {

struct Cublas {
  decltype(&cublasCreate) create;
  decltype(&cublasDestroy) destroy;
  decltype(&cublasSetStream) set_stream;
  decltype(&cublasSetWorkspace) set_workspace;
  cublasStatus_t (*gemm)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int m, int n, int k,
                         const void* alpha, const void* a, cudaDataType, int lda, const void* b,
                         cudaDataType, int ldb, const void* beta, void* c, cudaDataType, int ldc,
                         cublasComputeType_t, cublasGemmAlgo_t);
  decltype(&cublasGetStatusString) status_string;
};

/// Loads cuBLAS at the first call. Throws Fault if it is missing or lacks a function.
const Cublas& cublas();

/// Throws Fault if a call of cuBLAS failed. `what` names the call in the message.
void expect_cublas(cublasStatus_t status, const char* what);

}  // namespace tw::cuda
