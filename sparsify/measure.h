// Measure: u = g + e and the statistics that thresholds are made of, in one pass.
#pragma once

#include <cmath>
#include <span>
#include <vector>

#include "engine/context.h"

namespace tw {

/// Sums over the elements of a vector. In double, block by block and lane by lane in a fixed
/// order: the same bits on any number of threads and any CPU.
struct Measure {
  double sum = 0, square = 0, magnitude = 0;  ///< of x, x^2 and |x|
  float largest = 0;                          ///< magnitude
  /// False exactly when some element is NaN or infinite.
  bool finite() const { return std::isfinite(magnitude); }
};

/// e += g (g may be empty: e holds u already), measured on the way. `blocks` belongs to the caller
/// so that the next call allocates nothing.
Measure add_and_measure(Context& ctx, std::span<const float> g, std::span<float> e,
                        std::vector<Measure>& blocks);

}  // namespace tw
