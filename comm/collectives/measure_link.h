// Measures the message cost of a run's network.
#pragma once

#include "comm/communicator.h"
#include "comm/cost_model.h"

namespace tw {

/// alpha and beta of the slowest link between neighbours (ranks r and r+1), in seconds per message
/// and per 4-byte element, by ping-pong: half the round-trip time of an empty message and of one of
/// `bytes` in memory of ctx's device; the median of `rounds`. All ranks get the same numbers.
/// Collective; zero for a single rank.
LinkCost measure_link(Context& ctx, Communicator& comm, size_t bytes = size_t{1} << 20,
                      int rounds = 3);

}  // namespace tw
