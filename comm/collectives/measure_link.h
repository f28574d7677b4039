// Measures alpha and beta of the network of a run.
#pragma once

#include "comm/communicator.h"
#include "comm/cost_model.h"

namespace tw {

/// Returns alpha (seconds per message) and beta (seconds per 4-byte element) of the slowest link
/// between neighbours r and r+1. Measures by ping-pong: half the round-trip time of an empty
/// message and of a message of `bytes` in memory of ctx's device, each the median of `rounds`. All
/// ranks get the same numbers. Collective; zero for a single rank.
LinkCost measure_link(Context& ctx, Communicator& comm, size_t bytes = size_t{1} << 20,
                      int rounds = 3);

}  // namespace tw
