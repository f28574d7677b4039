// Measures gamma and merge of the cost model: the cost of additions on a rank.
#pragma once

#include "comm/communicator.h"
#include "comm/cost_model.h"

namespace tw {

/// Seconds to add an element (gamma) and to merge a sparse entry into a sum of `d` elements (merge)
/// at this density; the other fields are 0. All ranks measure at the same time; returns the times
/// of the slowest. Collective.
LinkCost measure_additions(Context& ctx, Communicator& comm, size_t d, double density);

}  // namespace tw
