#include "engine/ops/conv2d.h"

namespace tw::ops {

std::unique_ptr<Conv2d> Conv2d::create(Context& ctx, const Conv2dShape& s) {
  check(s.batch > 0 && s.height > 0 && s.width > 0 && s.in_channels > 0 && s.out_channels > 0,
        "[conv2d] x is (N={}, H={}, W={}, C={}) with {} output channels; all must be positive",
        s.batch, s.height, s.width, s.in_channels, s.out_channels);
  check(s.kernel > 0 && s.stride > 0 && s.padding >= 0 && s.padding < s.kernel,
        "[conv2d] kernel {}, stride {}, padding {}; expected kernel and stride from 1 and padding "
        "below the kernel",
        s.kernel, s.stride, s.padding);
  check(s.height + 2 * s.padding >= s.kernel && s.width + 2 * s.padding >= s.kernel,
        "[conv2d] a kernel of {} with padding {} does not fit x of (H={}, W={})", s.kernel,
        s.padding, s.height, s.width);
  check(s.dtype == DType::f32 || s.dtype == DType::bf16, "[conv2d] dtype {}; expected f32 or bf16",
        name(s.dtype));
  return conv2d_dispatch(ctx.device(), ctx, s);
}

void Conv2d::expect(const char* what, const Tensor& tensor, const Shape& shape) const {
  if (tensor.shape == shape && tensor.dtype == shape_.dtype) [[likely]]
    return;
  fail("[conv2d] {} is {} {}; expected {} {}", what, name(tensor.dtype), tensor.shape,
       name(shape_.dtype), shape);
}

}  // namespace tw::ops
