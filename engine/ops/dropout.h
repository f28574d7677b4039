// Dropout (Srivastava et al., JMLR 2014), scaled in training, so that evaluation is the identity.
#pragma once

#include "engine/core/context.h"
#include "engine/core/rng.h"
#include "engine/core/tensor.h"
#include "engine/ops/step_inputs.h"

namespace tw::ops {

/// y = x / (1 - rate) with probability 1 - rate, else 0; 0 <= rate < 1. Element i is kept when
/// uniform(philox(step, i / 4)[i % 4]) >= rate. Backward is the same call on the gradient.
/// y may be x. `recorded`, if given, has the step of a recorded pass, in place of `step`.
void dropout(Context& ctx, float rate, const Philox& philox, uint64_t step, const Tensor& x,
             const Tensor& y, const RecordedStep* recorded = nullptr);

inline constinit DispatchTable<decltype(dropout)> dropout_dispatch{"dropout"};

}  // namespace tw::ops
