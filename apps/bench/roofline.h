// A lower bound for the time of a training step: the operations and bytes of its matrix products
// and of its update, at the rates measured on the machine.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "models/model.h"

namespace tw {

struct Ceilings {
  double flops = 0, bytes = 0;  ///< per second
};

/// Rates of the fastest of several products of n x n matrices and of several sums of two vectors of
/// `length` floats, on ctx's device. Both sizes should exceed the caches.
Ceilings measure_ceilings(Context& ctx, DType dtype, int64_t n, size_t length);

/// Seconds of a planned step: for each product the time of its operations or of its operands,
/// whichever is longer, plus the update of the parameters. All other operations count as zero.
double floor_seconds(const Model& model, const Ceilings& ceilings);

/// JSON fields: the measured rates of ctx's device and the lower bound of `model` in ms.
nlohmann::ordered_json report_floor(Context& ctx, const Model& model);

}  // namespace tw
