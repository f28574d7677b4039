#include "engine/ops/linear.h"

namespace tw::ops {

std::unique_ptr<Linear> Linear::create(Context& ctx, const LinearShape& s) {
  check(s.batch > 0 && s.in_features > 0 && s.out_features > 0,
        "[linear] batch {}, {} -> {} features; all must be positive", s.batch, s.in_features,
        s.out_features);
  const auto computes = [](DType dtype) { return dtype == DType::f32 || dtype == DType::bf16; };
  check(computes(s.dtype) && (s.out_dtype == s.dtype || s.out_dtype == DType::f32),
        "[linear] {} -> {}; expected f32 or bf16, to the same or to f32", name(s.dtype),
        name(s.out_dtype));
  return linear_dispatch(ctx.device(), ctx, s);
}

void Linear::expect(const char* what, const Tensor& tensor, int64_t columns, DType dtype) const {
  if (tensor.shape[0] != shape_.batch || tensor.numel() != shape_.batch * columns ||
      tensor.dtype != dtype) [[unlikely]]
    fail("[linear] {} is {} {}; expected {} ({}, {})", what, name(tensor.dtype), tensor.shape,
         name(dtype), shape_.batch, columns);
}

}  // namespace tw::ops
