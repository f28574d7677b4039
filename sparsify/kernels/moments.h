// Moments: u = g + e and the statistics that thresholds are made of, in one pass.
#pragma once

#include <cmath>
#include <span>
#include <vector>

#include "engine/core/context.h"

namespace tw {

/// Sums over the elements of a vector. In double, block by block and lane by lane in a fixed
/// order: the same bits on any number of threads and any CPU.
struct Moments {
  double sum = 0, square = 0, magnitude = 0;  ///< of x, x^2 and |x|
  float largest = 0;                          ///< magnitude
  /// False exactly when some element is NaN or infinite.
  bool finite() const { return std::isfinite(magnitude); }
};

/// Elements that are summed up on their own, before the sums are added in order; each in lanes:
/// lane j sums every kMeasureLanes-th element from the j-th on.
inline constexpr size_t kMeasureBlock = 4096, kMeasureLanes = 8;

/// e += g (g may be empty: e holds u already), measured on the way. `blocks` belongs to the caller
/// so that the next call allocates nothing.
Moments add_and_moments(Context& ctx, std::span<const float> g, std::span<float> e,
                        std::vector<Moments>& blocks);

/// Fills `blocks`, one for each kMeasureBlock elements.
using MeasureBody = void(Context&, std::span<const float> g, std::span<float> e,
                         std::span<Moments> blocks);
extern DispatchTable<MeasureBody> measure_dispatch;

}  // namespace tw
