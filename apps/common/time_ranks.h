// Times an operation that all ranks run at the same time.
#pragma once

#include <algorithm>
#include <vector>

#include "comm/collectives/collectives.h"
#include "engine/core/stopwatch.h"

namespace tw {

/// The middle value of a non-empty series; the upper of the two for an even number of values.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

/// The largest of the ranks' values, on every rank. Collective.
inline double slowest_rank(Communicator& comm, double seconds) {
  return std::ranges::max(gather(comm, seconds));
}

/// Median seconds of body(1) .. body(rounds) on ctx's device, on the slowest rank; body(0) warms
/// up. Every round starts at a barrier. Collective.
template <class Body>
double time_ranks(Context& ctx, Communicator& comm, int64_t rounds, const Body& body) {
  std::vector<double> seconds;
  for (int64_t round = 0; round <= rounds; ++round) {
    barrier(comm);
    Stopwatch watch;
    body(round);
    ctx.synchronize();
    if (round > 0) seconds.push_back(watch.total());
  }
  return slowest_rank(comm, median(seconds));
}

}  // namespace tw
