// A simulated link, to compare cost formulas with simulated time.
#pragma once

#include <algorithm>

#include "comm/collectives/collectives.h"
#include "comm/cost_model.h"
#include "comm/link/link.h"

namespace tw {

inline constexpr LinkCost kLinkCost{.alpha = 4e-4, .beta = 3.2e-8};  // 1 Gbit/s, 0.4 ms
inline constexpr PortSpec kLink{.latency = 4e-4, .bits_per_second = 1e9};

/// Simulated seconds of `body` on the slowest rank, when all ranks start at once.
template <class Body>
double simulated(Context& ctx, Communicator& inner, const Body& body) {
  LinkCommunicator comm(ctx, inner, {.usual = kLink}, LinkTime::simulated);
  body(comm);
  const double mine = comm.now();
  GatheredBlocks times;
  allgather(ctx, inner, std::as_bytes(std::span(&mine, 1)), sizeof mine, times);
  double latest = 0;
  for (int rank = 0; rank < inner.size(); ++rank) {
    double time = 0;
    std::memcpy(&time, times[rank].data(), sizeof time);
    latest = std::max(latest, time);
  }
  return latest;
}

}  // namespace tw
