// Measurements that several programs make: seconds of an operation on all ranks, of forward and
// backward by parameter, and of additions; random images for them.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "comm/collectives/collectives.h"
#include "comm/communicator.h"
#include "comm/cost_model.h"
#include "engine/core/stopwatch.h"
#include "models/model.h"

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

/// Fills the inputs of an allocated model, on ctx's device: random pixels from `seed`, labels 0, 1,
/// ... modulo the number of classes.
void fill_random_batch(Context& ctx, const Model& model, uint64_t seed);

/// Seconds to add an element (gamma) and to merge a sparse entry into a sum of `d` elements (merge)
/// at this density; the other fields are 0. All ranks measure at the same time; returns the times
/// of the slowest. Collective.
LinkCost measure_additions(Context& ctx, Communicator& comm, size_t d, double density);

/// Seconds of forward and backward of one step on one rank.
struct ComputeProfile {
  double forward = 0, backward = 0;
  /// For each parameter, in the order of the arena: seconds from the start of backward until its
  /// gradient is ready. Empty if unknown.
  std::vector<double> ready{};

  double seconds() const { return forward + backward; }
  void scale(double factor);
};

/// Times one forward and one backward on the batch that the model holds. On a GPU, waits for the
/// device after each gradient, so kernels do not overlap.
ComputeProfile time_passes(Context& ctx, Model& model, uint64_t step);

/// The median of each value of a non-empty series.
ComputeProfile median_profile(const std::vector<ComputeProfile>& profiles);

inline constexpr const char* kProfileColumns = "part,parameters,seconds";
/// Writes a profile as a result_table(), in the order of time: `forward`, each parameter with the
/// seconds since the row above, `backward` with the rest. Fault if the file cannot be written.
void write_profile(const std::string& path, const ParameterArena& arena,
                   const ComputeProfile& profile);

/// Reads such a table. UserError if it is not one, or if its parameters are not those of `arena`.
ComputeProfile read_profile(const std::string& path, const ParameterArena& arena);

}  // namespace tw
