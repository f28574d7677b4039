// Input normalisation: image bytes to activations.
#pragma once

#include <span>

#include "engine/core/context.h"
#include "engine/core/tensor.h"

namespace tw::ops {

/// y = (x / 255 - mean[c]) / deviation[c]; x is u8 [N,H,W,C], C <= 256; y is f32 or bf16.
void normalize(Context& ctx, const Tensor& x, std::span<const float> mean,
               std::span<const float> deviation, const Tensor& y);

inline constinit DispatchTable<decltype(normalize)> normalize_dispatch{"normalize"};

}  // namespace tw::ops
