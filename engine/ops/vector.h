// Vector ops: fill, scale, add, subtract, dtype conversion, many conversions at once.
#pragma once

#include <span>
#include <vector>

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

/// A vector that is copied to another place, type or both, or added to what is there.
struct Transfer {
  Tensor from, to;   ///< f32 or bf16, not both bf16, of as many elements
  bool add = false;  ///< only on a GPU
};
/// Transfers that ops leave to their caller, because a GPU runs many of them in one launch.
using Transfers = std::vector<Transfer>;
/// Runs the transfers; none reads or writes what another one writes.
void transfer(Context& ctx, const Transfers& transfers);

inline constinit DispatchTable<decltype(fill)> fill_dispatch{"fill"};
inline constinit DispatchTable<decltype(scale)> scale_dispatch{"scale"};
inline constinit DispatchTable<decltype(subtract)> subtract_dispatch{"subtract"};
inline constinit DispatchTable<void(Context&, const Tensor&, const Tensor&)> add_dispatch{"add"};
inline constinit DispatchTable<decltype(convert)> convert_dispatch{"convert"};
inline constinit DispatchTable<decltype(transfer)> transfer_dispatch{"transfer"};

}  // namespace tw::ops
