// Search for NaN and infinity that does not block the host. Included by .cu files only.
#pragma once

#include <span>

#include "engine/cuda/cuda.h"

namespace tw::ops {

/// Lowers DeviceStepInput::nonfinite to the index of the first NaN or infinity in x, if there is
/// one.
void record_nonfinite(Context& ctx, std::span<const float> x);

}  // namespace tw::ops
