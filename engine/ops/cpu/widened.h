// bf16 activations on CPUs whose oneDNN has no products of bf16: copies in f32 are computed with
// and rounded once. This halves the memory of activations and the traffic of all other ops.
// Included by files in cpu/ only.
#pragma once

#include "engine/ops/conv2d.h"
#include "engine/ops/linear.h"

namespace tw::ops {

/// True when convolutions and linear layers of this type need the two functions below.
bool needs_widening(DType dtype);

std::unique_ptr<Conv2d> create_widened_conv2d(Context& ctx, const Conv2dShape& shape);
std::unique_ptr<Linear> create_widened_linear(Context& ctx, const LinearShape& shape);

}  // namespace tw::ops
