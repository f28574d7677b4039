// Transfers on a GPU that also check gradients, in the same launch.
// Included by .cu files and files in cuda/ only.
#pragma once

#include "engine/cuda/cuda.h"
#include "engine/ops/vector.h"

namespace tw::ops {

/// Runs the transfers, then lowers *first to the index of the first NaN or infinity in `gradients`,
/// if there is one. `gradients` contains all destinations; *first is in device memory.
void transfer_and_check(Context& ctx, const Transfers& transfers, std::span<const float> gradients,
                        unsigned long long* first);

}  // namespace tw::ops
