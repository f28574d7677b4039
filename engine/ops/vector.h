// Vector ops: fill, scale, add, subtract, dtype conversion.
#pragma once

#include <span>

#include "engine/core/context.h"
#include "engine/core/tensor.h"

namespace tw::ops {

/// x = value, for fp32.
void fill(Context& ctx, std::span<float> x, float value);
/// x *= factor, for fp32.
void scale(Context& ctx, std::span<float> x, float factor);
/// y -= x, for fp32 vectors of equal length.
void subtract(Context& ctx, std::span<const float> x, std::span<float> y);
/// y += x, for fp32 vectors of equal length.
void add(Context& ctx, std::span<const float> x, std::span<float> y);
/// y += x, for activations of one dtype.
void add(Context& ctx, const Tensor& x, const Tensor& y);
/// Copies x to y, converting between f32 and bf16.
void convert(Context& ctx, const Tensor& x, const Tensor& y);

extern DispatchTable<void(Context&)> hold_converts_dispatch, run_converts_dispatch;

/// Runs `body` and batches its conversions from fp32. A GPU defers them to one launch after the
/// body, so the body must not read the results.
template <class Body>
void convert_together(Context& ctx, const Body& body) {
  hold_converts_dispatch(ctx.device(), ctx);
  body();
  run_converts_dispatch(ctx.device(), ctx);
}

extern DispatchTable<void(Context&, std::span<float>, float)> fill_dispatch, scale_dispatch;
extern DispatchTable<void(Context&, std::span<const float>, std::span<float>)> subtract_dispatch;
extern DispatchTable<void(Context&, const Tensor&, const Tensor&)> add_dispatch, convert_dispatch;

}  // namespace tw::ops
