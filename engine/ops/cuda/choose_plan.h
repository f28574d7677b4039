// The cuDNN plan of a convolution. Included by files in cuda/ only.
#pragma once

#include "engine/core/context.h"
#include "engine/cuda/cudnn_plan.h"

namespace tw::ops {

/// The fastest measured plan of a pass or, in deterministic mode, the first of cuDNN's heuristics
/// that runs. A plan that fails to run, or whose result is inaccurate for its type, is left out;
/// one that no graph can record is taken if there is no other. Reads and extends the tuning cache
/// of the context. Throws Fault when no plan is left.
cudnn::ConvPlan choose_plan(Context& ctx, const cudnn::Convolution& c);

}  // namespace tw::ops
