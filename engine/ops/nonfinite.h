// Search for NaN and infinity.
#pragma once

#include <cstddef>
#include <span>

#include "engine/core/context.h"

namespace tw::ops {

/// Index of the first NaN or infinity in x, or x.size() when all are finite. Waits for the device.
size_t first_nonfinite(Context& ctx, std::span<const float> x);

/// Whether x, in host memory, has a NaN or infinity.
bool any_nonfinite(std::span<const float> x);

inline constinit DispatchTable<decltype(first_nonfinite)> first_nonfinite_dispatch{
    "first_nonfinite"};

}  // namespace tw::ops
