// The least time that a training step can take on a machine: what its matrix products and its
// update must compute and move, at the rates the machine is measured to reach.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "models/model.h"

namespace tw {

struct Ceilings {
  double flops = 0, bytes = 0;  ///< a second
};

/// The fastest of several products of n x n matrices in ctx's math, and of several sums of two
/// vectors of `length` floats. Both should be large for what they show.
Ceilings measure_ceilings(Context& ctx, DType dtype, int64_t n, size_t length);

/// Seconds of a planned step: each product by its operations or its operands, whichever takes
/// longer, everything else but the update of the parameters for nothing.
double floor_seconds(const Model& model, const Ceilings& ceilings);

/// Ceilings of ctx's device, and the floor of `model` under them, as fields of a line of JSON.
nlohmann::ordered_json report_floor(Context& ctx, const Model& model);

}  // namespace tw
