// Linear on cuBLAS. Row-major matrices are column-major ones transposed: y = x w' is y' = w x'.
// Products in x's dtype sum in fp32 (cuBLAS may add parts of a dx in bf16); dy is converted to it.
#include "engine/ops/linear.h"

#include <algorithm>

#include "engine/cuda/cublas.h"
#include "engine/ops/cuda/matrix.h"
#include "engine/ops/vector.h"

namespace tw::ops {
namespace {

cudaDataType_t type_of(DType dtype) { return dtype == DType::bf16 ? CUDA_R_16BF : CUDA_R_32F; }

/// A factor of a product in cuBLAS's terms.
struct Factor {
  const void* data;
  DType dtype;
  bool transposed;
  int64_t leading;  ///< elements from one column to the next
};

/// c [columns, rows] = a b, or, with `accumulate`, c += a b; all column-major.
void multiply(Context& ctx, const Factor& a, const Factor& b, int64_t rows, int64_t columns,
              int64_t inner, const Tensor& c, bool accumulate) {
  const cublasHandle_t handle = ctx.handles<CudaHandles>().cublas();
  const float one = 1, beta = accumulate ? 1.0f : 0.0f;
  const bool tf32 = a.dtype == DType::f32 && ctx.math().tf32;
  const auto op = [](const Factor& f) { return f.transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
  const auto narrow = [](int64_t n) { return static_cast<int>(n); };
  cuda::expect_cublas(
      cuda::cublas().gemm(handle, op(a), op(b), narrow(rows), narrow(columns), narrow(inner), &one,
                          a.data, type_of(a.dtype), narrow(a.leading), b.data, type_of(b.dtype),
                          narrow(b.leading), &beta, c.data, type_of(c.dtype), narrow(rows),
                          tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
                          CUBLAS_GEMM_DEFAULT),
      "product");
}

class LinearCuda final : public Linear {
 public:
  explicit LinearCuda(const LinearShape& shape) : Linear(shape) {
    check<std::logic_error>(!converts() || shape.dtype == DType::bf16, "[linear] bf16 y of f32 x");
  }

  // [y in fp32][sums]
  size_t scratch_bytes() const override {
    return sum_bytes() + column_sums_bytes({shape_.batch, shape_.out_features});
  }
  size_t staged_bytes() const override {
    const auto elements = static_cast<size_t>(shape_.batch * shape_.out_features);
    return converts() ? elements * size_of(shape_.dtype) : 0;
  }
  size_t packed_bytes() const override {
    return static_cast<size_t>(shape_.in_features * shape_.out_features) * size_of(shape_.dtype);
  }

  void pack(Context&, const Tensor& w, const Tensor& packed, Transfers& later) override {
    later.push_back({w, {packed.data, w.shape, shape_.dtype, w.device}});
  }

  void forward(Context& ctx, const Tensor& x, const Tensor& packed, const Tensor& bias,
               const Tensor& y) override {
    expect("x", x, shape_.in_features, shape_.dtype);
    expect("y", y, shape_.out_features, shape_.out_dtype);
    // rounds once: the sum stays in fp32 until the bias is added
    Tensor sum = y.view({shape_.batch, shape_.out_features});
    if (sum.dtype != DType::f32) sum.data = scratch(ctx), sum.dtype = DType::f32;
    multiply(ctx, {packed.data, shape_.dtype, true, shape_.in_features},
             {x.data, shape_.dtype, false, shape_.in_features}, shape_.out_features, shape_.batch,
             shape_.in_features, sum, false);
    add_bias(ctx, sum, static_cast<const float*>(bias.data),
             y.view({shape_.batch, shape_.out_features}));
  }

  void backward_weights(Context& ctx, const Tensor& x, const Tensor& dy, const Tensor& dw,
                        const Tensor& dbias, bool accumulate, const Tensor& staged) override {
    expect("x", x, shape_.in_features, shape_.dtype);
    const Tensor gradient = in_dtype_of_x(dy, staged);
    column_sums(ctx, dy.view({shape_.batch, shape_.out_features}), scratch(ctx) + sum_bytes(),
                accumulate, static_cast<float*>(dbias.data),
                converts() ? static_cast<bf16*>(gradient.data) : nullptr);
    multiply(ctx, {x.data, shape_.dtype, false, shape_.in_features},
             {gradient.data, shape_.dtype, true, shape_.out_features}, shape_.in_features,
             shape_.out_features, shape_.batch, dw, accumulate);
  }

  void backward_data(Context& ctx, const Tensor& dy, const Tensor& packed, const Tensor& dx,
                     const Tensor& staged) override {
    check<std::logic_error>(shape_.input_gradient, "[linear] made without an input gradient");
    expect("dx", dx, shape_.in_features, shape_.dtype);
    const Tensor gradient = in_dtype_of_x(dy, staged);
    multiply(ctx, {packed.data, shape_.dtype, false, shape_.in_features},
             {gradient.data, shape_.dtype, false, shape_.out_features}, shape_.in_features,
             shape_.batch, shape_.out_features, dx, false);
  }

 private:
  /// Whether dy is f32 and the products take bf16.
  bool converts() const { return shape_.out_dtype != shape_.dtype; }
  size_t sum_bytes() const {
    return aligned(static_cast<size_t>(shape_.batch * shape_.out_features) * sizeof(float));
  }

  std::byte* scratch(const Context& ctx) const {
    check<std::logic_error>(ctx.scratch().size() >= scratch_bytes(),
                            "[linear] {} bytes of scratch; {} are needed", ctx.scratch().size(),
                            scratch_bytes());
    return ctx.scratch().data();
  }

  /// dy, or where backward_weights leaves it in x's dtype.
  Tensor in_dtype_of_x(const Tensor& dy, const Tensor& staged) const {
    expect("dy", dy, shape_.out_features, shape_.out_dtype);
    if (!converts()) return dy;
    check<std::logic_error>(staged.data != nullptr, "[linear] no memory for dy");
    return {staged.data, dy.shape, shape_.dtype, dy.device};
  }
};

std::unique_ptr<Linear> create_cuda(Context& ctx, const LinearShape& shape) {
  constexpr int64_t kMost = INT32_MAX;
  check(shape.batch <= kMost && shape.in_features <= kMost && shape.out_features <= kMost,
        "[linear] batch {}, {} -> {} features; a GPU takes up to {} of each", shape.batch,
        shape.in_features, shape.out_features, kMost);
  ctx.handles<CudaHandles>().cublas();  // created before a step may be captured
  return std::make_unique<LinearCuda>(shape);
}

const bool linear_registered = linear_dispatch.add(Device::cuda, create_cuda);

}  // namespace
}  // namespace tw::ops
