// Moments: the addition u = g + e and the statistics for thresholds, in one pass. Tail: statistics
// of the magnitudes above a threshold.
#pragma once

#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "engine/core/context.h"

namespace tw {

/// Sums over the elements of a vector, in double and in a fixed order of blocks and lanes: the same
/// bits with any number of threads and on any device.
struct Moments {
  double sum = 0, square = 0, magnitude = 0;  ///< of x, x^2 and |x|
  float largest = 0;                          ///< magnitude
  /// False exactly when some element is NaN or infinite: a sum of squares of floats stays finite.
  bool finite() const { return std::isfinite(square); }
};

/// Elements per block, and lanes per block: lane j sums every kMeasureLanes-th element from the
/// j-th on. The sums of the blocks are added in order.
inline constexpr size_t kMeasureBlock = 4096, kMeasureLanes = 8;
constexpr size_t measure_blocks(size_t d) { return (d + kMeasureBlock - 1) / kMeasureBlock; }

/// e += g (g may be empty: e holds u already); returns the moments of e. `blocks` is working memory
/// that the caller keeps, so that later calls allocate nothing.
Moments add_and_moments(Context& ctx, std::span<const float> g, std::span<float> e,
                        std::vector<Moments>& blocks);

/// The moments of a vector from those of its blocks.
Moments total_of(std::span<const Moments> blocks);

/// The magnitudes that reach a threshold; their sum is formed in the order of Moments.
struct Tail {
  double sum = 0;
  float least = std::numeric_limits<float>::infinity();
  uint32_t count = 0;
};
/// The tail of u from the magnitude with these bits on, which are at least 1. u is finite. `blocks`
/// is working memory.
Tail tail_of(Context& ctx, std::span<const float> u, uint32_t bits, std::vector<Tail>& blocks);
/// The tail of a vector from those of its blocks.
Tail total_of(std::span<const Tail> blocks);

/// Fills `blocks`, one for each kMeasureBlock elements.
using MeasureFunction = void(Context&, std::span<const float> g, std::span<float> e,
                             std::span<Moments> blocks);
inline constinit DispatchTable<MeasureFunction> measure_dispatch{"measure"};
using TailFunction = void(Context&, std::span<const float> u, uint32_t bits,
                          std::span<Tail> blocks);
inline constinit DispatchTable<TailFunction> tail_dispatch{"tail"};

}  // namespace tw
