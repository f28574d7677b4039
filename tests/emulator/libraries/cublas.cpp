// Emulated cuBLAS: the calls that the engine makes.
#include "engine/cuda/cublas.h"

#include <stdexcept>
#include <utility>

#include "tests/emulator/libraries/element.h"
#include "tests/emulator/stream.h"

struct cublasContext {
  cudaStream_t stream = nullptr;
};

namespace {

using tw::DType;

/// A column-major matrix.
struct Matrix {
  const void* data;
  DType dtype;
  int64_t leading;
  bool transposed;

  float operator()(int64_t row, int64_t column) const {
    if (transposed) std::swap(row, column);
    return tw::emulator::load(data, dtype, column * leading + row);
  }
};

DType dtype_of(cudaDataType type) {
  if (type == CUDA_R_16BF) return DType::bf16;
  if (type == CUDA_R_32F) return DType::f32;
  throw std::logic_error("[emulator] this cuBLAS data type is not emulated");
}

cublasStatus_t create(cublasHandle_t* handle) {
  *handle = new cublasContext;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t destroy(cublasHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t set_stream(cublasHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t set_workspace(cublasHandle_t, void*, size_t) { return CUBLAS_STATUS_SUCCESS; }
const char* status_string(cublasStatus_t) { return "error of the CUDA emulator"; }

cublasStatus_t gemm(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m,
                    int n, int k, const void* alpha, const void* a, cudaDataType a_type, int lda,
                    const void* b, cudaDataType b_type, int ldb, const void* beta, void* c,
                    cudaDataType c_type, int ldc, cublasComputeType_t, cublasGemmAlgo_t) {
  if (lda < (op_a == CUBLAS_OP_N ? m : k) || ldb < (op_b == CUBLAS_OP_N ? k : n) || ldc < m)
    return CUBLAS_STATUS_INVALID_VALUE;
  const Matrix left{a, dtype_of(a_type), lda, op_a != CUBLAS_OP_N};
  const Matrix right{b, dtype_of(b_type), ldb, op_b != CUBLAS_OP_N};
  const float scale = *static_cast<const float*>(alpha), kept = *static_cast<const float*>(beta);
  tw::emulator::queue(handle->stream, [=, type = dtype_of(c_type)] {
    for (int64_t column = 0; column < n; ++column)
      for (int64_t row = 0; row < m; ++row) {
        float sum = 0;
        for (int64_t i = 0; i < k; ++i) sum += left(row, i) * right(i, column);
        const int64_t at = column * ldc + row;
        // with beta 0 the output is not read
        const float before = kept == 0 ? 0 : kept * tw::emulator::load(c, type, at);
        tw::emulator::store(c, type, at, scale * sum + before);
      }
  });
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

const tw::cuda::Cublas& tw::cuda::cublas() {
  static constexpr Cublas functions{create,        destroy, set_stream,
                                    set_workspace, gemm,    status_string};
  return functions;
}
