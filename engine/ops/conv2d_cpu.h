// The parts of the CPU convolution. Included by .cpp files only.
#pragma once

#include "engine/ops/conv2d.h"

namespace tw::ops {

/// Convolution of images so small that a kernel mostly reads padding: one dense matrix takes all
/// pixels of an input to all pixels of the output, and a forward pass is one product with it.
bool suits_dense_conv2d(const Conv2dShape& shape);
std::unique_ptr<Conv2d> create_dense_conv2d(Context& ctx, const Conv2dShape& shape);

/// Throws UserError when a call's tensor is not what the convolution was made for.
void expect_conv2d_tensor(const char* what, const Tensor& tensor, const Shape& shape, DType dtype);

}  // namespace tw::ops
