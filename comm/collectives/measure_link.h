// Measures what a message costs on the wires of a run.
#pragma once

#include "comm/communicator.h"
#include "comm/cost_model.h"

namespace tw {

/// alpha and beta of the slowest link between neighbours (ranks r and r+1), by ping-pong: half the
/// time an empty message, and one of `bytes`, take there and back; the median of `rounds`. The
/// same numbers on every rank. Collective; zero for a single rank.
LinkCost measure_wire(Context& ctx, Communicator& comm, size_t bytes = size_t{1} << 20,
                      int rounds = 3);

}  // namespace tw
