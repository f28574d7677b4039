// ComputeProfile: when the gradients of a step become ready, measured or read from a file.
#pragma once

#include <string>
#include <vector>

#include "models/model.h"

namespace tw {

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

/// Writes a profile as a table, in the order of time: `forward`, each parameter with the seconds
/// since the row above, `backward` with the rest. Columns: part, parameters, seconds, and those
/// of provenance_names(). Fault if the file cannot be written.
void write_profile(const std::string& path, const ParameterArena& arena,
                   const ComputeProfile& profile);

/// Reads such a table. UserError if it is not one, or if its parameters are not those of `arena`.
ComputeProfile read_profile(const std::string& path, const ParameterArena& arena);

}  // namespace tw
