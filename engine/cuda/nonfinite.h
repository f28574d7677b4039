// The check for NaN and infinity that asks nothing of the host.
// Included by .cu and _cuda.cpp files only.
#pragma once

#include <span>

#include "engine/cuda/cuda.h"

namespace tw::ops {

/// Lowers StepInput::nonfinite to the index of the first NaN or infinity in x, if there is one.
void note_nonfinite(Context& ctx, std::span<const float> x);

}  // namespace tw::ops
